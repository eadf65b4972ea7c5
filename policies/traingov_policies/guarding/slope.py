"""How power goes with the clock, as far as it is known: from the job's table, from the guard's own steps, or a bound.

At a given load no Jetson's power falls faster than with the cube of the clock (voltage falls with it, and part of the
power does not depend on it at all). So the cube says which step is needed in any case, and never too much of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

STEEPEST = 3.0
_FLATTEST = 0.2

Table = Callable[[], Sequence[float | None]]


class PowerSlope:
    """Ratios of power between two indices of the ascending clock table ``clocks_hz``.

    ``table`` gives the measured power of the present batch size at each clock (None where there is none).
    """

    def __init__(self, clocks_hz: Sequence[int]) -> None:
        self._logs = [math.log(hz) for hz in clocks_hz]
        self.table: Table | None = None
        self._at: tuple[int, float] | None = None
        self.exponent: float | None = None

    def forget(self) -> None:
        """Another load: what was seen does not hold for it."""
        self._at = self.exponent = None

    def note(self, index: int, mean_w: float) -> None:
        """A settled mean at a clock. The first after a move gives the exponent between the two clocks."""
        at = self._at
        if at is not None and at[0] != index:
            rise = math.log(mean_w / at[1]) / (self._logs[index] - self._logs[at[0]])
            self.exponent = min(max(rise, _FLATTEST), STEEPEST)
        self._at = (index, mean_w)

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
        """Power at the next higher clock over that at ``index``, the larger of what table and experience say."""
        known = []
        if self.exponent is not None:
            known.append(math.exp(self.exponent * (self._logs[index + 1] - self._logs[index])))
        if (by_table := self._by_table(index, index + 1)) is not None:
            known.append(by_table)
        return max(known, default=None)

    def _least(self, index: int, lower: int) -> float:
        by_table = self._by_table(index, lower)
        if by_table is not None:
            return by_table
        own = self.exponent if self.exponent is not None and self.exponent >= 1 else STEEPEST
        return math.exp(own * (self._logs[lower] - self._logs[index]))

    def _by_table(self, index: int, other: int) -> float | None:
        if self.table is None:
            return None
        powers = self.table()
        a, b = powers[index], powers[other]
        return b / a if a and b else None
