"""The board's own limits and the trust in its readings: what the governor asks besides the cap's window.

One object for a board, in ``Context.watch``. Samples pass through it; of the other events it takes step reports,
thermal zones, over-current counters and read-backs. It raises and clears the conditions ``sensor-stuck``,
``over-current``, ``thermal-throttling``, ``clock-not-following``, ``table-off``, ``over-current-limit``,
``temperature-ceiling`` and ``temperature-unreadable``; ``ceiling`` is the highest clock index that over-current and
temperatures allow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..events import (
    BatchApplied,
    Event,
    GuardChanged,
    JobRegistered,
    KnobReadBack,
    OverCurrentCounted,
    Sample,
    StepsReported,
    Thermals,
    Tick,
)
from ..guard import Guard
from .ceilings import OverCurrent, Temperature
from .columns import columns_of, power_of
from .diagnosis import CLOCK_OFF, VERDICTS, Column, Evidence, diagnose, explain, fitting
from .live import LiveWindow
from .options import GuardSettings
from .readings import Believed, ReadingFilter, StuckWatch

if TYPE_CHECKING:
    from ..context import Context

_HOLDS_AFTER_S = 3.0  # a written clock has switched by then
_OFF_S = 1.0  # so long another clock is shown before it is told
_OFF_SAMPLES = 5
_LOOK_S = 1.0
_FRESH_S = 5.0  # older temperatures are none
_POLL_S = 0.3  # counters are read that much later than they rose, at most
_AFTER_S = 2.0  # what is measured so soon after throttling still shows it


class BoardWatch:
    """``clocks`` is the length of the clock table.

    ``ceiling`` is the highest clock index that over-current and temperatures allow, ``binding`` whether that is below
    the table's end.
    """

    def __init__(self, settings: GuardSettings, clocks: int) -> None:
        top = max(0, clocks - 1)
        self._settings = settings
        self._top = self.ceiling = top
        self.binding = False
        self.filter = ReadingFilter()
        self._stuck = StuckWatch(settings.stuck_after_s)
        self.over_current = OverCurrent(settings, top)
        self.temperature = Temperature(settings, top)
        self._live = LiveWindow()
        self._pin_hz: int | None = None
        self._pin_s = 0.0
        self._off_since_s: float | None = None
        self._off_count = 0
        self._shown_hz: int | None = None
        self._before = top  # the index that was set before the present one
        self._now = top
        self._moved_s = float("-inf")
        self._thermals: Thermals | None = None
        self._celsius: float | None = None
        self._next_look_s = 0.0
        self._verdict: str | None = None
        self._throttled_s = float("-inf")
        self._disturbed_since_s: float | None = None
        self._powers: tuple[object, tuple[float | None, ...]] = (None, ())
        self._columns: tuple[object, tuple[Column, ...]] = (None, ())

    # -- what the governor asks ------------------------------------------------------------------------------------
    def why(self) -> str:
        """What holds the clock, in words."""
        by_heat = self.temperature.index < self.over_current.index
        return "held below the temperature ceiling" if by_heat else "held where the over-current counters stay flat"

    def disturbed(self, t_s: float) -> bool:
        """Whether the board throttles itself, so that nothing seen now may enter a table."""
        return self.over_current.recent(t_s) or t_s - self._throttled_s < _AFTER_S

    def disturbed_for_s(self, t_s: float) -> float:
        """For how long without a pause."""
        return 0.0 if self._disturbed_since_s is None else t_s - self._disturbed_since_s

    def forget(self) -> None:
        """Another job may be another load."""
        self.over_current.forget()
        self.temperature.forget()
        self._limit()

    def _limit(self) -> None:
        """Looked at with every sample, so kept and not computed."""
        self.ceiling = min(self.over_current.index, self.temperature.index)
        self.binding = self.ceiling < self._top

    # -- events ----------------------------------------------------------------------------------------------------
    def sample(self, sample: Sample, ctx: Context) -> Believed:
        """The readings of input power that are believed now; none while the sensor stands still."""
        t_s, power, hz = sample.t_s, sample.input_power_w, sample.gpu_frequency_hz
        if sample.temperature_celsius is not None:
            self._celsius = sample.temperature_celsius
        if self._pin_hz is not None and hz is not None:
            self._compare(t_s, hz, self._pin_hz)
        if self._stuck.see(t_s, power, hz, sample.gpu_utilization):
            if "sensor-stuck" not in ctx.conditions:
                text = f"input power has stood at exactly {power:.3f} W although the {self._stuck.what} changed"
                ctx.condition("sensor-stuck", f"{text}: taken as no reading")
            return ()
        if power is not None and "sensor-stuck" in ctx.conditions:
            ctx.condition("sensor-stuck", None)
        believed = self.filter.take(t_s, power)
        for at_s, watts in believed:
            self._live.power(at_s, watts)
        return believed

    def event(self, event: Event, ctx: Context, *, writes: bool) -> None:
        """Any event but samples. ``writes``: the governor sets clocks at all."""
        match event:
            case Tick():
                self._tick(ctx)
            case StepsReported() if len(ctx.jobs) == 1:
                self._live.steps(event)
                self._of_batch(event.batch_size, ctx)
            case BatchApplied() | JobRegistered():
                self._of_batch(event.batch_size, ctx)
            case KnobReadBack() if event.requested_max_hz is not None:
                self._written(event, ctx)
            case Thermals():
                self._thermals = event
            case OverCurrentCounted() if ctx.jobs:
                self._counted(event, ctx, writes=writes)
            case GuardChanged():
                self._settings = ctx.guard.settings = event.guard
                ctx.settings = replace(ctx.settings, guard=event.guard)
                self.over_current, self.temperature = (
                    OverCurrent(event.guard, self._top),
                    Temperature(event.guard, self._top),
                )
                self._stuck = StuckWatch(event.guard.stuck_after_s)
                for name in ("over-current-limit", "temperature-ceiling", "temperature-unreadable"):
                    ctx.condition(name, None)
            case _:
                return
        self._limit()

    def powers(self, ctx: Context) -> tuple[float | None, ...]:
        """Measured power of the only job's batch size at each clock of the board; None where there is none."""
        table = ctx.table()
        job = next(iter(ctx.jobs.values()), None)
        key = (id(table), None if job is None else job.batch_size)
        if self._powers[0] != key:
            self._powers = (key, tuple(power_of(table, key[1], hz) for hz in ctx.clocks))
        return self._powers[1]

    # -- inside ----------------------------------------------------------------------------------------------------
    def _compare(self, t_s: float, shown_hz: int, pin_hz: int) -> None:
        """A read-back is not proof that the clock holds (DESIGN 5.2): telemetry may show another."""
        self._shown_hz = shown_hz
        if t_s < self._pin_s + _HOLDS_AFTER_S or abs(shown_hz / pin_hz - 1) <= CLOCK_OFF:
            self._off_since_s, self._off_count = None, 0
            return
        self._off_count += 1
        if self._off_since_s is None:
            self._off_since_s = t_s

    def _written(self, event: KnobReadBack, ctx: Context) -> None:
        good = event.error is None and event.min_hz == event.max_hz and event.max_hz
        self._pin_hz, self._pin_s = event.max_hz if good else None, event.t_s
        self._off_since_s, self._off_count = None, 0
        if event.error is None and event.max_hz is not None:
            self._before, self._now, self._moved_s = self._now, ctx.index_at_most(event.max_hz), event.t_s
        job = next(iter(ctx.jobs.values()), None)
        self._live.begin(event.t_s + self._settings.dead_time_s, None if job is None else job.batch_size)

    def _of_batch(self, batch_size: int, ctx: Context) -> None:
        """Another batch size is another load."""
        if len(ctx.jobs) != 1 or not self.over_current.batch(batch_size):
            return
        ctx.guard.other_load()
        self._live.begin(ctx.now_s, batch_size)

    def _counted(self, event: OverCurrentCounted, ctx: Context, *, writes: bool) -> None:
        late = event.t_s - self._moved_s < self._settings.dead_time_s + _POLL_S
        running = max(self._before, self._now) if late else self._now
        if not ctx.ours:
            running = self._top
        lowered = self.over_current.counted(event.t_s, event.counts, running if writes else None)
        if lowered:
            hz = ctx.clocks[self.over_current.index] if ctx.clocks else 0
            what = ", ".join(f"{name} by {count}" for name, count in event.counts)
            again = f"the next higher clock is tried after {self.over_current.patience_s:.0f} s without"
            ctx.say(None, "over-current", f"to {hz / 1e6:.0f} MHz: counters rose ({what}); {again}")
            self._say_limit(ctx)
        self._judge(ctx)

    def _say_limit(self, ctx: Context) -> None:
        limit = self.over_current.index
        text = None
        if limit < self._top and ctx.clocks:
            hz = ctx.clocks[limit] / 1e6
            text = f"the clock is held at {hz:.0f} MHz at most: above it the over-current counters rose"
        ctx.condition("over-current-limit", text)

    def _tick(self, ctx: Context) -> None:
        now = ctx.now_s
        if ctx.unmeasurable and not self.disturbed(now):
            self._live.stop()
        if now >= self._next_look_s:
            self._next_look_s = now + _LOOK_S
            self._look(ctx)
        self._judge(ctx)
        if not self.disturbed(now):
            self._disturbed_since_s = None
        elif self._disturbed_since_s is None:
            self._disturbed_since_s = now

    def _look(self, ctx: Context) -> None:
        """Once a second: is there room above the learned ceilings?"""
        if not ctx.clocks or not ctx.jobs:
            return
        now = ctx.now_s
        wanted = self._top if ctx.target_hz is None else ctx.index_at_most(ctx.target_hz)
        if ctx.cap is not None:
            wanted = min(wanted, ctx.guard.limit)
        if self.over_current.tick(now, min(wanted, self.temperature.index)):
            ctx.say(None, "over-current", f"{ctx.clocks[self.over_current.index] / 1e6:.0f} MHz is tried again")
        self._say_limit(ctx)
        if not self.temperature.enabled:
            return
        thermals = self._thermals
        zones = thermals.zones if thermals is not None and now - thermals.t_s < _FRESH_S else ()
        margin = self.temperature.margin(zones, self._celsius)
        self._celsius = None  # a reading of this second, or none
        moved = self.temperature.see(now, margin, self._now if ctx.ours else self._top, wanted)
        if moved is not None:
            hz = ctx.clocks[self.temperature.index] / 1e6
            ctx.say(None, "temperature", f"{moved} to {hz:.0f} MHz: {self.temperature.nearest}")
        text = None
        if self.temperature.index < self._top:
            hz = ctx.clocks[self.temperature.index] / 1e6
            text = f"the clock is held at {hz:.0f} MHz at most by a temperature ceiling"
        ctx.condition("temperature-ceiling", text)
        seen = self.temperature.seen_s
        lost = margin is None and (seen is None or now - seen > _FRESH_S)
        ctx.condition("temperature-unreadable", "a temperature ceiling is set and none can be read" if lost else None)

    def _judge(self, ctx: Context) -> None:
        evidence = self._evidence(ctx)
        verdict = diagnose(evidence)
        if verdict == "thermal-throttling":
            self._throttled_s = ctx.now_s
        if verdict == self._verdict and (verdict is None or verdict in ctx.conditions):
            return
        self._verdict = verdict
        for name in VERDICTS:
            ctx.condition(name, explain(name, evidence) if name == verdict else None)

    def _evidence(self, ctx: Context) -> Evidence:
        now, thermals = ctx.now_s, self._thermals
        off = self._off_since_s is not None and self._off_count >= _OFF_SAMPLES and now - self._off_since_s >= _OFF_S
        cooling, to_trip = None, None
        if thermals is not None and now - thermals.t_s < _FRESH_S:
            cooling = next((name for name, _ in thermals.cooling), None)
            gaps = [z.trip_celsius - z.celsius for z in thermals.zones if None not in (z.celsius, z.trip_celsius)]  # type: ignore[operator]
            to_trip = min(gaps, default=None)
        time_ratio, power_ratio, fits = self._ratios(ctx)
        shown = self._shown_hz if off else self._pin_hz if self._shown_hz is not None else None
        return Evidence(
            self._pin_hz if ctx.ours else None, shown, time_ratio, power_ratio, fits,
            self.over_current.recent(now), cooling, to_trip,
        )  # fmt: skip

    def _ratios(self, ctx: Context) -> tuple[float | None, float | None, int | None]:
        table, job = ctx.table(), next(iter(ctx.jobs.values()), None)
        if table is None or job is None or self._pin_hz is None or len(ctx.jobs) != 1:
            return None, None, None
        key = (id(table), job.batch_size)
        if self._columns[0] != key:
            self._columns = (key, columns_of(table, job.batch_size))
        columns = self._columns[1]
        own = next((c for c in columns if c.hz == self._pin_hz), None)
        if own is None:
            return None, None, None
        time, power = self._live.ratios(own.time_s / table.samples, own.power_w)
        if time is None or power is None:
            return time, power, None
        return time, power, fitting(columns, own.hz, time * own.time_s, power * own.power_w)


def renew(ctx: Context) -> None:
    """A guard and a watch that know nothing, for the board's present clock table."""
    ctx.watch = BoardWatch(ctx.settings.guard, len(ctx.clocks))
    ctx.guard = Guard(ctx.settings.guard, ctx.clocks)
    ctx.guard.set_cap(ctx.cap)
    ctx.guard.slope.table = lambda: ctx.watch.powers(ctx)
