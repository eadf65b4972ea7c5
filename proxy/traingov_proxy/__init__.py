"""Server side: samples to accuracy per batch size, by real training on a proxy data set."""

from .estimation import RunsFailedError, TargetMissedError, estimate, run_all
from .journal import Journal, JournalError
from .pool import BackendError, open_pool
from .recipe import Recipe
from .run import Run, Train

__all__ = [
    "BackendError",
    "Journal",
    "JournalError",
    "Recipe",
    "Run",
    "RunsFailedError",
    "TargetMissedError",
    "Train",
    "estimate",
    "open_pool",
    "run_all",
]
