"""What a point's own training says of it under a cap that moves: costs nothing, and fills the table where caps lead.

A predicted point is measured while the job trains at it. The peak power of a measured one follows slow changes, those
of temperature above all. Where the guard has to leave a point since its own readings are above the cap, that is noted,
so that the next such cap finds a lower clock, and a higher one finds this again.
"""

from __future__ import annotations

from dataclasses import replace

from ..context import Context, Job
from ..drift.offsets import offset_of
from ..energy import WindowMean
from ..events import Event, Sample, StepsReported
from ..lut import Cell, Lut
from ..measure import PointMeter
from ..plans.between import in_table_terms, is_measured
from ..values import OperatingPoint

Found = tuple[OperatingPoint, Cell, str]

_LONG_S = 60.0  # seconds of training after which the peak of a measured point is compared with the table's
_PART = 0.1  # of a window that the point's own readings must cover: less than the guard needs, which began earlier
_FLUSHED = 3  # steps of a batch size after which none of the one before is under way on the device any more
_SURE = 2.0  # deviations by which a peak has to differ from the table's to be taken over


class Living:
    """Told every event while the job trains at a chosen point."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._point: OperatingPoint | None = None
        self._meter: PointMeter | None = None
        self._window_s = 1.0
        self._since_s: float | None = None  # the job is at the point since then
        self._steps_down = 0
        self._own: WindowMean | None = None  # power since clock and sensor have settled there
        self._told = False
        self._steps = 0  # of the point's batch size since the job is there

    def at(self, point: OperatingPoint) -> None:
        """The job is to train at ``point``; the same goes on."""
        if point != self._point:
            self._point, self._told = point, False
            self._away()

    def _away(self) -> None:
        self._meter, self._since_s, self._own, self._steps = None, None, None, 0

    def see(self, event: Event, lut: Lut, ctx: Context) -> Found | None:
        """The point, a new cell for ``lut`` and why in words, once there is one."""
        point = self._point
        if point is None:
            return None
        stepped = ctx.guard.steps_down != self._steps_down  # a lower limit alone may be a probe elsewhere
        self._steps_down = ctx.guard.steps_down
        settled = self._since_s is not None and ctx.now_s >= self._since_s + ctx.settings.profile.settle_s
        if (
            isinstance(event, Sample) and settled and self._steps >= _FLUSHED
        ):  # before the guard's step is judged, which this very reading may make
            self._own = self._own or WindowMean(1.0 if ctx.cap is None else ctx.cap.window_s, _PART)
            self._own.add(event.t_s, event.input_power_w)
        if ctx.guard.limit < ctx.index_at_most(point.gpu_frequency_hz):
            own_w = None if self._own is None else self._own.value
            self._away()
            return self._left(point, own_w, lut, ctx) if stepped and own_w is not None else None
        if not self._holds(point, ctx):
            self._away()
            return None
        if self._since_s is None:
            self._since_s = ctx.now_s
        if isinstance(event, StepsReported) and event.job == self._job.name:
            self._steps += event.steps
        return None if self._told or self._steps < _FLUSHED else self._measure(point, event, lut, ctx)

    def _left(self, point: OperatingPoint, own_w: float, lut: Lut, ctx: Context) -> Found | None:
        """The guard has just left the point, where ``own_w`` was drawn lately."""
        cap = ctx.cap
        if cap is None or own_w < cap.power_w:  # the burst limit, or readings of the point before
            return None
        cell = lut.cell(point)
        if not is_measured(cell):
            noise_w = ctx.settings.profile.power_noise * cap.power_w
            return point, Cell(None, cap.power_w, None, "infeasible", None, noise_w), f"it reached {cap.power_w:g} W"
        if (cell.peak_power_w or 0.0) >= cap.power_w:
            return None
        text = f"it reached {cap.power_w:g} W, {cell.peak_power_w:.2f} W in the table"
        return point, replace(cell, peak_power_w=cap.power_w), text

    def _measure(self, point: OperatingPoint, event: Event, lut: Lut, ctx: Context) -> Found | None:
        profile = ctx.settings.profile
        window_s = 1.0 if ctx.cap is None else ctx.cap.window_s
        if self._meter is None or window_s != self._window_s:
            self._window_s = window_s
            # Nothing waits for it. A peak is the largest of all windows: a short look sees less than there is.
            least_s = _LONG_S if is_measured(lut.cell(point)) else max(profile.min_window_s, profile.decide_window_s)
            patient = replace(profile, min_window_s=least_s, long_step_s=least_s, max_window_s=10 * least_s)
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
        old = lut.cell(point)
        if is_measured(old):
            self._told = True
            return self._followed(point, old, verdict.cell, ctx)
        offset = offset_of(lut, point) or (0.0, 0.0)
        cell = in_table_terms(verdict.cell, lut.samples / profile.samples, offset)
        return point, cell, f"{cell.time_s:.2f} s, peak {cell.peak_power_w:.2f} W, measured while training"

    @staticmethod
    def _followed(point: OperatingPoint, old: Cell, seen: Cell, ctx: Context) -> Found | None:
        """The peak of a measured point half-way to what is seen of it now, if that differs by more than the noise."""
        was_w, is_w = old.peak_power_w, seen.peak_power_w
        if not was_w or not is_w or abs(is_w / was_w - 1) <= _SURE * ctx.settings.profile.power_noise:
            return None
        return (
            point,
            replace(old, peak_power_w=(was_w + is_w) / 2),
            f"peak {is_w:.2f} W now, {was_w:.2f} W in the table",
        )

    def _holds(self, point: OperatingPoint, ctx: Context) -> bool:
        """Whether what is seen is the job at the point."""
        hz, actual = point.gpu_frequency_hz, ctx.actual
        if ctx.unmeasurable or ctx.idling.stalled or ctx.idling.told or "clock-not-following" in ctx.conditions:
            return False
        follows = ctx.requested == (hz, hz) and actual is not None and actual.max_hz == hz
        return follows and self._job.batch_size == point.batch_size
