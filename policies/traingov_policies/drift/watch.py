"""Watches one operating point while the job trains at it: live step time and power against the table's cell.

Reports are gathered into blocks of at least a second (a longer step is a block of its own), so that time and power
are of the same whole steps. A block in which the clock was not the point's, or which a pause cut, counts as missing.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from ..energy import EnergyMeter
from ..events import Sample, StepsReported
from ..lut import Cell
from ..values import OperatingPoint
from .detector import Array, Detector
from .settings import DriftSettings

_BLOCK_S = 1.0
_RECENT = 30  # blocks
_RECENT_LEAST = 8
_GAP_S = 3.0  # between two reports: then the job paused, and the series begins anew
_WHOLE = 0.9  # of the samples that whole batches have
_TIME, _POWER = 0, 1


@dataclass(frozen=True)
class Live:
    """ln(live / table) of step time and power over the last blocks (medians), and the standard deviation of each.

    ``power`` is None where power was not seen or the table has none.
    """

    time: float
    time_sd: float
    power: float | None = None
    power_sd: float | None = None


@dataclass(frozen=True)
class Alarm:
    """A quantity ("time", "power") that is no longer what the table says; +1 it rose, -1 it fell."""

    changes: tuple[tuple[str, int], ...]
    live: Live
    offset: tuple[float, float] = (0.0, 0.0)

    @property
    def text(self) -> str:
        """What changed, in words."""
        return self._said("the table's")

    @property
    def text_since(self) -> str:
        """The same where there is no table, but what was seen before."""
        return self._said("what it was")

    def _said(self, than: str) -> str:
        said = []
        for quantity, way in self.changes:
            known = self.offset[_TIME if quantity == "time" else _POWER]
            ratio = (self.live.time if quantity == "time" else self.live.power or 0.0) - known
            noun = "step time" if quantity == "time" else "power"
            said.append(f"{noun} is {abs(math.expm1(ratio)) * 100:.1f} % {'above' if way > 0 else 'below'} {than}")
        return ", ".join(said)


class Watch:
    """Feed it samples and reports in time order; ``steps`` says when the point has drifted.

    ``samples`` is the table's s, so that ``cell.time_s`` is for so many samples. ``offset``: by what the logarithms of
    time and power are known to differ from the table's while the job trains; that is no drift.
    """

    def __init__(
        self,
        point: OperatingPoint,
        cell: Cell,
        samples: int,
        settings: DriftSettings,
        *,
        clock_tolerance: float,
        offset: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        if not cell.time_s:
            raise ValueError(f"drift: the table has no time for {point}")
        self.point = point
        self._per_sample_s = cell.time_s / samples
        self._mean_w = cell.mean_power_w
        self._clock_tolerance = clock_tolerance
        self._offset, self._settings = np.array(offset), settings
        self._detector = Detector(settings, 2)
        self._recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.blocks = 0
        self._begun, self._begun_s = False, 0.0
        self._last_s: float | None = None
        self._elapsed_s, self._samples = 0.0, 0
        self._energy = EnergyMeter(None)
        self._from_j = self._from_s = 0.0
        self._off = self._seen = 0

    def calibrate(self, time: float, power: float) -> None:
        """By so much the logarithms differ from the table's while the job trains: the test begins anew with that."""
        self._offset = np.array([time, power])
        self._detector = Detector(self._settings, 2)

    def pause(self) -> None:
        """The job is elsewhere, or what is seen says nothing of the point: what comes next is not joined to it."""
        if self._begun or self._last_s is not None:
            self._detector.step(np.full(2, np.nan))
            self._clear()

    def sample(self, sample: Sample) -> None:
        """Take a power sample."""
        hz = sample.gpu_frequency_hz
        if hz is not None and abs(hz / self.point.gpu_frequency_hz - 1) > self._clock_tolerance:
            self._off += 1
        self._seen += 1
        self._energy.add(sample.t_s, sample.input_power_w)

    def steps(self, report: StepsReported) -> Alarm | None:
        """Take a report; the alarm, if this block raises one."""
        whole = report.steps * report.batch_size
        if report.batch_size != self.point.batch_size or not _WHOLE * whole <= report.samples <= whole:
            return None
        begun_s = report.t_s - report.elapsed_s
        if self._last_s is not None and begun_s - self._last_s > _GAP_S:
            self.pause()
        if not self._begun:  # the first report only says where a block begins
            self._begin(report.t_s)
            return None
        self._last_s = report.t_s
        self._elapsed_s += report.elapsed_s
        self._samples += report.samples
        if self._elapsed_s < _BLOCK_S:
            return None
        return self._block(report.t_s)

    def live(self) -> Live | None:
        """Where time and power stand against the table; None before enough was seen."""
        if len(self._recent) < _RECENT_LEAST:
            return None
        rows = np.array(self._recent)
        time, time_sd = _centre(rows[:, _TIME])
        powers = rows[:, _POWER][np.isfinite(rows[:, _POWER])]
        if len(powers) < _RECENT_LEAST:
            return Live(time, time_sd)
        power, power_sd = _centre(powers)
        return Live(time, time_sd, power, power_sd)

    def _block(self, t_s: float) -> Alarm | None:
        time = math.log(self._elapsed_s / self._samples / self._per_sample_s)
        energy_j = self._energy.energy_j - self._from_j
        covered_s = self._energy.covered_s - self._from_s
        span_s = t_s - self._begun_s
        power = math.nan
        if self._mean_w and covered_s >= 0.8 * span_s and energy_j > 0:
            power = math.log(energy_j / covered_s / self._mean_w)
        foul = self._off > 0.05 * self._seen
        self._begin(t_s)
        if foul:
            self._detector.step(np.full(2, np.nan))
            return None
        self.blocks += 1
        self._recent.append((time, power))
        found = self._detector.step(np.array([time, power]) - self._offset)
        if not found.any():
            return None
        changes = tuple((name, int(way)) for name, way in zip(("time", "power"), found, strict=True) if way)
        for _ in range(len(self._recent) - 10):  # what was before the shift says nothing of now
            self._recent.popleft()
        live = self.live()
        assert live is not None
        return Alarm(changes, live, (float(self._offset[_TIME]), float(self._offset[_POWER])))

    def _begin(self, t_s: float) -> None:
        self._begun, self._begun_s, self._last_s = True, t_s, t_s
        self._elapsed_s, self._samples = 0.0, 0
        self._from_j, self._from_s = self._energy.energy_j, self._energy.covered_s
        self._off = self._seen = 0

    def _clear(self) -> None:
        self._begun, self._begun_s = False, 0.0
        self._last_s = None
        self._elapsed_s, self._samples = 0.0, 0
        self._energy = EnergyMeter(None)
        self._from_j = self._from_s = 0.0
        self._off = self._seen = 0


def _centre(values: Array) -> tuple[float, float]:
    """Median and its standard deviation; neighbouring blocks are taken to hold a fifth of a block's news each."""
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    return middle, max(0.002, 1.25 * spread * math.sqrt(5 / len(values)))
