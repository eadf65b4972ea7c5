"""How a changing cap is followed: the clock at once, the batch size only when the change pays.

A change of the batch size stops the job for a moment and wastes samples: the optimizer's state is that of the batch
size before (docs/evaluation.md measures 13 to 29 steps a change). So it has to repay itself within a horizon
(`repays`), and the other batch size has to be the better one until waiting has lost as much as the change costs
(`Follower`): whatever the cap does next, no more than about twice the unavoidable is lost (the ski rental rule). Where
the wish for it comes and goes, as under a flickering cap, the wait doubles each time.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

_HOLDS = 5  # last holds of a cap that say how long the next one lasts


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


class CapPace:
    """How long caps hold: what is found out under the present one serves for about so long."""

    def __init__(self) -> None:
        self._holds: deque[float] = deque(maxlen=_HOLDS)
        self._since_s: float | None = None

    @property
    def moves(self) -> bool:
        """Whether the cap has changed at all."""
        return self._since_s is not None

    def changed(self, now_s: float) -> None:
        """Another cap holds from now on."""
        if self._since_s is not None:
            self._holds.append(now_s - self._since_s)
        self._since_s = now_s

    def expected_s(self, now_s: float) -> float:
        """Seconds that the present cap may be expected to hold: as long as caps did, or as it has held; else no end."""
        return max(median(self._holds), self.held_s(now_s)) if self._holds else math.inf

    def held_s(self, now_s: float) -> float:
        """Seconds that the present cap has held; infinite for the first one."""
        return math.inf if self._since_s is None else now_s - self._since_s


class Follower:
    """When a wish for another batch size has held for long enough. A wish is any value but None; times are monotonic.

    One for each job: it remembers how much the wishes flickered, over profiling and new tables. ``look_s`` is when to
    ask whether points that the present cap allows are worth measuring: apart from the wishes, since to measure is no
    change of mind about the batch size.
    """

    def __init__(self, settings: FollowSettings) -> None:
        self._settings = settings
        self._wish: object | None = None
        self._worth: Worth | None = None
        self._begun_s = self._told_s = 0.0
        self._lost_s = 0.0  # by not having followed the wish so far
        self._times = 1.0
        self._restless_s = -math.inf
        self._repaid_s = -math.inf
        self._changes_s = math.inf
        self.look_s = math.inf

    @property
    def due_s(self) -> float:
        """When something has to be looked at again; infinite: nothing."""
        return min(self._changes_s, self.look_s)

    @property
    def wishes(self) -> bool:
        """Whether another batch size is wished for. One that gains too little is not begun with, and ends no wish."""
        return self._wish is not None

    def missing(self, now_s: float, missing: bool) -> None:
        """Whether points that this cap allows may be worth measuring; looked at once that has held for ``hold_s``."""
        if not missing:
            self.look_s = math.inf
        elif self.look_s == math.inf:
            self.look_s = now_s + self._settings.hold_s

    def looked(self, again_s: float = math.inf) -> None:
        """The missing points were looked at; ``again_s``: when to look again under this cap."""
        self.look_s = again_s

    def wish(self, now_s: float, wish: object | None, worth: Worth | None = None) -> None:
        """What is wished for under the present cap, and what it is worth; None: the present batch size is the best.

        What waiting has lost is added up: a wish that gains more under another cap is due earlier, one that gains less
        later. Another wish than before goes on from there, since the present batch size is as wrong as it was.
        """
        if self._worth is not None:
            self._lost_s += max(0.0, self._worth.gain) * (now_s - self._told_s)
        if (wish is None) != (self._wish is None):  # it begins, or is withdrawn
            undone = wish is not None and now_s < self._repaid_s
            if now_s - self._restless_s >= self._settings.hold_most_s or -math.inf < self._repaid_s <= now_s:
                self._times = 1.0
            if wish is None or undone:
                self._lengthen(now_s)
            if not undone:
                self._repaid_s = -math.inf
            self._begun_s, self._lost_s = now_s, 0.0
        self._wish, self._worth, self._told_s = wish, worth, now_s
        self._changes_s = math.inf if wish is None else self._due_s(now_s, worth)

    def _due_s(self, now_s: float, worth: Worth | None) -> float:
        """When waiting will have lost what the change costs, times the flicker, or that alone after ``hold_most_s``."""
        s, waited_s = self._settings, now_s - self._begun_s
        if worth is None or worth.gain <= 0:
            return self._begun_s + min(self._times * s.hold_s, s.hold_most_s)
        enough_s = (self._times * max(s.hold_s * worth.gain, worth.cost_s) - self._lost_s) / worth.gain
        latest_s = max(s.hold_most_s - waited_s, (worth.cost_s - self._lost_s) / worth.gain)
        return now_s + max(0.0, min(enough_s, latest_s))

    def answered(self) -> None:
        """The wish has been looked at and is not followed under this cap; under another one it begins anew."""
        self._wish, self._worth, self._changes_s = None, None, math.inf

    def changed(self, now_s: float, worth: Worth | None = None) -> None:
        """The batch size changes now, for what it is worth; None: nothing at the present one stays below the cap."""
        if worth is not None:
            self._repaid_s = now_s + worth.cost_s / worth.gain
        elif now_s < self._repaid_s:
            self._lengthen(now_s)
        self._wish, self._worth, self._lost_s = None, None, 0.0
        self._changes_s = self.look_s = math.inf

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
