"""When the data changed by enough to ask the tree again: the mean sequence length, with hysteresis (method B)."""

from __future__ import annotations

from collections.abc import Callable


class Lengths:
    """Means of the reported sequence length over periods of ``period_s``.

    The tree is followed to another clock when two periods in a row call for it, both by ``margin``, and not more
    often than a pause allows that doubles with every change: data that alternates cannot make the clock flip.
    """

    def __init__(self, period_s: float, margin: float) -> None:
        self._period_s, self._margin = period_s, margin
        self._pause_s = 2 * period_s
        self._not_before_s = float("-inf")
        self._begin_s: float | None = None
        self._sum, self._weight = 0.0, 0
        self._calls: int | None = None

    def add(self, seq_len_avg: float, samples: int) -> None:
        """A report's mean length over ``samples`` samples."""
        self._sum += seq_len_avg * samples
        self._weight += samples

    def due(self, now_s: float, present: int, answer: Callable[[float], int]) -> tuple[int, float] | None:
        """The clock to go to and the mean length that asks for it; None: stay. ``answer`` is the tree's, by length."""
        if self._begin_s is None:
            self._begin_s = now_s
        if now_s - self._begin_s < self._period_s:
            return None
        self._begin_s = now_s
        weight, mean = self._weight, self._sum / self._weight if self._weight else 0.0
        self._sum, self._weight = 0.0, 0
        if not weight:
            return None
        asked = answer(mean)
        sure = all(answer(mean * factor) == asked for factor in (1 - self._margin, 1 + self._margin))
        before, self._calls = self._calls, asked if sure and asked != present else None
        if self._calls is None or self._calls != before or now_s < self._not_before_s:
            return None
        self._calls = None
        self._not_before_s = now_s + self._pause_s
        self._pause_s *= 2
        return asked, mean
