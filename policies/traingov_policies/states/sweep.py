"""An energy sweep of a running job: mode 0, then every clock, each for a while with the job's own steps (method B).

Per point: while the board is too hot, the lowest clock; then the point's clock, written and read back; 2 s to settle;
then step reports and power samples until the wished time or number of steps is reached, or the job ends by itself.
A point counts only where the clock that tegrastats showed was the one asked for. Every wait is bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from ..actions import PersistSweep
from ..context import Context, Job
from ..events import CapChanged, Event, JobEnded, Sample, StepsReported, SweepRequested, SweepStopped
from ..sweep import SweepRow
from ..sweeping import HOT_CELSIUS, SETTLE_S, SweepMeter, SweepRun, clock_text
from .base import State

_COOL_MOST_S = 900.0
_STALL_MOST_S = 300.0
_WHOLE_RUN_LEAST_S = 1.0


class Sweep(State):
    """Measures the points that the run still lacks; ``after`` gives the state to go on with."""

    name = "sweep"

    def __init__(self, job: Job, run: SweepRun, after: Callable[[Context], State]) -> None:
        self._job, self._run, self._after = job, run, after
        self._clock: int | None = None
        self._meter: SweepMeter | None = None
        self._cooling = False
        self._celsius: float | None = None
        self._deadline_s = 0.0
        self._attempt = 0
        self._spoiled = False

    def enter(self, ctx: Context) -> State:
        """Begin with the first point that is missing."""
        self._run.state, self._run.job = "running", self._job.name
        ctx.advise(self._job, self._job.batch_size, "train", "energy sweep")
        ctx.say(
            self._job, "sweep", f"energy sweep: {len(self._run.left())} of {len(self._run.points)} points to measure"
        )
        return self._next(ctx)

    def describe(self) -> str:
        """The point, and what is done with it."""
        return self._run.text

    def handle(self, event: Event, ctx: Context) -> State:
        """Cool, settle, measure."""
        if isinstance(event, CapChanged) and ctx.cap is not None:
            self._run.stop("a cap was set: clear it, then start the sweep again to go on")
            return self._end(ctx)
        if not self._run.active:
            return self._end(ctx)
        if isinstance(event, Sample) and event.temperature_celsius is not None:
            self._celsius = event.temperature_celsius
        if ctx.watch.binding and (self._clock is None or ctx.clocks.index(self._clock) > ctx.watch.ceiling):
            return self._failed(ctx.watch.why(), ctx)
        if ctx.watch.disturbed(ctx.now_s):
            if self._meter is not None:
                return self._again("the board throttled itself", ctx)
            if ctx.now_s <= self._deadline_s:
                return self
        if self._meter is None:
            return self._prepare(ctx)
        if (ctx.idling.suspended or ctx.hands_off) and ctx.now_s - self._meter.last_s <= _STALL_MOST_S:
            self._spoiled = True
            return self
        if self._spoiled:  # a pause, or another program's clock, is no part of the point: measure it anew
            ctx.say(self._job, "measurement-invalid", f"{clock_text(self._clock)}: interrupted, measured anew")
            self._begin(ctx)
            return self
        if isinstance(event, Sample):
            self._meter.sample(event)
        elif isinstance(event, StepsReported) and event.job == self._job.name:
            self._meter.steps(event)
            if self._meter.enough(self._run.duration_s, self._run.steps):
                return self._finish(ctx)
        if ctx.now_s - self._meter.last_s > _STALL_MOST_S:
            return self._failed(f"no step was reported for {_STALL_MOST_S:g} s", ctx)
        return self

    def leave(self, event: Event, ctx: Context) -> None:
        """A run that ends before its time is a whole run, and counts as the paper counts it."""
        if not self._run.active:
            return
        meter = self._meter
        ended = isinstance(event, JobEnded) and event.job == self._job.name
        if ended and isinstance(event, JobEnded) and event.reason == "end" and meter is not None:
            row = meter.row(self._job, ctx.settings.profile.clock_tolerance)
            if isinstance(row, SweepRow) and meter.elapsed_s >= _WHOLE_RUN_LEAST_S:
                self._keep(row, ctx)
        if self._run.left():
            self._run.wait("for the workload to run again" if ended else "for the workload to run alone")
        else:
            self._run.finish()

    # -- one point -----------------------------------------------------------------------------------------------
    def _next(self, ctx: Context) -> State:
        left = self._run.left()
        if not left:
            self._run.finish()
            return self._end(ctx)
        self._clock, self._attempt = left[0], 0
        self._begin(ctx)
        return self

    def _begin(self, ctx: Context) -> None:
        """Set the point's clock; what counts begins once it holds, has settled, and the board is cool."""
        self._meter, self._cooling, self._spoiled = None, False, False
        self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
        self._settled_s: float | None = None
        self._aim(self._clock, f"measuring {clock_text(self._clock)}", ctx)

    def _aim(self, clock: int | None, what: str, ctx: Context) -> None:
        done = len(self._run.points) - len(self._run.left())
        self._run.text = f"energy sweep, point {done + 1} of {len(self._run.points)}: {what}"
        ctx.aim(clock, self._run.text)

    def _prepare(self, ctx: Context) -> State:
        hot = self._celsius is not None and self._celsius >= HOT_CELSIUS
        if self._cooling:
            if not hot:
                self._begin(ctx)
            elif ctx.now_s > self._deadline_s:
                return self._failed(f"still {self._celsius:.0f} °C after {_COOL_MOST_S:g} s at the lowest clock", ctx)
            return self
        if hot:
            self._cooling, self._deadline_s = True, ctx.now_s + _COOL_MOST_S
            self._aim(ctx.clocks[0], f"cooling below {HOT_CELSIUS:g} °C", ctx)
            return self
        if self._settled_s is None:
            wrong = self._set(ctx)
            if wrong is not None:
                return self._again(wrong, ctx)
            if self._settled_s is None and ctx.now_s > self._deadline_s:
                return self._again("the clock write was not answered", ctx)
        if self._settled_s is not None and ctx.now_s >= self._settled_s:
            self._meter = SweepMeter(self._clock, self._settled_s)
        return self

    def _set(self, ctx: Context) -> str | None:
        """Whether the kernel has set the clock: then it settles. What is wrong, in words, or None."""
        if self._clock is None:  # mode 0: the originals are back, nothing is read back
            self._settled_s = ctx.now_s + SETTLE_S
            return None
        actual = ctx.actual
        if actual is None or actual.requested_max_hz != self._clock:
            return None
        if actual.error is not None:
            return actual.error
        if actual.max_hz != self._clock:
            return f"the kernel set {clock_text(actual.max_hz)} instead"
        self._settled_s = ctx.now_s + SETTLE_S
        return None

    def _finish(self, ctx: Context) -> State:
        assert self._meter is not None
        row = self._meter.row(self._job, ctx.settings.profile.clock_tolerance)
        if isinstance(row, str):
            return self._again(row, ctx)
        self._keep(row, ctx)
        return self._next(ctx)

    def _keep(self, row: SweepRow, ctx: Context) -> None:
        self._run.rows.append(row)
        ctx.out.append(PersistSweep(self._job.name, tuple(self._run.rows)))
        ctx.say(self._job, "sweep-point", f"{clock_text(row.gpu_frequency_hz)}: {row_text(row)}")

    def _again(self, why: str, ctx: Context) -> State:
        ctx.say(self._job, "measurement-invalid", f"{clock_text(self._clock)}: {why}")
        self._attempt += 1
        if self._attempt >= ctx.settings.profile.attempts:
            return self._failed(why, ctx)
        ctx.requested = None  # write again: the clock is not what was asked for
        self._begin(ctx)
        return self

    def _failed(self, why: str, ctx: Context) -> State:
        self._run.failed[self._clock] = why
        ctx.say(self._job, "sweep-point", f"{clock_text(self._clock)}: given up, {why}")
        return self._next(ctx)

    def _end(self, ctx: Context) -> State:
        ctx.say(self._job, "sweep", self._run.text)
        return self._after(ctx)


