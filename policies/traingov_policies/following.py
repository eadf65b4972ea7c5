"""How a changing cap is followed: the clock at once, the batch size only when the change pays.

A change of the batch size stops the job for a moment and wastes samples: the optimizer's state is that of the batch
size before (docs/evaluation.md measures 13 to 29 steps a change). So another batch size has to be the better one for a
while (`Follower`), and to repay its change within a horizon (`repays`). Where the wish for it comes and goes, as under
a flickering cap, the wait doubles each time, and falls back after a quiet time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class FollowSettings:
    """``hold_s``: how long another batch size must have been better before it is changed to.

    Doubled up to ``hold_most_s`` when that wish comes and goes; begun anew after ``horizon_s`` without. A change has
    to gain ``gain_least`` (a share of the objective), and within ``horizon_s`` what it costs: ``change_s`` seconds
    and ``change_steps`` steps of training.
    """

    hold_s: float = 10.0
    hold_most_s: float = 600.0
    horizon_s: float = 600.0
    gain_least: float = 0.02
    change_s: float = 0.5
    change_steps: float = 30.0

    def __post_init__(self) -> None:
        if self.hold_most_s < self.hold_s:
            raise ValueError(f"following.hold_most_s {self.hold_most_s:g} must not be below hold_s {self.hold_s:g}")


class Follower:
    """When a wish for another batch size has held for long enough. A wish is any value but None; times are monotonic.

    One for each job: it remembers how much the wishes flickered, over profiling and new tables.
    """

    def __init__(self, settings: FollowSettings) -> None:
        self._settings = settings
        self._wish: object | None = None
        self._restless_s = -math.inf
        self._changed_s = -math.inf
        self.wait_s = settings.hold_s
        self.due_s = math.inf

    def wish(self, now_s: float, wish: object | None) -> None:
        """What is wished for under the present cap; None: the present batch size is the best.

        The same wish as before goes on; where it was looked at already, it is again, since another cap may gain more.
        """
        if wish == self._wish:
            if wish is not None and self.due_s == math.inf:
                self.due_s = now_s + self.wait_s
            return
        withdrawn = self._wish is not None
        soon = wish is not None and now_s - self._changed_s < self._settings.horizon_s
        if now_s - self._restless_s >= self._settings.horizon_s:
            self.wait_s = self._settings.hold_s
        if withdrawn or soon:
            self._lengthen(now_s)
        self._wish = wish
        self.due_s = math.inf if wish is None else now_s + self.wait_s

    def answered(self) -> None:
        """The wish has been looked at and is not followed under this cap."""
        self.due_s = math.inf

    def granted(self) -> None:
        """The wish was to measure points, and they are measured: that ends it, and is no change of the batch size."""
        self._wish, self.due_s = None, math.inf

    def changed(self, now_s: float, *, forced: bool = False) -> None:
        """The batch size changes now; ``forced``: nothing at the present one stays below the cap."""
        if forced and now_s - self._changed_s < self._settings.horizon_s:
            self._lengthen(now_s)
        self._changed_s = now_s
        self._wish, self.due_s = None, math.inf

    def _lengthen(self, now_s: float) -> None:
        self.wait_s = min(2 * self.wait_s, self._settings.hold_most_s)
        self._restless_s = now_s


@dataclass(frozen=True)
class Worth:
    """Whether a change pays, and why in words. ``gain`` is a share of the objective, ``cost_s`` what it costs."""

    pays: bool
    gain: float
    cost_s: float
    text: str


def repays(present: float, other: float, step_s: float | None, left_s: float | None, settings: FollowSettings) -> Worth:
    """Whether going from an objective of ``present`` to ``other`` (the smaller the better) repays the change.

    ``step_s`` is the present step time, None where unknown; ``left_s`` the training time left, None where unknown.
    """
    gain = 1 - other / present
    cost_s = settings.change_s + settings.change_steps * (step_s or 0.0)
    horizon_s = settings.horizon_s if left_s is None else min(settings.horizon_s, left_s)
    won_s = gain * horizon_s
    shown = f"gains {100 * gain:.1f} %: {won_s:.3g} s in {horizon_s:.0f} s, for {cost_s:.3g} s that a change costs"
    if gain < settings.gain_least:
        return Worth(False, gain, cost_s, f"{shown}; less than {100 * settings.gain_least:g} % is not followed")
    return Worth(won_s > cost_s, gain, cost_s, shown)
