"""The clock that an energy search settled at: is a sample there still what it was when the search ended?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..drift.offsets import MOST
from ..drift.watch import Alarm, Watch
from ..events import Event, Sample, StepsReported
from ..lut import Cell
from ..values import OperatingPoint

if TYPE_CHECKING:
    from ..context import Context

_SAMPLES = 4096
_FIRST_BLOCKS = 25  # seconds whose mean the later ones are compared with


class Hold:
    """``time_s`` (a sample's) and ``power_w`` are the readings at ``point``; the first half minute corrects them."""

    def __init__(self, point: OperatingPoint, time_s: float, power_w: float | None, ctx: Context) -> None:
        self.point = point
        cell = Cell(time_s * _SAMPLES, None, power_w, "measured")
        tolerance = ctx.settings.profile.clock_tolerance
        self._watch = Watch(point, cell, _SAMPLES, ctx.settings.drift, clock_tolerance=tolerance)
        self._calibrated = False
        self._from_s = ctx.now_s + ctx.settings.profile.settle_s

    def see(self, event: Event, ctx: Context) -> Alarm | None:
        """Any event while the clock is held; the alarm, if this one raises it."""
        pinned = (self.point.gpu_frequency_hz,) * 2
        if ctx.now_s < self._from_s or ctx.unmeasurable or ctx.idling.stalled or ctx.requested != pinned:
            self._watch.pause()
            return None
        if isinstance(event, Sample):
            if not ctx.idling.told:
                self._watch.sample(event)
        elif isinstance(event, StepsReported) and event.seq_len_avg is None:  # lengths have a judge of their own
            alarm = self._watch.steps(event)
            if self._calibrated:
                return alarm
            live = self._watch.live()
            if live is not None and self._watch.blocks >= _FIRST_BLOCKS:
                self._calibrated = True
                if max(abs(live.time), abs(live.power or 0.0)) <= MOST:
                    self._watch.calibrate(live.time, live.power or 0.0)
        return None
