"""Clocks learned the hard way: the highest at which over-current counters stay flat and temperatures below a ceiling.

Both step one clock down at a sign of trouble, wait out the time until the step can show, and try the next higher
clock again after a patience that doubles each time a try did not hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..events import Zone
from .options import GuardSettings

_BATCHES_KEPT = 64


class LearnedCeiling:
    """A limit (an index of the clock table, ``top`` when nothing binds) with back-off upward."""

    def __init__(self, top: int, first_s: float, most_s: float, dead_s: float) -> None:
        self.top = self.index = top
        self._first_s, self._most_s, self._dead_s = first_s, most_s, dead_s
        self.patience_s = first_s
        self._blind_until_s = float("-inf")
        self._quiet_since_s = float("-inf")
        self._climbed_s: float | None = None
        self.lowered = 0

    def trouble(self, t_s: float, running: int) -> bool:
        """Trouble at clock index ``running``: one below it from now on. False while the last step may yet help."""
        self._quiet_since_s = t_s
        if t_s < self._blind_until_s:
            return False
        if self._climbed_s is not None and t_s - self._climbed_s < 3 * self.patience_s:
            self.patience_s = min(2 * self.patience_s, self._most_s)
        self._climbed_s = None
        self._blind_until_s = t_s + self._dead_s
        below = max(0, running - 1)
        if below >= self.index:
            return False
        self.index = below
        self.lowered += 1
        return True

    def quiet(self, t_s: float, wanted: int) -> bool:
        """No trouble now. True when the limit was raised by one: it has held, and the clock ``wanted`` is above it."""
        if self.index >= min(self.top, wanted) or t_s - self._quiet_since_s < self.patience_s:
            return False
        self.index += 1
        self._quiet_since_s = self._climbed_s = t_s
        self._blind_until_s = t_s
        return True

    def hold(self, t_s: float) -> None:
        """Neither trouble nor room: patience begins anew."""
        self._quiet_since_s = t_s

    def forget(self) -> None:
        """Nothing is known any more."""
        self.index, self.patience_s, self._climbed_s = self.top, self._first_s, None


class OverCurrent:
    """Learns, for each batch size, the highest clock at which the over-current counters stay flat."""

    RECENT_S = 5.0

    def __init__(self, settings: GuardSettings, top: int) -> None:
        self._ceiling = LearnedCeiling(
            top, settings.over_current_retry_s, settings.over_current_retry_most_s, settings.dead_time_s
        )
        self._batch: int | None = None
        self._known: dict[int, tuple[int, float]] = {}
        self._last_s = float("-inf")
        self.events: dict[str, int] = {}
        self.enabled = settings.avoid_over_current

    @property
    def index(self) -> int:
        """Highest clock index allowed."""
        return self._ceiling.index if self.enabled else self._ceiling.top

    @property
    def steps_down(self) -> int:
        """How often the limit was lowered."""
        return self._ceiling.lowered

    @property
    def patience_s(self) -> float:
        """Seconds without events before the next higher clock is tried."""
        return self._ceiling.patience_s

    def batch(self, batch_size: int) -> bool:
        """Another batch size: its own limit where it is known, else the present one. True when it is another."""
        if batch_size == self._batch:
            return False
        first = self._batch is None
        if self._batch is not None and self._ceiling.index < self._ceiling.top:
            if len(self._known) >= _BATCHES_KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[self._batch] = (self._ceiling.index, self._ceiling.patience_s)
        self._batch = batch_size
        if batch_size in self._known:
            self._ceiling.index, self._ceiling.patience_s = self._known[batch_size]
        return not first

    def counted(self, t_s: float, counts: Sequence[tuple[str, int]], running: int | None) -> bool:
        """The counters rose by ``counts`` while clock index ``running`` was set. True when the limit was lowered.

        ``running`` None: nothing can be done about it, as with policy observe.
        """
        for name, count in counts:
            self.events[name] = self.events.get(name, 0) + count
        self._last_s = t_s
        return self.enabled and running is not None and self._ceiling.trouble(t_s, running)

    def recent(self, t_s: float) -> bool:
        """Whether the counters rose lately: what is measured now is not the clock's own time and power."""
        return t_s - self._last_s < self.RECENT_S

    def tick(self, t_s: float, wanted: int) -> bool:
        """True when the next higher clock is tried."""
        return self.enabled and self._ceiling.quiet(t_s, wanted)

    def forget(self) -> None:
        """Another job may be another load."""
        self._ceiling.forget()
        self._known.clear()
        self._batch = None


