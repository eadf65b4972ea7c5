"""The cap guard: corrects the table's clock downward at sample rate, and climbs back slowly (DESIGN 5.4).

It sees every sample. A violated window makes it step down at once; then it waits out the dead time of clock and
sensor and judges by fresh samples only, so that it never winds down to the floor on readings of the past. Waiting has
an end: when clocks are written again and again and the mean stays above the cap all the while, it steps down anyway.
What it has learned outlives changes of jobs, policy and cap: only a choice from a measured table lifts its limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from .energy import WindowMean
from .values import Cap

BURST_WINDOW_S = 0.1


@dataclass(frozen=True)
class GuardSettings:
    """``dead_time_s``: from a written clock to readings that show it. ``climb_*``: patience before a step up.

    ``blind_at_most``: after so many dead times and windows above the cap in a row no write excuses waiting any more.
    """

    dead_time_s: float = 0.8
    climb_margin: float = 0.03
    climb_after_s: float = 10.0
    climb_after_most_s: float = 300.0
    blind_at_most: float = 3.0


@dataclass(frozen=True)
class GuardStep:
    """The guard moves its limit to clock index ``index`` of the table; ``text`` says why."""

    index: int
    up: bool
    text: str


class Guard:
    """Holds a limit (an index into the ascending clock table) at or below the target that the policy chose."""

    def __init__(self, settings: GuardSettings, clocks: int) -> None:
        self._settings = settings
        self._top = clocks - 1
        self._cap: Cap | None = None
        self._window: WindowMean | None = None
        self._burst: WindowMean | None = None
        self._whole: WindowMean | None = None  # not begun anew by writes
        self._above_since_s: float | None = None
        self._blind_until_s = float("-inf")
        self._calm_since_s: float | None = None
        self._patience_s = settings.climb_after_s
        self._climbed_at_s: float | None = None
        self.limit = self._top
        self.target = self._top
        self.steps_down = 0
        self.steps_up = 0

    def set_cap(self, cap: Cap | None) -> None:
        """A new cap, judged by the window that is there; None lifts it, and with it the limit."""
        same = cap is not None and self._cap is not None and cap.window_s == self._cap.window_s
        raised = cap is None or self._cap is None or cap.power_w > self._cap.power_w
        self._cap = cap
        if raised:
            self._patience_s = self._settings.climb_after_s
        if cap is None:
            self.limit = self._top
        if not same or (cap is not None and (cap.burst_w is None) != (self._burst is None)):
            self._whole = None if cap is None else WindowMean(cap.window_s)
            self._above_since_s = None
            self._fresh()

    def aim(self, target: int, *, trusted: bool = False) -> None:
        """The policy's choice. ``trusted``: a measured table made it, and knows more than an older correction.

        Any other choice leaves the limit where the guard brought it. The same choice again changes nothing.
        """
        target = max(0, min(self._top, target))
        if trusted and target != self.target:
            self.limit = target
            self._patience_s = self._settings.climb_after_s
            self._climbed_at_s = None
        self.target = target

    def limit_to(self, index: int) -> None:
        """Begin from a limit that is known to be safe."""
        self.limit = max(0, min(self.limit, index))

    def forget(self) -> None:
        """No job has run for a while: what was learned of the last one does not bind the next."""
        self.limit = self.target = self._top
        self._patience_s = self._settings.climb_after_s
        self._climbed_at_s = None

    def written(self, t_s: float) -> None:
        """A clock was written: readings before the dead time is over say nothing of it."""
        self._blind_until_s = t_s + self._settings.dead_time_s
        self._fresh()

    def sample(self, t_s: float, input_power_w: float | None) -> GuardStep | None:
        """Judge one sample; the step to take, if any."""
        cap = self._cap
        if cap is None or input_power_w is None:
            return None
        assert self._window is not None
        overdue = self._overdue(t_s, input_power_w, cap)
        if t_s < self._blind_until_s:
            if overdue is None:
                return None
            return self._down(
                t_s, f"{cap.window_s:g} s mean {overdue:.2f} W above the cap {cap.power_w:g} W for too long"
            )
        self._window.add(t_s, input_power_w)
        mean = self._window.value
        if self._burst is not None:
            self._burst.add(t_s, input_power_w)
            burst = self._burst.value
            if cap.burst_w is not None and burst is not None and burst >= cap.burst_w:
                return self._down(t_s, f"100 ms mean {burst:.2f} W reached the burst limit {cap.burst_w:g} W")
        if mean is None:
            return None
        if mean >= cap.power_w:
            return self._down(t_s, f"{cap.window_s:g} s mean {mean:.2f} W reached the cap {cap.power_w:g} W")
        if self.limit < self.target:
            return self._maybe_up(t_s, mean, cap)
        return None

    def _overdue(self, t_s: float, input_power_w: float, cap: Cap) -> float | None:
        """The mean, when it has been above the cap for longer than any one write explains."""
        assert self._whole is not None
        self._whole.add(t_s, input_power_w)
        mean = self._whole.value
        if mean is None or mean < cap.power_w:
            self._above_since_s = None
            return None
        if self._above_since_s is None:
            self._above_since_s = t_s
        if t_s - self._above_since_s <= self._settings.blind_at_most * (self._settings.dead_time_s + cap.window_s):
            return None
        self._above_since_s = t_s
        return mean

    def _down(self, t_s: float, why: str) -> GuardStep | None:
        if self._climbed_at_s is not None and t_s - self._climbed_at_s < 3 * self._patience_s:
            # The last climb did not hold: be more patient before the next.
            self._patience_s = min(2 * self._patience_s, self._settings.climb_after_most_s)
        self._climbed_at_s = None
        present = min(self.limit, self.target)  # the clock that runs: the limit may lie above what was aimed at
        if present == 0:
            return None
        self.limit = present - 1
        self.steps_down += 1
        # Blind until the write is confirmed and the dead time over; ``written`` sets the exact moment.
        self.written(t_s)
        return GuardStep(self.limit, False, why)

    def _maybe_up(self, t_s: float, mean: float, cap: Cap) -> GuardStep | None:
        if mean > cap.power_w * (1 - self._settings.climb_margin):
            self._calm_since_s = None
            return None
        if self._calm_since_s is None:
            self._calm_since_s = t_s
        calm = t_s - self._calm_since_s
        if calm < self._patience_s:
            return None
        self.limit += 1
        self.steps_up += 1
        self._climbed_at_s = t_s
        self.written(t_s)
        return GuardStep(
            self.limit,
            True,
            f"{cap.window_s:g} s mean {mean:.2f} W has left room below {cap.power_w:g} W for {calm:.0f} s",
        )

    def _fresh(self) -> None:
        self._calm_since_s = None
        cap = self._cap
        self._window = None if cap is None else WindowMean(cap.window_s)
        self._burst = None if cap is None or cap.burst_w is None else WindowMean(BURST_WINDOW_S)
