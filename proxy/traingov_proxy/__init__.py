"""Server side: samples to accuracy per batch size, by real training on a proxy data set."""

from .estimation import Run, TargetMissedError, estimate, run_all
from .recipe import Recipe, Train

__all__ = ["Recipe", "Run", "TargetMissedError", "Train", "estimate", "run_all"]