def requested(event: SweepRequested | SweepStopped, ctx: Context) -> bool:
    """Take the wish for a sweep, or its end; True when a new beginning is due."""
    if isinstance(event, SweepStopped):
        if ctx.sweep is None or not ctx.sweep.active:
            return False
        ctx.sweep.stop("by command; start it again to go on")
        ctx.say(None, "sweep", ctx.sweep.text)
        return bool(ctx.jobs)
    job = ctx.jobs.get(event.job)
    why = None
    if job is None:
        why = f"no job {event.job!r} is registered"
    elif ctx.cap is not None:
        why = "a cap is in force, and a sweep measures every clock: clear the cap first"
    elif not event.clocks_hz or not set(event.clocks_hz) <= set(ctx.clocks):
        why = "its clocks are not the board's"
    if why is not None or job is None:
        ctx.say(job, "sweep", f"no energy sweep: {why}")
        return False
    ctx.sweep = SweepRun.of(event, job.registered.workload)
    return True


def due(job: Job, ctx: Context) -> SweepRun | None:
    """The sweep that goes on with this job, or None."""
    run = ctx.sweep
    if run is None or not run.active or run.workload != job.registered.workload or ctx.cap is not None:
        return None
    return run


def row_text(row: SweepRow) -> str:
    """A row's figures, in words."""
    parts = [f"{row.time_s:.2f} s"]
    if row.compute_energy_j is not None:
        parts.append(f"{row.compute_energy_j:.1f} J compute")
    if row.input_energy_j is not None:
        parts.append(f"{row.input_energy_j:.1f} J input")
    return ", ".join(parts)
