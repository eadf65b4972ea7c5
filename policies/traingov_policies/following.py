"""How a changing cap is followed: the clock at once, the batch size only when the change pays.

A change of the batch size stops the job for a moment and wastes samples: the optimizer's state is that of the batch
size before (docs/evaluation.md measures 13 to 29 steps a change). So it has to repay itself within a horizon
(`repays`), and the other batch size has to be the better one until waiting has lost as much as the change costs
(`Follower`): whatever the cap does next, no more than about twice the unavoidable is lost (the ski rental rule). Where
the wish for it comes and goes, as under a flickering cap, the wait doubles each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class FollowSettings:
    """``hold_s``: how long another batch size must have been better, at the least, before it is changed to.

    The wait is doubled, up to ``hold_most_s``, when the wish for it is withdrawn or a change is to be undone before it
    has repaid itself; begun anew once one has, or after ``hold_most_s`` without. A change has to gain ``gain_least`` (a
    share of the objective), and within ``horizon_s`` what it costs: ``change_s`` seconds and ``change_steps`` steps.
    """

    hold_s: float = 5.0
    hold_most_s: float = 600.0
    horizon_s: float = 3600.0
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
        self._times = 1.0
        self._restless_s = -math.inf
        self._repaid_s = -math.inf
        self.due_s = math.inf

    def wish(self, now_s: float, wish: object | None, worth: Worth | None = None) -> None:
        """What is wished for under the present cap, and what it is worth; None: the present batch size is the best.

        The same wish as before goes on; where it was looked at already, it is again, since another cap may gain more.
        """
        if wish == self._wish:
            if wish is not None and self.due_s == math.inf:
                self.due_s = now_s + self.wait_s(worth)
            return
        undone = wish is not None and now_s < self._repaid_s
        if now_s - self._restless_s >= self._settings.hold_most_s or -math.inf < self._repaid_s <= now_s:
            self._times = 1.0
        if self._wish is not None or undone:
            self._lengthen(now_s)
        if not undone:
            self._repaid_s = -math.inf
        self._wish = wish
        self.due_s = math.inf if wish is None else now_s + self.wait_s(worth)

    def wait_s(self, worth: Worth | None) -> float:
        """How long a wish of this worth has to hold: until waiting has lost what the change costs."""
        lost_s = 0.0 if worth is None or worth.gain <= 0 else worth.cost_s / worth.gain
        doubled_s = self._times * max(self._settings.hold_s, lost_s)
        return max(min(doubled_s, self._settings.hold_most_s), lost_s)

    def answered(self) -> None:
        """The wish has been looked at and is not followed under this cap."""
        self.due_s = math.inf

    def granted(self) -> None:
        """The wish was to measure points, and they are measured: that ends it, and is no change of the batch size."""
        self._wish, self.due_s = None, math.inf

    def changed(self, now_s: float, worth: Worth | None = None) -> None:
        """The batch size changes now, for what it is worth; None: nothing at the present one stays below the cap."""
        if worth is not None:
            self._repaid_s = now_s + worth.cost_s / worth.gain
        elif now_s < self._repaid_s:
            self._lengthen(now_s)
        self._wish, self.due_s = None, math.inf

    def _lengthen(self, now_s: float) -> None:
        self._times = min(2 * self._times, 1e6)
        self._restless_s = now_s


@dataclass(frozen=True)
class Worth:
    """Whether a change pays, and why in words. ``gain`` is a share of the objective, ``cost_s`` what it costs."""

    pays: bool
    gain: float
    cost_s: float
    text: str


def repays(
    present: float | None, other: float | None, step_s: float | None, left_s: float | None, settings: FollowSettings
) -> Worth:
    """Whether going from an objective of ``present`` to ``other`` (the smaller the better) repays the change.

    ``step_s`` is the present step time, None where unknown; ``left_s`` the training time left, None where unknown.
    """
    gain = 1 - other / present if present and other is not None else 1.0  # unknown: anything is better
    cost_s = settings.change_s + settings.change_steps * (step_s or 0.0)
    horizon_s = settings.horizon_s if left_s is None else min(settings.horizon_s, left_s)
    won_s = gain * horizon_s
    shown = f"gains {100 * gain:.1f} %: {won_s:.0f} s in {horizon_s:.0f} s, for {cost_s:.3g} s that a change costs"
    if gain < settings.gain_least:
        return Worth(False, gain, cost_s, f"{shown}; less than {100 * settings.gain_least:g} % is not followed")
    return Worth(won_s > cost_s, gain, cost_s, shown)
