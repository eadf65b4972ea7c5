"""One reading: energy per sample at one clock, from power and step reports, long enough for the noise at hand."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from ..energy import EnergyMeter
from ..events import Sample, StepsReported

_PIECE_S = 1.0
_AUTOCORRELATION = 0.7  # of one-second means of a training board's power (method B, drift)
_STRETCH = (1 + _AUTOCORRELATION) / (1 - _AUTOCORRELATION)
_SD_LEAST = 0.002  # no reading is trusted further: quantised sensors repeat themselves
_COVERED = 0.95  # share of the time that reported steps must cover, or power is not that of training
_SD_UNKNOWN = 0.01


@dataclass(frozen=True)
class Measured:
    """Energy in joules and time in seconds per sample, and the relative standard error of the energy that counts."""

    compute_energy_j: float | None
    input_energy_j: float | None
    time_s: float
    sd: float


@dataclass(frozen=True)
class Outcome:
    """A finished window: the reading, or ``invalid`` saying why it cannot be used.

    ``paused``: the job did not train all the while, which says nothing against the clock.
    """

    measured: Measured | None
    invalid: str | None = None
    paused: bool = False


class Noise:
    """How much one-second means of power scatter about their window's mean, over the last windows (relative sd)."""

    def __init__(self) -> None:
        self._squares: deque[float] = deque(maxlen=120)

    def add(self, pieces: list[float]) -> None:
        """Take a finished window's one-second means in watts."""
        mean = sum(pieces) / len(pieces) if pieces else 0.0
        if len(pieces) >= 3 and mean > 0:
            # A lone stalled second is not noise: it is clipped at three times the usual.
            share = len(pieces) / (len(pieces) - 1)
            limit = 3 * self.sd
            self._squares += [share * min(abs(p / mean - 1), limit) ** 2 for p in pieces]

    @property
    def sd(self) -> float:
        """The estimate; 1 % before any window."""
        n = len(self._squares)
        return math.sqrt((sum(self._squares) + 5 * _SD_UNKNOWN**2) / (n + 5))

    def standard_error(self, seconds: float) -> float:
        """Of a mean over ``seconds``, with neighbouring seconds alike."""
        return max(self.sd * math.sqrt(_STRETCH / max(seconds, 1.0)), _SD_LEAST)

    def needed_s(self, standard_error: float) -> float:
        """Seconds until a mean is known as well as that."""
        return _STRETCH * (self.sd / standard_error) ** 2


class Window:
    """Collects what arrives after ``begin_s`` at ``frequency_hz`` for a job at ``batch_size``.

    Done after ``wanted_s`` of reported steps and at least ``min_steps`` of them (one, if steps are long); given up
    ``most_s`` later than that. ``power`` is which of the two readings counts. A clock off by more than ``tolerance``
    on average makes it invalid.
    """

    def __init__(
        self, frequency_hz: int, batch_size: int, begin_s: float, wanted_s: float, most_s: float, *,
        power: str, min_steps: int, min_readings: int, tolerance: float,
    ) -> None:  # fmt: skip
        self._frequency_hz, self._batch_size, self._begin_s = frequency_hz, batch_size, begin_s
        self._wanted_s, self._most_s = wanted_s, most_s
        self._power, self._min_steps, self._min_readings = power, min_steps, min_readings
        self._tolerance = tolerance
        self._compute, self._input = EnergyMeter(None), EnergyMeter(None)
        self._piece, self._piece_end_s = EnergyMeter(None), begin_s + _PIECE_S
        self.pieces: list[float] = []
        self._readings: set[float] = set()
        self._clock_sum, self._clock_seen = 0.0, 0
        self._steps, self._samples, self._elapsed_s = 0, 0, 0.0
        self._first_s: float | None = None
        self._last_s = begin_s
        self._sampled_s = begin_s
        self._paused_s = 0.0

    def sample(self, sample: Sample, *, paused: bool = False) -> None:
        """Take a power sample; one before ``begin_s`` shows the settling clock and is left out, and so is one of a
        pause that the job told of.
        """
        if sample.t_s < self._begin_s:
            return
        self._paused_s += sample.t_s - self._sampled_s if paused else 0.0
        self._sampled_s = sample.t_s
        if paused:
            return
        self._compute.add(sample.t_s, sample.compute_power_w)
        self._input.add(sample.t_s, sample.input_power_w)
        watts = sample.compute_power_w if self._power == "compute" else sample.input_power_w
        self._piece.add(sample.t_s, watts)
        if sample.t_s >= self._piece_end_s:
            if (mean := self._piece.mean_power_w) is not None:
                self.pieces.append(mean)
            self._piece, self._piece_end_s = EnergyMeter(None), sample.t_s + _PIECE_S
            self._piece.add(sample.t_s, watts)
        if watts is not None and len(self._readings) < self._min_readings:
            self._readings.add(watts)
        if sample.gpu_frequency_hz is not None:
            self._clock_sum += sample.gpu_frequency_hz
            self._clock_seen += 1

    def steps(self, report: StepsReported) -> None:
        """Take a step report; one that began before ``begin_s`` or used another batch size is left out."""
        if report.batch_size == self._batch_size and report.t_s - report.elapsed_s >= self._begin_s - 1e-3:
            self._steps += report.steps
            self._samples += report.samples
            self._elapsed_s += report.elapsed_s
            self._last_s = report.t_s
            if self._first_s is None:
                self._first_s = report.t_s - report.elapsed_s

    def outcome(self, now_s: float, noise: Noise) -> Outcome | None:
        """The result once there is one; None while it goes on. Every window ends within a bounded time."""
        late = now_s - self._begin_s > self._wanted_s + self._most_s
        if self._elapsed_s < self._wanted_s or self._steps < self._min_steps:
            long_steps = self._steps >= 1 and now_s - self._begin_s > 2 * self._wanted_s
            if not late and not long_steps:
                return None
            if not self._steps:
                return Outcome(None, f"no whole step in {now_s - self._begin_s:.0f} s", paused=True)
        assert self._first_s is not None
        span_s = self._last_s - self._first_s - self._paused_s
        if self._elapsed_s < _COVERED * span_s:
            text = f"steps were reported for {self._elapsed_s:.1f} of {span_s:.1f} s"
            return Outcome(None, f"the job paused: {text}", paused=True)
        meter = self._compute if self._power == "compute" else self._input
        mean_w = meter.mean_power_w
        if mean_w is None or len(self._readings) < self._min_readings:
            if not late:
                return None  # the power readings may only be late
            if mean_w is None:
                return Outcome(None, f"no reading of {self._power} power")
            return Outcome(None, f"only {len(self._readings)} distinct power readings: the sensor may be stuck")
        if self._clock_seen:
            clock_hz = self._clock_sum / self._clock_seen
            if abs(clock_hz / self._frequency_hz - 1) > self._tolerance:
                wanted = f"{self._frequency_hz / 1e6:.0f} MHz"
                return Outcome(None, f"the clock was {clock_hz / 1e6:.0f} MHz on average, not {wanted}")
        noise.add(self.pieces)
        time_s = self._elapsed_s / self._samples
        energies = [None if (w := m.mean_power_w) is None else w * time_s for m in (self._compute, self._input)]
        return Outcome(Measured(energies[0], energies[1], time_s, noise.standard_error(self._elapsed_s)))
