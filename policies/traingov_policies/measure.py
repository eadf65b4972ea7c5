"""Measures one operating point from power samples and step reports (method A, 4.1; DESIGN 5.4).

T_s is the mean step time scaled to the table's samples. The peak is the largest window mean seen while the point ran.
"""

from __future__ import annotations

from dataclasses import dataclass

from .energy import EnergyMeter, WindowMean
from .events import Sample, StepsReported
from .lut import Cell
from .settings import ProfileSettings
from .values import OperatingPoint


@dataclass(frozen=True)
class Verdict:
    """A finished measurement: the cell, or ``invalid`` saying why it cannot be used."""

    cell: Cell | None
    invalid: str | None = None


class PointMeter:
    """Collects what arrives after ``begin_s`` for ``point``; ``verdict`` says when it is done."""

    def __init__(
        self, point: OperatingPoint, begin_s: float, settings: ProfileSettings, cap_w: float | None, window_s: float
    ) -> None:
        self.point = point
        self._begin_s = begin_s
        self._settings = settings
        self._cap_w = cap_w
        self._window = WindowMean(window_s)
        self._energy = EnergyMeter(None)
        self._peak_w: float | None = None
        self._readings: set[float] = set()
        self._clock_sum = 0.0
        self._clock_seen = 0
        self._steps = 0
        self._samples = 0
        self._elapsed_s = 0.0

    def sample(self, sample: Sample) -> None:
        """Take a power sample; those before ``begin_s`` are the settling clock's and are left out."""
        if sample.t_s < self._begin_s:
            return
        power = sample.input_power_w
        self._energy.add(sample.t_s, power)
        self._window.add(sample.t_s, power)
        if power is not None:
            if len(self._readings) < self._settings.min_readings:
                self._readings.add(power)
            mean = self._window.value
            if mean is not None and (self._peak_w is None or mean > self._peak_w):
                self._peak_w = mean
        if sample.gpu_frequency_hz is not None:
            self._clock_sum += sample.gpu_frequency_hz
            self._clock_seen += 1

    def steps(self, report: StepsReported) -> None:
        """Take a step report; one that began before ``begin_s`` or used another batch size is left out."""
        if report.batch_size == self.point.batch_size and report.t_s - report.elapsed_s >= self._begin_s - 1e-3:
            self._steps += report.steps
            self._samples += report.samples
            self._elapsed_s += report.elapsed_s

    def surely_above(self) -> bool:
        """Whether a whole window already reached the cap, so that measuring on would only cost."""
        return self._cap_w is not None and self._peak_w is not None and self._peak_w >= self._cap_w

    def verdict(self, now_s: float) -> Verdict | None:
        """The result once there is one; None while the measurement goes on."""
        if self.surely_above():
            wrong = self._wrong_clock()
            return Verdict(Cell(None, self._peak_w, None, "infeasible") if wrong is None else None, wrong)
        s = self._settings
        enough = self._elapsed_s >= s.min_window_s and self._steps >= s.min_steps
        long_steps = self._steps >= 1 and self._elapsed_s >= s.long_step_s
        if not (enough or long_steps):
            if now_s - self._begin_s > s.max_window_s:
                return Verdict(None, f"only {self._steps} steps in {s.max_window_s:g} s")
            return None
        if self._peak_w is None or len(self._readings) < s.min_readings:
            if now_s - self._begin_s < self._elapsed_s + 2 * self._window.window_s + s.min_window_s:
                return None  # the power readings may only be late
            if self._energy.mean_power_w is None:
                return Verdict(None, "no power reading")
            return Verdict(None, f"only {len(self._readings)} distinct power readings: the sensor may be stuck")
        wrong = self._wrong_clock()
        if wrong is not None:
            return Verdict(None, wrong)
        time_s = self._elapsed_s / self._samples * s.samples
        return Verdict(Cell(time_s, self._peak_w, self._energy.mean_power_w, "measured"))

    def _wrong_clock(self) -> str | None:
        """A read-back is not proof that the clock holds; what tegrastats saw is (where it shows a clock)."""
        if not self._clock_seen:
            return None
        mean = self._clock_sum / self._clock_seen
        wanted = self.point.gpu_frequency_hz
        if abs(mean / wanted - 1) > self._settings.clock_tolerance:
            return f"the clock was {mean / 1e6:.0f} MHz on average, not {wanted / 1e6:.0f} MHz"
        return None
