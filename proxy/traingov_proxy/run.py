"""One training run and how it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Train(Protocol):
    """One training run: samples to accuracy N, or None if the run missed ``target``."""

    def __call__(self, batch_size: int, seed: int, target: float) -> float | None:
        """Train with ``batch_size`` and everything random drawn from ``seed``, until ``target`` is reached."""


@dataclass(frozen=True)
class Run:
    """One ended training run. ``samples`` is N, None where the target was missed or the run failed.

    ``error`` is one line saying why a failed run gave nothing; None where it ended as it should.
    """

    batch_size: int
    seed: int
    samples: float | None
    error: str | None = None


def attempt(train: Train, batch_size: int, seed: int, target: float) -> Run:
    """Train once; what the run raises, or a result that is no number of samples, becomes its ``error``.

    An interrupt (KeyboardInterrupt, SystemExit) goes through.
    """
    try:
        samples = train(batch_size, seed, target)
    except Exception as error:
        text = " ".join(str(error).split())
        return Run(batch_size, seed, None, f"{type(error).__name__}: {text}" if text else type(error).__name__)
    if samples is None:
        return Run(batch_size, seed, None)
    try:
        value = float(samples)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        return Run(batch_size, seed, None, f"gave {samples!r}, which is neither a number of samples nor None")
    return Run(batch_size, seed, value)
