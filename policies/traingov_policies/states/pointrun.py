"""Goes to one operating point and measures it, for states that measure points beside their own work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..context import Context, Job
from ..events import BatchApplied, BatchFailed, Event, KnobReadBack, Sample, StepsReported
from ..lut import Cell
from ..measure import PointMeter
from ..values import OperatingPoint


@dataclass(frozen=True)
class Reading:
    """What came of it: the cell, or in words why there is none. ``passing``: what was in the way may pass;
    ``above_w``: its power is above so many watts."""

    cell: Cell | None
    invalid: str | None = None
    passing: bool = False
    above_w: float | None = None


class PointRun:
    """Sets clock and batch size, waits until they hold, measures. Every wait is bounded; the guard stays in charge.

    ``samples`` is the s of the table that the cell is for. ``phase`` is the job's, "profile" or "train".
    """

    def __init__(self, job: Job, point: OperatingPoint, samples: int, ctx: Context, *, why: str, phase: str) -> None:
        self._job, self.point, self._samples = job, point, samples
        self._window_s = _window_s(ctx)
        self._index = ctx.index_at_most(point.gpu_frequency_hz)
        self._meter: PointMeter | None = None
        self._settled = ctx.requested == (point.gpu_frequency_hz,) * 2 and job.batch_size == point.batch_size
        self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
        ctx.aim_guarded(point.gpu_frequency_hz, why, point.batch_size, trusted=True)
        ctx.advise(job, point.batch_size, phase, why)
        self._batch_ready = job.batch_size == point.batch_size

    def goes_on(self, ctx: Context) -> bool:
        """Whether a changed cap lets the measurement go on, if it allows the point: one over the same window does."""
        return self._window_s == _window_s(ctx)

    def handle(self, event: Event, ctx: Context) -> Reading | None:
        """The reading, once there is one."""
        job, point = self._job, self.point
        if isinstance(event, BatchFailed) and event.job == job.name:
            return Reading(None, f"batch {event.batch_size} does not fit: {event.reason}")
        if isinstance(event, (BatchApplied, StepsReported)) and event.job == job.name:
            self._batch_ready = event.batch_size == point.batch_size
        if ctx.unmeasurable or ctx.idling.stalled:
            return Reading(None, "what is seen now is not the job at this point", passing=True)
        if ctx.cap is not None and ctx.guard.limit < self._index:
            return Reading(None, "the guard had to step down from it", above_w=ctx.cap.power_w)
        if ctx.watch.ceiling < self._index:
            return Reading(None, ctx.watch.why())
        if self._meter is None:
            return self._applying(ctx)
        if isinstance(event, Sample):
            if not ctx.idling.told:
                self._meter.sample(event)
        elif isinstance(event, StepsReported) and event.job == job.name:
            self._meter.steps(event)
        elif isinstance(event, KnobReadBack):
            return None
        verdict = self._meter.verdict(ctx.now_s)
        if verdict is None:
            return None
        if verdict.cell is None or verdict.invalid is not None:
            return Reading(None, verdict.invalid)
        cell, scale = verdict.cell, self._samples / ctx.settings.profile.samples
        if cell.time_s is None:
            return Reading(None, "it is above the cap", above_w=cell.peak_power_w)
        std_s = None if cell.time_std_s is None else cell.time_std_s * scale
        return Reading(replace(cell, time_s=cell.time_s * scale, time_std_s=std_s))

    def _applying(self, ctx: Context) -> Reading | None:
        hz, actual, settings = self.point.gpu_frequency_hz, ctx.actual, ctx.settings.profile
        if actual is not None and actual.error is not None:
            return Reading(None, actual.error, passing=True)
        if self._batch_ready and actual is not None and actual.max_hz is not None and ctx.requested == (hz, hz):
            if actual.max_hz != hz:
                return Reading(None, f"the kernel set {actual.max_hz / 1e6:g} MHz instead")
            begin_s = ctx.now_s + (0.0 if self._settled else settings.settle_s)
            earliest_s = ctx.now_s + settings.settle_seen_s
            self._meter = PointMeter(self.point, begin_s, settings, ctx.cap_w, self._window_s, earliest_s=earliest_s)
            return None
        if ctx.now_s > self._deadline_s:
            what = "the clock write was not answered" if self._batch_ready else "the job did not follow"
            return Reading(None, what)
        return None


def _window_s(ctx: Context) -> float:
    return 1.0 if ctx.cap is None else ctx.cap.window_s
