"""How power goes with the clock, as far as it is known: from the job's table, or else a bound.

At a given load no Jetson's power falls faster than with the cube of the clock (voltage falls with it, and part of the
power does not depend on it at all). So the cube says which step is needed in any case, and never too much of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

STEEPEST = 3.0

Table = Callable[[], Sequence[float | None]]


class PowerSlope:
    """Ratios of power between two indices of the ascending clock table ``clocks_hz``.

    ``table`` gives the measured power of the present batch size at each clock (None where there is none).
    """

    def __init__(self, clocks_hz: Sequence[int]) -> None:
        self._logs = [math.log(hz) for hz in clocks_hz]
        self.table: Table | None = None

    def enough(self, index: int, excess: float) -> int:
        """The highest clock below ``index`` that may end an excess: mean over limit is ``excess`` (at least 1).

        Never more than half the way down at once: the next reading will say more.
        """
        lowest = index // 2
        for k in range(index - 1, lowest, -1):
            if self._least(index, k) * excess < 1:
                return k
        return lowest

    def rise(self, index: int) -> float | None:
        """Power at the next higher clock over that at ``index``, where the table holds both."""
        return self._by_table(index, index + 1)

    def _least(self, index: int, lower: int) -> float:
        by_table = self._by_table(index, lower)
        return by_table if by_table is not None else math.exp(STEEPEST * (self._logs[lower] - self._logs[index]))

    def _by_table(self, index: int, other: int) -> float | None:
        if self.table is None:
            return None
        powers = self.table()
        a, b = powers[index], powers[other]
        return b / a if a and b else None
