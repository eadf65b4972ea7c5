"""Fills a table by real training steps: the points that a plan asks for, one after another (method A, 4.1)."""

from __future__ import annotations

from collections.abc import Callable

from ..actions import PersistLut
from ..context import Context, Job
from ..events import BatchApplied, BatchFailed, BoardFound, CapChanged, Event, KnobReadBack, Sample, StepsReported
from ..lut import Cell, Lut
from ..measure import PointMeter, Verdict
from ..plans import Plan, cautious
from ..values import Cap, OperatingPoint
from .base import Fallback, State
from .planning import plan_for

_STALLS_MOST = 3  # times that a point is begun anew since steps stalled; then stalls are how this job trains


class Profiling(State):
    """Measures the plan's points with real training steps, one after another; ``then`` goes on from the table."""

    name = "profiling"
    give_up_after = 3

    def __init__(self, job: Job, plan: Plan, then: Callable[[Job, Lut], State]) -> None:
        self._job, self._plan, self._then = job, plan, then
        self._point: OperatingPoint | None = None
        self._meter: PointMeter | None = None
        self._attempt = 0
        self._failed_in_row = 0
        self._deadline_s = 0.0
        self._batch_ready = False
        self._measured = 0
        self._cautious: tuple[Lut, Lut] | None = None
        self._settled = False
        self._stalls = 0
        self._asked: Cap | None = None  # the cap under which the point was asked for

    def enter(self, ctx: Context) -> State:
        """Ask the plan for its first point."""
        ctx.say(self._job, "profile", f"profiling: at most {self._plan.at_most()} points")
        return self._next(ctx)

    def describe(self) -> str:
        """The point being measured."""
        return f"profiling {self._point}, {self._measured} measured, at most {self._plan.at_most()} to go"

    def safe_table(self) -> Lut | None:
        """What was measured so far; predicted powers with their uncertainty added."""
        lut = self._plan.lut
        if self._cautious is None or self._cautious[0] is not lut:
            self._cautious = lut, cautious(lut)
        return self._cautious[1]

    def handle(self, event: Event, ctx: Context) -> State:
        """Apply, settle, measure; every wait is bounded."""
        job = self._job
        if isinstance(event, CapChanged):
            return self._capped(ctx)
        if isinstance(event, BatchFailed) and event.job == job.name:
            return self._drop(event.batch_size, ctx, f"batch {event.batch_size} does not fit: {event.reason}")
        if isinstance(event, (BatchApplied, StepsReported)) and event.job == job.name:
            self._batch_ready = self._point is not None and event.batch_size == self._point.batch_size
        if self._point is not None and ctx.index_at_most(self._point.gpu_frequency_hz) > ctx.watch.ceiling:
            return self._too_high(self._point, ctx)
        if ctx.watch.disturbed_for_s(ctx.now_s) > ctx.settings.apply_timeout_s:
            text = f"the board has throttled itself for {ctx.settings.apply_timeout_s:g} s: nothing can be measured"
            return Fallback(job, text, self.safe_table())
        if ctx.unmeasurable:
            self._meter = None  # begin this point anew when readings are back, or the job is, or the clock is ours
            self._settled = False
            self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
            return self
        if ctx.idling.stalled and self._stalls < _STALLS_MOST and (self._meter is None or self._meter.begun):
            self._stalls += self._meter is not None
            self._meter = None  # what is drawn meanwhile may be an evaluation's, or an idle board's
            self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
            return self
        if self._meter is None:
            return self._applying(event, ctx)
        if isinstance(event, Sample):
            if not ctx.idling.told:
                self._meter.sample(event)
        elif isinstance(event, StepsReported) and event.job == job.name:
            self._meter.steps(event)
        elif isinstance(event, KnobReadBack):
            return self  # the end of an earlier write, or a look: the meter checks the clock itself
        point = self._meter.point
        late = job.activity.overdue(ctx.now_s, point.batch_size, point.gpu_frequency_hz)
        if late and self._meter.begun and self._stalls < _STALLS_MOST and not self._meter.surely_above():
            return self
        verdict = self._meter.verdict(ctx.now_s)
        return self if verdict is None else self._judge(verdict, ctx)

    def leave(self, event: Event, ctx: Context) -> None:
        """What was measured so far is gone on with: after a second job's end, under another policy."""
        if not isinstance(event, BoardFound):  # what was measured belongs to the board as it was
            self._job.lut = self._plan.lut

    def _capped(self, ctx: Context) -> State:
        """Another cap is another plan. A point that is allowed still is measured on: flickering must not starve it."""
        plan, asked, cap = plan_for(self._plan.lut, ctx, self._job), self._asked, ctx.cap
        same = asked is not None and cap is not None and cap.window_s == asked.window_s
        looser = cap is None or (same and asked is not None and cap.power_w >= asked.power_w)
        if self._point is None or not looser:
            return Profiling(self._job, plan, self._then)
        self._plan = plan
        return self

    def _next(self, ctx: Context) -> State:
        point = self._plan.next_point()
        if point is None:
            return self._finish(ctx)
        settled = point == self._point  # measured on: nothing changes, nothing has to settle
        self._point, self._attempt, self._stalls = point, 0, 0
        self._apply(ctx, settled=settled)
        return self

    def _apply(self, ctx: Context, *, settled: bool = False) -> None:
        assert self._point is not None
        self._settled = settled
        self._meter, self._asked = None, ctx.cap
        self._batch_ready = self._job.batch_size == self._point.batch_size
        self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
        ctx.aim(self._point.gpu_frequency_hz, f"measuring {self._point}", self._point.batch_size)
        ctx.advise(self._job, self._point.batch_size, "profile", f"measuring {self._point}")

    def _applying(self, event: Event, ctx: Context) -> State:
        assert self._point is not None
        if ctx.actual is not None and ctx.actual.error is not None:
            return self._judge(Verdict(None, ctx.actual.error), ctx)
        wanted_hz = self._point.gpu_frequency_hz
        if self._batch_ready and ctx.actual is not None and ctx.actual.requested_max_hz == wanted_hz:
            set_hz = ctx.actual.max_hz
            if set_hz is not None and set_hz != wanted_hz:
                return self._judge(Verdict(None, f"the kernel set {set_hz / 1e6:g} MHz instead"), ctx)
            settings = ctx.settings.profile
            window_s = 1.0 if ctx.cap is None else ctx.cap.window_s
            begin_s = ctx.now_s + (0.0 if self._settled else settings.settle_s)
            earliest_s = ctx.now_s + settings.settle_seen_s
            self._meter = PointMeter(self._point, begin_s, settings, ctx.cap_w, window_s, earliest_s=earliest_s)
            return self
        if ctx.now_s > self._deadline_s:
            if not self._batch_ready:
                text = f"the job did not follow to batch {self._point.batch_size} in {ctx.settings.apply_timeout_s:g} s"
                return self._drop(self._point.batch_size, ctx, text)
            return self._judge(Verdict(None, "the clock write was not answered"), ctx)
        return self

    def _judge(self, verdict: Verdict, ctx: Context) -> State:
        assert self._point is not None
        if verdict.invalid is not None:
            self._attempt += 1
            ctx.say(self._job, "measurement-invalid", f"{self._point}: {verdict.invalid}", self._point)
            if self._attempt < ctx.settings.profile.attempts:
                ctx.rewrite()  # the clock is not what was asked for
                self._apply(ctx)
                return self
            self._failed_in_row += verdict.cell is None
            if self._failed_in_row >= self.give_up_after:
                text = f"{self._failed_in_row} points in a row cannot be measured: {verdict.invalid}"
                return Fallback(self._job, text, self.safe_table())
        if verdict.cell is not None:
            self._failed_in_row = 0
        cell = verdict.cell or Cell(None, None, None, "failed")
        self._measured += 1
        self._plan.tell(self._point, cell)
        ctx.out.append(
            PersistLut(self._plan.lut, self._job.name)
        )  # a table cut short by a crash is gone on with, not lost
        ctx.say(self._job, "measured", _measured_text(self._point, cell), self._point)
        return self._next(ctx)

    def _too_high(self, point: OperatingPoint, ctx: Context) -> State:
        """Over-current or a temperature forbids the clock: no measurement, and not this job's to repeat."""
        self._plan.tell(point, Cell(None, None, None, "failed"))
        ctx.say(self._job, "measured", f"{point}: left out, {ctx.watch.why()}", point)
        return self._next(ctx)

    def _drop(self, batch_size: int, ctx: Context, why: str) -> State:
        ctx.say(self._job, "batch-dropped", why)
        if batch_size in self._job.batch_sizes:
            self._job.batch_sizes.remove(batch_size)
        if batch_size not in self._plan.lut.batch_sizes:
            return self
        try:
            self._plan.drop_batch(batch_size)
        except ValueError:
            return Fallback(self._job, f"no batch size is left: {why}", None)
        return self._next(ctx)

    def _finish(self, ctx: Context) -> State:
        lut = self._plan.lut
        if self._measured:
            ctx.out.append(PersistLut(lut, self._job.name))  # with the mark that the plan came to its end
            ctx.say(self._job, "profiled", f"{self._measured} points measured")
        self._job.lut = lut
        return self._then(self._job, lut)


def _measured_text(point: OperatingPoint, cell: Cell) -> str:
    if cell.time_s is None:
        return f"{point}: {cell.origin}" + ("" if cell.peak_power_w is None else f", {cell.peak_power_w:.2f} W")
    return f"{point}: {cell.time_s:.2f} s, peak {cell.peak_power_w:.2f} W, mean {cell.mean_power_w:.2f} W"
