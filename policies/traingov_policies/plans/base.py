"""What a profiling plan is: an object that is asked for the next point and told its measurement (method A, 4.1).

A plan's memory is the table itself: a plan made from a half-filled table goes on where that one stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from ..lut import Cell, Lut
from ..values import OperatingPoint


class Plan(Protocol):
    """Asked for points until there are none left."""

    @property
    def lut(self) -> Lut:
        """The table so far."""

    def next_point(self) -> OperatingPoint | None:
        """The next point to measure, or None when the plan is done."""

    def tell(self, point: OperatingPoint, cell: Cell) -> None:
        """The measurement of ``point``."""

    def drop_batch(self, batch_size: int) -> None:
        """The job cannot use ``batch_size``: it leaves the plan. ValueError when none is left."""

    def at_most(self) -> int:
        """An upper bound on the points still to measure."""


def thinned(frequencies_hz: Sequence[int], at_most: int) -> tuple[int, ...]:
    """Every k-th clock counted from the highest down, so that at most ``at_most`` remain; ascending.

    A Nano's twelve clocks become the six that the paper's figures tick (153.6 … 921.6 MHz).
    """
    stride = max(1, math.ceil(len(frequencies_hz) / max(1, at_most)))
    return tuple(sorted(sorted(frequencies_hz, reverse=True)[::stride]))
