"""Which power readings are believed: single absurd ones are left out, and a sensor that stands still is no telemetry.

The rule for glitches. A reading above ``RATIO`` times, or below 1/``RATIO`` of, the median of the last ``KEPT``
readings is doubtful and held back. The next reading decides: if it is doubtful on the same side, both count, each
from its own time; so does a doubtful value that the sensor shows for ``HOLD_S``. Else the doubtful one is left out, as
if it had not come. So an excess that lasts for two readings, or for ``HOLD_S``, counts in full, at most one reading
late. Where more than ``MOST`` of the last ``LOOKED_AT`` readings were doubtful the signal itself jumps: then every
reading counts as it comes, until it calms down. What can stay hidden is thus ``MOST`` single readings of ``LOOKED_AT``.

"A reading" is a new value: the sensor moves more slowly than samples come, and repeats itself in between.
"""

from __future__ import annotations

from collections import deque

RATIO = 2.0
KEPT = 9  # readings whose median is the measure
NEEDED = 5  # fewer say nothing
HOLD_S = 0.15
LOOKED_AT = 40
MOST = 4
_FORGET_S = 2.0  # after a longer silence the readings before it are no measure

Believed = tuple[tuple[float, float], ...]


class ReadingFilter:
    """Believes or holds back one reading after another. Watts and monotonic seconds."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=KEPT)
        self._doubts: deque[bool] = deque(maxlen=LOOKED_AT)
        self._doubted = 0
        self._low, self._high = 0.0, float("inf")
        self._last: float | None = None
        self._last_s = float("-inf")
        self._held: tuple[float, float] | None = None
        self._held_side = 0
        self.left_out = 0

    def take(self, t_s: float, power_w: float | None) -> Believed:
        """The readings that are believed from now on, with their times: none, this one, or a held one and this."""
        if power_w is None:
            return ()
        if t_s - self._last_s > _FORGET_S:
            self._forget()
        self._last_s = t_s
        if power_w == self._last:
            held = self._held
            if held is None:
                return ((t_s, power_w),)
            if t_s - held[0] < HOLD_S:
                return ()
            self._held = None  # a glitch does not last as long
            return (held, (t_s, power_w))
        self._last = power_w
        side = 1 if power_w > self._high else -1 if power_w < self._low else 0
        held, before = self._held, self._held_side
        self._note(power_w, side)
        self._held = None
        if side == 0 or self._doubted > MOST:
            self.left_out += held is not None
            return ((t_s, power_w),)
        if held is not None and side == before:
            return (held, (t_s, power_w))
        self.left_out += held is not None
        self._held, self._held_side = (t_s, power_w), side
        return ()

    def _note(self, power_w: float, side: int) -> None:
        if len(self._doubts) == LOOKED_AT:
            self._doubted -= self._doubts[0]
        self._doubts.append(side != 0)
        self._doubted += side != 0
        self._recent.append(power_w)
        if len(self._recent) >= NEEDED:
            median = sorted(self._recent)[len(self._recent) // 2]
            self._low, self._high = median / RATIO, median * RATIO

    def _forget(self) -> None:
        self._recent.clear()
        self._doubts.clear()
        self._doubted = 0
        self._low, self._high = 0.0, float("inf")
        self._last, self._held = None, None


class StuckWatch:
    """Finds a sensor that stands still: the very same value for too long although the load or the clock changed.

    A steady load may well repeat itself in a coarse sensor; a value that outlives a change of clock (by 5 %) or of
    utilization (by 20 points) for ``after_s`` and ``SAMPLES`` samples is no reading any more. The next other value
    ends it.
    """

    SAMPLES = 20
    CLOCK = 0.05
    LOAD = 0.2

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._value: float | None = None
        self._count = 0
        self._clock_hz: int | None = None
        self._load: float | None = None
        self._changed_s: float | None = None
        self.since_s: float | None = None
        self.what = ""

    def see(self, t_s: float, power_w: float | None, clock_hz: int | None, load: float | None) -> bool:
        """Whether the sensor is stuck, this sample included. A missing reading is not a stuck one."""
        if power_w is None or power_w != self._value:
            self._value, self._count, self.since_s = power_w, 0, t_s
            self._clock_hz, self._load, self._changed_s = clock_hz, load, None
            return False
        self._count += 1
        if self._changed_s is None:
            self._look(t_s, clock_hz, load)
            return False
        return self._count >= self.SAMPLES and t_s - self._changed_s >= self._after_s

    def _look(self, t_s: float, clock_hz: int | None, load: float | None) -> None:
        if clock_hz is not None:
            if self._clock_hz is None:
                self._clock_hz = clock_hz
            elif abs(clock_hz - self._clock_hz) > self.CLOCK * self._clock_hz:
                self._changed_s, self.what = t_s, "clock"
        if load is not None:
            if self._load is None:
                self._load = load
            elif abs(load - self._load) > self.LOAD:
                self._changed_s, self.what = t_s, "load"
