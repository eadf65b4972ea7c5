"""One fine-tuning job under the live energy policy, from curves alone: time, energy, reference and probing included.

The governor that runs live decides; this file is the board and the job around it: the clock's delay, steps, and power
readings twice a second with the noise that a public AGX Orin trace has (1 s means: sd 1.5 %, autocorrelation 0.7) and
a level that drifts slowly. While the governor only holds a clock, time goes in long strides. Simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traingov_policies.actions import Action, AdviseBatch, Decided, PersistCurve, RestoreGpuBounds, SetGpuBounds
from traingov_policies.events import Event, JobRegistered, KnobReadBack, Sample, StepsReported
from traingov_policies.governor import Governor
from traingov_policies.search.curves import Curve
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Features

from ..surfaces.orin_pairs import CLOCKS
from ..surfaces.published_orin import BATCH
from ..surfaces.search import Array

BOARD = Board("agx-orin", "R36.4.3", "MAXN", CLOCKS)
NOISE_SD = 0.016  # of half-second readings: 1.5 % of one-second means
NOISE_RHO = 0.7  # a second later
DRIFT_SD_PER_MINUTE = 0.005
SWITCH_S = 0.56  # the virtual board's: from a write to the clock
STRIDE_S = 0.5
LONG_STRIDE_S = 60.0


@dataclass(frozen=True)
class Costs:
    """Of one step at each clock: ``time_s``, ``compute_j``, ``input_j``, GPU ``utilization`` in percent; [clocks].

    The last clock is mode 0's.
    """

    time_s: Array
    compute_j: Array
    input_j: Array
    utilization: Array


@dataclass(frozen=True)
class JobResult:
    """Seconds and joules (compute) of the whole job, probes made, the clock where it ended, and what is remembered."""

    time_s: float
    energy_j: float
    probes: int
    clock_hz: int
    curve: Curve | None


class GovernedJob:
    """``steps`` steps of a workload under ``settings`` (policy energy)."""

    def __init__(
        self, workload: str, features: Features, costs: Costs, steps: int, *, settings: Settings,
        rng: np.random.Generator, curves: Sequence[Curve] = (), remembered: Sequence[Curve] = (),
    ) -> None:  # fmt: skip
        self._costs, self._left, self._rng = costs, float(steps), rng
        self._top = len(CLOCKS) - 1
        self._clock = self._top
        self._due: tuple[float, int] | None = None  # a written clock and when it holds
        self._t_s = self._used_j = 0.0
        self._done = 0.0
        self._reported, self._reported_s = 0, 0.0
        self._level, self._noise = 0.0, float(rng.normal(0, NOISE_SD))
        self._settled, self._probes = False, 0
        self._governor = Governor(BOARD, settings)
        self._first = JobRegistered(
            0.0, "job", workload, (BATCH,), BATCH, features=features, samples_total=steps * BATCH,
            curves=tuple(curves), remembered=tuple(remembered),
        )  # fmt: skip
        self._curve: Curve | None = None

    def run(self) -> JobResult:
        """The whole job."""
        self._feed(self._first)
        while self._left > 1e-9:
            stride = LONG_STRIDE_S if self._settled else STRIDE_S
            self._train(stride)
            self._report()
            self._read_power(stride)
        return JobResult(self._t_s, self._used_j, self._probes, CLOCKS[self._clock], self._curve)

    def _feed(self, event: Event) -> None:
        for action in self._governor.handle(event):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case SetGpuBounds(min_hz, max_hz):
                self._due = (self._t_s + SWITCH_S, CLOCKS.index(max_hz))
                self._feed(KnobReadBack(self._t_s, min_hz, max_hz, min_hz, max_hz))
            case RestoreGpuBounds():
                self._due = (self._t_s + SWITCH_S, self._top)
            case AdviseBatch(phase="profile"):
                self._settled = False
            case PersistCurve(curve):
                self._curve = curve
            case Decided(kind="searched", detail=detail):
                self._settled = True
                probes = detail["probes"]
                assert isinstance(probes, int)
                self._probes = probes
            case Decided(kind="tree") if self._governor.snapshot()["state"] == "holding":
                self._settled = True
            case _:
                pass

    def _train(self, seconds: float) -> None:
        """Let ``seconds`` pass, or less where the job ends; a written clock takes hold on the way."""
        until = self._t_s + seconds
        while self._t_s < until - 1e-12 and self._left > 1e-9:
            stop = until
            if self._due is not None:
                hold_s, clock = self._due
                if hold_s <= self._t_s + 1e-12:
                    self._clock, self._due = clock, None
                    continue
                stop = min(stop, hold_s)
            step_s = float(self._costs.time_s[self._clock])
            steps = min(self._left, (stop - self._t_s) / step_s)
            self._left -= steps
            self._done += steps
            self._t_s += steps * step_s
            self._used_j += steps * float(self._costs.compute_j[self._clock])

    def _report(self) -> None:
        """Whole steps that ended since the last report."""
        whole = math.floor(self._done + 1e-9)
        steps = whole - self._reported
        if steps < 1:
            return
        end_s = self._t_s - (self._done - whole) * float(self._costs.time_s[self._clock])
        end_s = min(max(end_s, self._reported_s + 1e-6), self._t_s)
        elapsed = end_s - self._reported_s
        self._reported, self._reported_s = whole, end_s
        self._feed(StepsReported(self._t_s, "job", BATCH, steps, steps * BATCH, elapsed, True))

    def _read_power(self, stride: float) -> None:
        keep = NOISE_RHO**stride
        self._noise = keep * self._noise + math.sqrt(1 - keep**2) * float(self._rng.normal(0, NOISE_SD))
        self._level += float(self._rng.normal(0, DRIFT_SD_PER_MINUTE * math.sqrt(stride / 60)))
        factor = math.exp(self._level + self._noise)
        c, at = self._costs, self._clock
        per_s = factor / float(c.time_s[at])
        self._feed(
            Sample(
                *(self._t_s, float(c.input_j[at]) * per_s, float(c.compute_j[at]) * per_s),
                *(CLOCKS[at], float(c.utilization[at]) / 100, 50.0),
            )
        )
