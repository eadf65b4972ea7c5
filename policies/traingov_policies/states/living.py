"""What a point's own training says of it under a cap that moves: costs nothing, and fills the table where caps lead.

A predicted point is measured while the job trains at it. Where the guard has to leave a point, its power is at the cap
at least: that is noted, so that the next such cap finds a lower clock and a higher one finds this again.
"""

from __future__ import annotations

from dataclasses import replace

from ..context import Context, Job
from ..drift.offsets import offset_of
from ..events import Event, Sample, StepsReported
from ..lut import Cell, Lut
from ..measure import PointMeter
from ..plans.between import in_table_terms, is_measured
from ..values import OperatingPoint

Found = tuple[OperatingPoint, Cell, str]


class Living:
    """Told every event while the job trains at a chosen point."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._point: OperatingPoint | None = None
        self._meter: PointMeter | None = None
        self._window_s = 1.0
        self._since_s: float | None = None  # the job is at the point since then
        self._steps_down = 0

    def at(self, point: OperatingPoint) -> None:
        """The job is to train at ``point``; the same goes on."""
        if point != self._point:
            self._point, self._meter, self._since_s = point, None, None

    def see(self, event: Event, lut: Lut, ctx: Context) -> Found | None:
        """The point, a new cell for ``lut`` and why in words, once there is one."""
        point = self._point
        if point is None:
            return None
        stepped = ctx.guard.steps_down != self._steps_down  # a lower limit alone may be a probe elsewhere
        self._steps_down = ctx.guard.steps_down
        if ctx.guard.limit < ctx.index_at_most(point.gpu_frequency_hz):
            settled = self._since_s is not None and ctx.now_s >= self._since_s + ctx.settings.profile.settle_s
            self._meter, self._since_s = None, None
            return self._left(point, lut, ctx) if settled and stepped else None
        if not self._holds(point, ctx):
            self._meter, self._since_s = None, None
            return None
        if self._since_s is None:
            self._since_s = ctx.now_s
        return None if is_measured(lut.cell(point)) else self._measure(point, event, lut, ctx)

    def _left(self, point: OperatingPoint, lut: Lut, ctx: Context) -> Found | None:
        """The guard has just left the point."""
        cap = ctx.cap
        if cap is None or cap.burst_w is not None:  # it may have been the burst limit
            return None
        cell = lut.cell(point)
        if not is_measured(cell):
            noise_w = ctx.settings.profile.power_noise * cap.power_w
            return point, Cell(None, cap.power_w, None, "infeasible", None, noise_w), f"it reached {cap.power_w:g} W"
        if (cell.peak_power_w or 0.0) >= cap.power_w:
            return None
        text = f"it reached {cap.power_w:g} W, {cell.peak_power_w:.2f} W when it was measured"
        return point, replace(cell, peak_power_w=cap.power_w), text

    def _measure(self, point: OperatingPoint, event: Event, lut: Lut, ctx: Context) -> Found | None:
        profile = ctx.settings.profile
        window_s = 1.0 if ctx.cap is None else ctx.cap.window_s
        if self._meter is None or window_s != self._window_s:
            self._window_s = window_s
            # Nothing waits for it, so it lasts as long as that of a point close to the cap does at most.
            patient = replace(profile, min_window_s=max(profile.min_window_s, profile.decide_window_s))
            self._meter = PointMeter(point, ctx.now_s + profile.settle_s, patient, None, window_s)
        if isinstance(event, Sample):
            self._meter.sample(event)
            return None
        if not isinstance(event, StepsReported) or event.job != self._job.name:
            return None
        self._meter.steps(event)
        verdict = self._meter.verdict(ctx.now_s)
        if verdict is None:
            return None
        self._meter = None
        if verdict.cell is None or verdict.invalid is not None:
            return None
        offset = offset_of(lut, point) or (0.0, 0.0)
        cell = in_table_terms(verdict.cell, lut.samples / profile.samples, offset)
        return point, cell, f"{cell.time_s:.2f} s, peak {cell.peak_power_w:.2f} W, measured while training"

    def _holds(self, point: OperatingPoint, ctx: Context) -> bool:
        """Whether what is seen is the job at the point."""
        hz, actual = point.gpu_frequency_hz, ctx.actual
        if ctx.unmeasurable or ctx.idling.stalled or ctx.idling.told or "clock-not-following" in ctx.conditions:
            return False
        follows = ctx.requested == (hz, hz) and actual is not None and actual.max_hz == hz
        return follows and self._job.batch_size == point.batch_size
