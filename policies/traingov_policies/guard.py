"""The cap guard: corrects the table's clock downward at sample rate, and climbs back slowly (DESIGN 5.4).

It sees every reading that is believed (``guarding.readings``). A violated window makes it step down at once, as far
as is surely needed (``guarding.slope``); then it waits out the dead time of clock and sensor and judges by fresh
samples only, so that it never winds down to the floor on readings of the past. It does not wait for a whole fresh
window where the last whole one, old readings included, is violated and the fresh part alone is too. Waiting has an
end: when clocks are written again and again and the mean stays above the cap all the while, it steps down anyway.
What it has learned outlives changes of jobs, policy and cap: only a choice from a measured table lifts its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .energy import WindowMean
from .guarding.options import GuardSettings
from .guarding.slope import PowerSlope
from .values import Cap

BURST_WINDOW_S = 0.1
_PART = 0.2  # share of a window that fresh readings must cover to say that the last step was not enough
_WHOLE = 0.8  # and to be judged by themselves
_ROOM = 0.01  # below the cap that the next higher clock shall leave by the table, or it is not tried
_RARELY = 10  # times the longest patience, after which it is tried all the same: loads change


@dataclass(frozen=True)
class GuardStep:
    """The guard moves its limit to clock index ``index`` of the table; ``text`` says why."""

    index: int
    up: bool
    text: str


class Guard:
    """Holds a limit (an index into the ascending clock table) at or below the target that the policy chose.

    ``running`` is the index that was last asked for, which something else may hold lower than limit and target.
    """

    def __init__(self, settings: GuardSettings, clocks_hz: Sequence[int]) -> None:
        self.settings = settings
        self.slope = PowerSlope(clocks_hz)
        self._top = len(clocks_hz) - 1
        self._cap: Cap | None = None
        self._window: WindowMean | None = None  # readings since the last write's dead time
        self._fresh_s: float | None = None  # time of the first of them
        self._burst: WindowMean | None = None
        self._whole: WindowMean | None = None  # not begun anew by writes
        self._above_since_s: float | None = None
        self._blind_until_s = float("-inf")
        self._calm_since_s: float | None = None
        self._patience_s = settings.climb_after_s
        self._climbed_at_s: float | None = None
        self._peaks = _Peaks(settings.climb_after_s)
        self._climbed_from_w = 0.0
        self._failed: dict[int, tuple[float, float]] = {}  # limit: by how much power rose above it, at least; and when
        self.limit = self.target = self.running = self._top
        self.steps_down = 0
        self.steps_up = 0

    def set_cap(self, cap: Cap | None) -> None:
        """A new cap, judged by the window that is there; None lifts it, and with it the limit."""
        same = cap is not None and self._cap is not None and cap.window_s == self._cap.window_s
        raised = cap is None or self._cap is None or cap.power_w > self._cap.power_w
        self._cap = cap
        if raised:
            self._patience_s = self.settings.climb_after_s
        if cap is None:
            self.limit = self._top
        if not same or (cap is not None and (cap.burst_w is None) != (self._burst is None)):
            self._whole = None if cap is None else WindowMean(cap.window_s)
            self._above_since_s = None
            self._begin_window()

    def aim(self, target: int, *, trusted: bool = False) -> None:
        """The policy's choice. ``trusted``: a measured table made it, and knows more than an older correction.

        Any other choice leaves the limit where the guard brought it. The same choice again changes nothing.
        """
        target = max(0, min(self._top, target))
        if trusted and target != self.target:
            self.limit = target
            self._patience_s = self.settings.climb_after_s
            self._climbed_at_s = None
        self.target = target

    def limit_to(self, index: int) -> None:
        """Begin from a limit that is known to be safe."""
        self.limit = max(0, min(self.limit, index))

    def forget(self) -> None:
        """No job has run for a while: what was learned of the last one does not bind the next."""
        self.limit = self.target = self._top
        self._patience_s = self.settings.climb_after_s
        self._climbed_at_s = None
        self.other_load()

    def other_load(self) -> None:
        """Another batch size or job: climbs that failed may hold now."""
        self._failed.clear()

    def written(self, t_s: float) -> None:
        """A clock was written: readings before the dead time is over say nothing of it."""
        self._blind_until_s = t_s + self.settings.dead_time_s
        self._begin_window()

    def sample(self, t_s: float, input_power_w: float | None) -> GuardStep | None:
        """Judge one reading; the step to take, if any."""
        cap = self._cap
        if cap is None or input_power_w is None:
            return None
        assert self._window is not None
        assert self._whole is not None
        self._whole.add(t_s, input_power_w)
        whole = self._whole.value
        violated = whole is not None and whole >= cap.power_w
        overdue = self._overdue(t_s, cap) if violated else self._in_time()
        if t_s < self._blind_until_s:
            if not overdue:
                return None
            text = f"{cap.window_s:g} s mean {whole:.2f} W above the cap {cap.power_w:g} W for too long"
            return self._down(t_s, text, 1.0)
        if self._fresh_s is None:
            self._fresh_s = t_s
        self._window.add(t_s, input_power_w)
        if self._burst is not None:
            self._burst.add(t_s, input_power_w)
            burst = self._burst.value
            if cap.burst_w is not None and burst is not None and burst >= cap.burst_w:
                text = f"100 ms mean {burst:.2f} W reached the burst limit {cap.burst_w:g} W"
                return self._down(t_s, text, burst / cap.burst_w)
        mean = self._window.value
        if mean is None:
            return None
        settled = t_s - self._fresh_s >= _WHOLE * cap.window_s
        if mean >= cap.power_w and (settled or violated):
            text = f"{cap.window_s:g} s mean {max(mean, whole or 0.0):.2f} W reached the cap {cap.power_w:g} W"
            return self._down(t_s, text, mean / cap.power_w)
        if not settled:
            return None
        if self.limit < self.target and self.running == self.limit:
            self._peaks.add(t_s, mean)
            return self._maybe_up(t_s, mean, cap)
        return None

    @property
    def _present(self) -> int:
        """The clock that runs: the limit may lie above what was aimed at, and both above what else holds it."""
        return min(self.limit, self.target, self.running)

    def _in_time(self) -> bool:
        self._above_since_s = None
        return False

    def _overdue(self, t_s: float, cap: Cap) -> bool:
        """Whether the mean has been above the cap for longer than any one write explains."""
        if self._above_since_s is None:
            self._above_since_s = t_s
        if t_s - self._above_since_s <= self.settings.blind_at_most * (self.settings.dead_time_s + cap.window_s):
            return False
        self._above_since_s = t_s
        return True

    def _down(self, t_s: float, why: str, excess: float) -> GuardStep | None:
        if self._climbed_at_s is not None and t_s - self._climbed_at_s < 3 * self._patience_s:
            # The last climb did not hold: be more patient before the next.
            self._patience_s = min(2 * self._patience_s, self.settings.climb_after_most_s)
            if self._cap is not None and self._climbed_from_w > 0:
                self._failed[self.limit - 1] = (self._cap.power_w / self._climbed_from_w, t_s)
        self._climbed_at_s = None
        present = self._present
        if present == 0:
            return None
        self.limit = self.slope.enough(present, excess) if excess > 1 else present - 1
        self.steps_down += 1
        # Blind until the write is confirmed and the dead time over; ``written`` sets the exact moment.
        self.written(t_s)
        return GuardStep(self.limit, False, why)

    def _maybe_up(self, t_s: float, mean: float, cap: Cap) -> GuardStep | None:
        if mean > cap.power_w * (1 - self.settings.climb_margin):
            self._calm_since_s = None
            return None
        if self._calm_since_s is None:
            self._calm_since_s = t_s
        calm = t_s - self._calm_since_s
        if calm < self._patience_s:
            return None
        peak = self._peaks.value
        if self._hopeless(t_s, peak, cap):
            return None
        self._climbed_from_w = peak
        self.limit += 1
        self.steps_up += 1
        self._climbed_at_s = t_s
        self.written(t_s)
        text = f"{cap.window_s:g} s mean {mean:.2f} W has left room below {cap.power_w:g} W for {calm:.0f} s"
        return GuardStep(self.limit, True, text)

    def _hopeless(self, t_s: float, peak_w: float, cap: Cap) -> bool:
        """Whether the next higher clock would surely exceed the cap: by the table, or as a climb before showed."""
        rise = self.slope.rise(self.limit)
        if rise is not None and peak_w * rise >= cap.power_w * (1 - _ROOM):
            return True
        failed = self._failed.get(self.limit)
        if failed is None or t_s - failed[1] > _RARELY * self.settings.climb_after_most_s:
            return False
        return peak_w * failed[0] > cap.power_w * (1 - self.settings.climb_margin)

    def _begin_window(self) -> None:
        self._peaks.clear()
        self._calm_since_s = self._fresh_s = None
        cap = self._cap
        self._window = None if cap is None else WindowMean(cap.window_s, _PART)
        self._burst = None if cap is None or cap.burst_w is None else WindowMean(BURST_WINDOW_S)


class _Peaks:
    """The largest of what was seen in the last ``span_s`` seconds or somewhat longer."""

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self.clear()

    def clear(self) -> None:
        self._since_s, self._now, self._before = float("-inf"), 0.0, 0.0

    def add(self, t_s: float, value: float) -> None:
        if t_s - self._since_s > self._span_s:
            self._since_s, self._before, self._now = t_s, self._now, 0.0
        self._now = max(self._now, value)

    @property
    def value(self) -> float:
        return max(self._now, self._before)
