"""Measures one operating point from power samples and step reports (method A, 4.1; DESIGN 5.4).

T_s is the mean step time scaled to the table's samples. The peak is the largest window mean seen while the point ran.
A measurement lasts only until it is certain enough: both standard deviations below ``precision``, and, where the peak
is within its error of the cap, a little longer (``decide_window_s``). A point that is surely above the cap is given up
at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from .energy import EnergyMeter, WindowMean
from .events import Sample, StepsReported
from .lut import Cell
from .settings import ProfileSettings
from .values import OperatingPoint

_SEEN_S = 0.3  # the clock is shown for so long before power counts: the sensor averages and lags
_EARLY_S = 0.4  # so long a mean may give a point up before a whole window is over
_SURE = 2.0  # standard deviations of a window mean by which a point has to be above the cap to be given up
_STRADDLE = 0.02  # share of a step that may have run before the clock held
_ONE_REPORT = 0.02  # relative standard deviation of a step time that was reported once only
_UNSTEADY = 0.05  # relative standard deviation of a step time above which something else ran


@dataclass(frozen=True)
class Verdict:
    """A finished measurement: the cell, or ``invalid`` saying why it should be repeated.

    With both, the cell is better than none where repeating does not help: its standard deviations say how good it is.
    """

    cell: Cell | None
    invalid: str | None = None


_WHOLE = 0.9  # of the samples that whole batches have


class StepTimes:
    """Seconds per sample from step reports: the ratio of sums, and its standard deviation."""

    def __init__(self) -> None:
        self.steps = 0
        self.samples = 0
        self.elapsed_s = 0.0
        self._reports: list[tuple[int, float]] = []

    def add(self, report: StepsReported) -> None:
        """Take one report."""
        self.steps += report.steps
        self.samples += report.samples
        self.elapsed_s += report.elapsed_s
        self._reports.append((report.samples, report.elapsed_s))

    @property
    def sample_s(self) -> float | None:
        """Mean seconds per sample."""
        return self.elapsed_s / self.samples if self.samples else None

    @property
    def relative_std(self) -> float | None:
        """Relative standard deviation of ``sample_s`` (ratio estimator); an assumed one for a single report."""
        mean, n = self.sample_s, len(self._reports)
        if mean is None:
            return None
        if n == 1:
            return _ONE_REPORT
        residual = sum((elapsed - mean * samples) ** 2 for samples, elapsed in self._reports)
        return math.sqrt(residual * n / (n - 1)) / self.elapsed_s


class PointMeter:
    """Collects what arrives for ``point``; ``verdict`` says when it is done.

    Power counts from ``begin_s`` on, when clock and sensor have settled; where telemetry shows the clock, as soon as
    it was seen long enough, and not before ``earliest_s``. A step counts when it began after that, or after telemetry
    first showed the clock (at most 2 % of the step before it).
    """

    def __init__(
        self, point: OperatingPoint, begin_s: float, settings: ProfileSettings, cap_w: float | None, window_s: float,
        *, earliest_s: float | None = None,
    ) -> None:  # fmt: skip
        self.point = point
        self._begin_s = begin_s
        self._earliest_s = begin_s if earliest_s is None else min(begin_s, earliest_s)
        self._settings = settings
        self._cap_w = cap_w
        self._window = WindowMean(window_s)
        self._early = WindowMean(min(_EARLY_S, window_s))
        self._energy = EnergyMeter(None)
        self._peak_w: float | None = None
        self._lowest_w: float | None = None
        self._given_up_w: float | None = None
        self._readings: set[float] = set()
        self._clock_sum = 0.0
        self._clock_seen = 0
        self._held_s: float | None = None
        self._times = StepTimes()
        self._means: list[float] = []  # of windows that do not overlap
        self._next_mean_s = begin_s + window_s
        self._trail: list[tuple[float, float, float]] = []  # time, joules and seconds integrated up to it
        self._from_s: float | None = None  # the steps that count lasted from here ...
        self._until_s = begin_s  # ... to here
        self._enough_s: float | None = None

    def sample(self, sample: Sample) -> None:
        """Take a power sample; of those before ``begin_s`` only the clock is looked at."""
        hz = sample.gpu_frequency_hz
        if hz is not None:
            holds = abs(hz / self.point.gpu_frequency_hz - 1) <= self._settings.clock_tolerance
            self._held_s = None if not holds else sample.t_s if self._held_s is None else self._held_s
        t_s, held_s = sample.t_s, self._held_s
        if self._earliest_s <= t_s < self._begin_s and held_s is not None and t_s >= held_s + _SEEN_S:
            self._begin_s = t_s
            self._next_mean_s = t_s + self._window.window_s
        power = sample.input_power_w
        if held_s is not None or t_s >= self._begin_s:  # a step may count from where the clock held: so does its power
            self._energy.add(t_s, power)
            self._trail.append((t_s, self._energy.energy_j, self._energy.covered_s))
        if t_s < self._begin_s:
            return
        self._window.add(sample.t_s, power)
        self._early.add(sample.t_s, power)
        if power is not None:
            if len(self._readings) < self._settings.min_readings:
                self._readings.add(power)
            self._look_at(sample.t_s, power)
        if hz is not None:
            self._clock_sum += hz
            self._clock_seen += 1

    def steps(self, report: StepsReported) -> None:
        """Take a step report; one that began before the clock held or used another batch size is left out."""
        begun_s = report.t_s - report.elapsed_s
        held_s = self._begin_s if self._held_s is None else min(self._begin_s, self._held_s)
        whole = report.steps * report.batch_size
        if not _WHOLE * whole <= report.samples <= whole:
            return  # steps of another size than the batch size: an epoch's last ones, or a script that did not follow
        if report.batch_size == self.point.batch_size and begun_s >= held_s - max(1e-3, _STRADDLE * report.elapsed_s):
            self._times.add(report)
            self._from_s = begun_s if self._from_s is None else min(self._from_s, begun_s)
            self._until_s = max(self._until_s, report.t_s)

    def _look_at(self, t_s: float, power: float) -> None:
        mean, early, cap = self._window.value, self._early.value, self._cap_w
        self._lowest_w = power if self._lowest_w is None else min(self._lowest_w, power)
        if mean is not None and t_s >= self._begin_s + self._window.window_s - 1e-6:  # whole windows only
            if self._peak_w is None or mean > self._peak_w:
                self._peak_w = mean
            if t_s >= self._next_mean_s:
                self._means.append(mean)
                self._next_mean_s = t_s + self._window.window_s
        if cap is None or self._given_up_w is not None:
            return
        sure_w = cap * (1 + _SURE * self._settings.power_noise)
        if self._peak_w is not None:
            if self._peak_w >= sure_w:
                self._given_up_w = self._peak_w
        elif early is not None and self._short_steps():
            # Even if the rest of the window were as low as the lowest reading, its mean would be above the cap.
            share = self._early.window_s / self._window.window_s
            least = share * early + (1 - share) * self._lowest_w
            if least >= sure_w and len(self._readings) >= min(3, self._settings.min_readings):
                self._given_up_w = early

    @property
    def begun(self) -> bool:
        """Whether a step counted already."""
        return self._times.steps > 0

    def _short_steps(self) -> bool:
        """Whether a fraction of the window is known to hold whole steps: else it may show their hungriest part only."""
        steps = self._times.steps
        return steps > 0 and self._times.elapsed_s / steps <= self._early.window_s / 2

    def surely_above(self) -> bool:
        """Whether the cap is exceeded by more than the readings' error, so that measuring on would only cost."""
        return self._given_up_w is not None

    def verdict(self, now_s: float) -> Verdict | None:
        """The result once there is one; None while the measurement goes on."""
        s, times = self._settings, self._times
        if self._given_up_w is not None:
            wrong = self._wrong_clock()
            std_w = s.power_noise * self._given_up_w
            cell = Cell(None, self._given_up_w, None, "infeasible", None, std_w)
            return Verdict(cell if wrong is None else None, wrong)
        enough = times.elapsed_s >= s.min_window_s and times.steps >= s.min_steps
        long_steps = times.steps >= 1 and times.elapsed_s >= s.long_step_s
        if not (enough or long_steps):
            if now_s - self._begin_s > s.max_window_s:
                return Verdict(None, f"only {times.steps} steps in {s.max_window_s:g} s")
            return None
        self._enough_s = now_s if self._enough_s is None else self._enough_s
        if self._peak_w is None or len(self._readings) < s.min_readings:
            if now_s - max(self._enough_s, self._begin_s) < 2 * self._window.window_s + s.min_window_s:
                return None  # the power readings may only be late
            if self._energy.mean_power_w is None:
                return Verdict(None, "no power reading")
            return Verdict(None, f"only {len(self._readings)} distinct power readings: the sensor may be stuck")
        if not self._certain(now_s):
            return None
        wrong = self._wrong_clock()
        if wrong is not None:
            return Verdict(None, wrong)
        assert times.sample_s is not None
        assert times.relative_std is not None
        time_s = times.sample_s * s.samples
        cell = Cell(
            time_s,
            self._peak_w,
            self._mean_power_w(),
            "measured",
            times.relative_std * time_s,
            self._power_std_w(),
        )
        if times.relative_std > _UNSTEADY:
            return Verdict(cell, f"step times vary by {100 * times.relative_std:.0f} %: something else may have run")
        return Verdict(cell)

    def _certain(self, now_s: float) -> bool:
        """Whether measuring on would change little: precise enough, or as long as it is ever worth."""
        s = self._settings
        if now_s - self._begin_s >= s.decide_window_s + self._times.elapsed_s / max(1, self._times.steps):
            return True
        if (self._times.relative_std or 0.0) > max(s.precision, _ONE_REPORT if self._times.steps == 1 else 0.0):
            return False
        assert self._peak_w is not None
        return self._cap_w is None or abs(self._cap_w - self._peak_w) >= _SURE * self._power_std_w()

    def _power_std_w(self) -> float:
        """Standard deviation of the peak: what disjoint windows show, but not less than the sensor's own."""
        assert self._peak_w is not None
        own = self._settings.power_noise * self._peak_w
        n = len(self._means)
        if n < 3 or self._times.elapsed_s / max(1, self._times.steps) > self._window.window_s / 2:
            return own  # windows shorter than a few steps differ by what part of a step they see
        mean = sum(self._means) / n
        return max(own, math.sqrt(sum((m - mean) ** 2 for m in self._means) / (n - 1) / n))

    def _mean_power_w(self) -> float | None:
        """Mean power over the steps that count: a part of a long step would not be its mean."""
        times = [t for t, _, _ in self._trail]
        i = 0 if self._from_s is None else bisect_left(times, self._from_s)
        j = bisect_right(times, self._until_s) - 1
        if j > i and self._trail[j][2] > self._trail[i][2]:
            return (self._trail[j][1] - self._trail[i][1]) / (self._trail[j][2] - self._trail[i][2])
        return self._energy.mean_power_w

    def _wrong_clock(self) -> str | None:
        """A read-back is not proof that the clock holds; what tegrastats saw is (where it shows a clock)."""
        if not self._clock_seen:
            return None
        mean = self._clock_sum / self._clock_seen
        wanted = self.point.gpu_frequency_hz
        if abs(mean / wanted - 1) > self._settings.clock_tolerance:
            return f"the clock was {mean / 1e6:.0f} MHz on average, not {wanted / 1e6:.0f} MHz"
        return None