class Temperature:
    """Keeps temperatures below a ceiling: steps down before it is reached, climbs back once there is room.

    ``margin`` is the ceiling less the temperature, in kelvins, of whichever zone is nearest to its own. Level and rate
    are those of a straight line through the last ``SPAN_S`` seconds: zones show half kelvins, and a die follows each
    training step. It steps down when the level is gone, or would be within ``AHEAD_S`` seconds; up after a patience
    with at least the hysteresis to spare and no rise.
    """

    AHEAD_S = 10.0
    SPAN_S = 15.0
    RISING = 0.03  # kelvins a second that are no standstill
    DEAD_S = 8.0  # the rise shows a lower clock by then

    def __init__(self, settings: GuardSettings, top: int) -> None:
        self._all = settings.temperature_ceiling_celsius
        self._zones = dict(settings.zone_ceilings_celsius)
        self._room = settings.temperature_hysteresis_celsius
        self._ceiling = LearnedCeiling(top, settings.temperature_climb_after_s, 1800.0, self.DEAD_S)
        self._trail: deque[tuple[float, float]] = deque()
        self.nearest = ""
        self.seen_s: float | None = None

    @property
    def enabled(self) -> bool:
        """Whether there is any ceiling."""
        return self._all is not None or bool(self._zones)

    @property
    def index(self) -> int:
        """Highest clock index allowed."""
        return self._ceiling.index

    @property
    def steps_down(self) -> int:
        """How often the limit was lowered."""
        return self._ceiling.lowered

    def margin(self, zones: Sequence[Zone], hottest_celsius: float | None) -> float | None:
        """Kelvins to the nearest ceiling; None where no zone that has one can be read."""
        best: float | None = None
        for zone in zones:
            ceiling = self._zones.get(zone.name, self._all)
            if zone.celsius is not None and ceiling is not None and (best is None or ceiling - zone.celsius < best):
                best = ceiling - zone.celsius
                self.nearest = f"{zone.name} {zone.celsius:.1f} °C, ceiling {ceiling:g} °C"
        if best is None and self._all is not None and hottest_celsius is not None:
            best = self._all - hottest_celsius
            self.nearest = f"{hottest_celsius:.1f} °C, ceiling {self._all:g} °C"
        return best

    def see(self, t_s: float, margin: float | None, running: int, wanted: int) -> str | None:
        """Take a margin: "down" or "up" when the limit moved. Called about once a second."""
        if margin is None:
            self._ceiling.hold(t_s)
            return None
        self.seen_s = t_s
        trail = self._trail
        trail.append((t_s, margin))
        while trail[0][0] < t_s - self.SPAN_S:
            trail.popleft()
        level, rate = _line(trail) if t_s - trail[0][0] >= self.SPAN_S / 2 else (margin, 0.0)
        if level <= 0 or level + rate * self.AHEAD_S <= 0:
            return "down" if self._ceiling.trouble(t_s, running) else None
        if level < self._room or rate < -self.RISING:
            self._ceiling.hold(t_s)
            return None
        return "up" if self._ceiling.quiet(t_s, wanted) else None

    def forget(self) -> None:
        """What was learned of another job does not bind the next; temperatures are read anew."""
        self._ceiling.forget()
        self._trail.clear()


def _line(trail: deque[tuple[float, float]]) -> tuple[float, float]:
    """Value at the end and slope of the least-squares line through (seconds, value) pairs at different times."""
    n = len(trail)
    mean_t = sum(t for t, _ in trail) / n
    mean = sum(v for _, v in trail) / n
    spread = sum((t - mean_t) ** 2 for t, _ in trail)
    slope = sum((t - mean_t) * (v - mean) for t, v in trail) / spread
    return mean + slope * (trail[-1][0] - mean_t), slope
