"""What an energy sweep keeps between events: the wish and its rows, and the meter of one point (method B)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .energy import EnergyMeter
from .events import Sample, StepsReported, SweepRequested
from .sweep import MODE0, SweepRow

if TYPE_CHECKING:
    from .context import Job

SAMPLES = 4096  # training samples that a row's time and energies are scaled to; the same in every sweep
DURATION_S = 300.0  # the paper's five minutes
SETTLE_S = 2.0
HOT_CELSIUS = 75.0
_STEPS_LEAST = 3
_COVERED_LEAST = 0.8


def clock_text(gpu_frequency_hz: int | None) -> str:
    """A clock in words; None is mode 0."""
    return "mode 0" if gpu_frequency_hz is None else f"{gpu_frequency_hz / 1e6:g} MHz"


@dataclass
class SweepRun:
    """A sweep that was asked for. ``points``: clocks in Hz, None for mode 0, in the order of measuring.

    ``state``: "running"; "waiting" for the workload to run (again, or alone); "finished"; "stopped".
    """

    workload: str
    job: str
    points: tuple[int | None, ...]
    duration_s: float | None
    steps: int | None
    rows: list[SweepRow]
    failed: dict[int | None, str] = field(default_factory=dict)
    state: str = "running"
    text: str = "energy sweep"

    @classmethod
    def of(cls, event: SweepRequested, workload: str) -> SweepRun:
        """The run that an event asks for; rows that were measured before are kept."""
        duration = DURATION_S if event.duration_s is None and event.steps is None else event.duration_s
        points = (None, *sorted(event.clocks_hz))
        return cls(workload, event.job, points, duration, event.steps, list(event.done))

    @property
    def active(self) -> bool:
        """Whether it goes on, now or when the workload runs again."""
        return self.state in ("running", "waiting")

    def left(self) -> list[int | None]:
        """Points neither measured nor given up."""
        done = {row.gpu_frequency_hz for row in self.rows}
        return [clock for clock in self.points if clock not in done and clock not in self.failed]

    def finish(self) -> None:
        """All points are measured or given up."""
        given_up = "".join(f"; {clock_text(clock)} given up: {why}" for clock, why in self.failed.items())
        measured = len(self.points) - len(self.failed)
        self.state, self.text = "finished", f"energy sweep finished, {measured} of {len(self.points)} points{given_up}"

    def stop(self, why: str) -> None:
        """It does not go on by itself; what was measured is kept."""
        self.state, self.text = "stopped", f"energy sweep stopped: {why}"

    def wait(self, why: str) -> None:
        """It goes on by itself once it can."""
        self.state, self.text = "waiting", f"energy sweep waits {why}; {len(self.left())} points to go"

    def to_json(self) -> dict[str, Any]:
        """For ``traingov status``."""
        return {
            "workload": self.workload,
            "job": self.job,
            "state": self.state,
            "text": self.text,
            "points": len(self.points),
            "measured": len(self.points) - len(self.failed) - len(self.left()),
            "failed": {MODE0 if clock is None else str(clock): why for clock, why in self.failed.items()},
        }


class SweepMeter:
    """Collects one point from ``begin_s`` on: whole step windows, both powers, utilization, the clock that was seen."""

    def __init__(self, gpu_frequency_hz: int | None, begin_s: float) -> None:
        self._clock_hz = gpu_frequency_hz
        self._begin_s = begin_s
        self._compute, self._input = EnergyMeter(None), EnergyMeter(None)
        self._clock_sum, self._clock_seen = 0.0, 0
        self._busy_sum, self._busy_seen = 0.0, 0
        self._steps = self._samples = 0
        self.elapsed_s = 0.0
        self.last_s = begin_s

    def sample(self, sample: Sample) -> None:
        """Take a sample; those before the beginning are left out."""
        if sample.t_s < self._begin_s:
            return
        self._compute.add(sample.t_s, sample.compute_power_w)
        self._input.add(sample.t_s, sample.input_power_w)
        if sample.gpu_frequency_hz is not None:
            self._clock_sum += sample.gpu_frequency_hz
            self._clock_seen += 1
        if sample.gpu_utilization is not None:
            self._busy_sum += sample.gpu_utilization
            self._busy_seen += 1

    def steps(self, report: StepsReported) -> None:
        """Take a window of steps; one that began before is left out."""
        self.last_s = report.t_s
        if report.t_s - report.elapsed_s >= self._begin_s - 1e-3:
            self._steps += report.steps
            self._samples += report.samples
            self.elapsed_s += report.elapsed_s

    def enough(self, duration_s: float | None, steps: int | None) -> bool:
        """Whether the wished time or number of steps is reached, whichever comes first."""
        by_time = duration_s is not None and self.elapsed_s >= duration_s and self._steps >= _STEPS_LEAST
        return by_time or (steps is not None and self._steps >= steps)

    def row(self, job: Job, clock_tolerance: float) -> SweepRow | str:
        """The row, or why there is none. Energy is mean power × time, both scaled to ``SAMPLES`` samples."""
        if not self._steps or self._steps < min(_STEPS_LEAST, self._samples):
            return f"only {self._steps} steps"
        compute_w, input_w = self._compute.mean_power_w, self._input.mean_power_w
        if compute_w is None and input_w is None:
            return "no power reading"
        seen = max(self._compute.covered_s, self._input.covered_s) / self.elapsed_s
        if seen < _COVERED_LEAST:
            return f"power readings cover {100 * seen:.0f} % of the time only"
        if self._clock_hz is not None and self._clock_seen:
            mean = self._clock_sum / self._clock_seen
            if abs(mean / self._clock_hz - 1) > clock_tolerance:
                return f"the clock was {mean / 1e6:.0f} MHz on average, not {self._clock_hz / 1e6:.0f} MHz"
        time_s = self.elapsed_s / self._samples * SAMPLES
        features = job.registered.features
        return SweepRow(
            job.registered.workload,
            features.model_type,
            features.layers,
            features.hidden_size,
            job.seq_len_avg,
            100 * self._busy_sum / self._busy_seen if self._busy_seen else None,
            self._clock_hz,
            time_s,
            None if compute_w is None else compute_w * time_s,
            None if input_w is None else input_w * time_s,
        )
