"""One fine-tuning job under the energy search, from curves alone: time, energy and probing included.

The search's own code decides (``traingov_policies.search``); this file is the board and the job around it: the clock's
delay, settling, and readings with the noise that a public AGX Orin trace has (1 s means: sd 1.5 %, autocorrelation 0.7)
and a level that drifts slowly. Simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traingov_policies.search.options import SearchSettings
from traingov_policies.search.process import Mixture, Reading
from traingov_policies.search.search import Search, Stakes, Step

from ..surfaces.search import Array

NOISE_SD = 0.015
NOISE_RHO = 0.7
DRIFT_SD_PER_MINUTE = 0.005
SWITCH_S = 0.56  # the virtual board's: from a write to the clock
SETTLE_S = 0.5  # what the governor waits beyond it, for the sensor
REFERENCE_S = 3.0  # one look at utilization at mode 0, before the tree is asked
_STEPS_LEAST = 3  # a reading has at least so many steps


@dataclass(frozen=True)
class JobResult:
    """Seconds and joules (compute) of the whole job, probes, and the clock index where it ended (mode 0: the last)."""

    time_s: float
    energy_j: float
    probes: int
    index: int


class SearchedJob:
    """``time_s`` and ``energy_j`` [clocks] per step; ``steps`` to train; mode 0 is the last clock."""

    def __init__(
        self, time_s: Array, energy_j: Array, steps: int, *, prior: Mixture, start: int, settings: SearchSettings,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._t, self._e, self._left = time_s, energy_j, float(steps)
        self._settings, self._rng = settings, rng
        self._now_s = self._used_j = self._extra_j = 0.0
        self._at = len(time_s) - 1
        self._level, self._noise, self._noise_s = 0.0, float(rng.normal(0, NOISE_SD)), 0.0
        self._search = Search(prior, start, probes_most=settings.probes_most, noise_sd=settings.standard_error)
        self._start = start

    def run(self) -> JobResult:
        """The whole job."""
        search = self._search
        self._train(self._at, REFERENCE_S)
        while self._left > 0:
            step = search.next(range(len(self._t)), self._stakes)
            if step is None:
                break
            self._read(step)
        self._go_to(search.incumbent)
        self._train(self._at, math.inf)
        return JobResult(self._now_s, self._used_j, search.probes, self._at)

    def _train(self, index: int, seconds: float) -> float:
        """Train at a clock for so long or to the end; the seconds it was."""
        steps = min(self._left, seconds / float(self._t[index]))
        self._left -= steps
        self._now_s += steps * float(self._t[index])
        self._used_j += steps * float(self._e[index])
        self._extra_j += steps * max(0.0, float(self._e[index] - self._e[self._start]))
        return steps * float(self._t[index])

    def _go_to(self, index: int) -> None:
        if index != self._at:
            self._train(self._at, SWITCH_S)
            self._at = index
            self._train(index, SETTLE_S)

    def _window_s(self, index: int) -> float:
        """Until the standard error is small enough, within bounds; the noise's own correlation counts."""
        s = self._settings
        enough = (NOISE_SD / s.standard_error) ** 2 * (1 + NOISE_RHO) / (1 - NOISE_RHO)
        return max(min(max(enough, s.window_s), s.window_most_s), _STEPS_LEAST * float(self._t[index]))

    def _read(self, step: Step) -> None:
        self._go_to(step.index)
        window = self._window_s(step.index)
        if self._train(step.index, window) < window:
            return  # the job was over first
        value = math.log(float(self._e[step.index])) + self._error(window)
        sd = max(self._settings.standard_error, 1e-4)
        self._search.tell(Reading(step.index, self._now_s - window / 2, value, sd))

    def _error(self, window_s: float) -> float:
        """Mean over the window of correlated noise, and the level as it has drifted to now."""
        since, self._noise_s = self._now_s - self._noise_s, self._now_s
        self._level += float(self._rng.normal(0, DRIFT_SD_PER_MINUTE * math.sqrt(since / 60)))
        keep = NOISE_RHO ** max(0.0, since - window_s)
        noise = keep * self._noise + math.sqrt(1 - keep**2) * float(self._rng.normal(0, NOISE_SD))
        total, count = 0.0, max(1, round(window_s))
        for _ in range(count):
            noise = NOISE_RHO * noise + math.sqrt(1 - NOISE_RHO**2) * float(self._rng.normal(0, NOISE_SD))
            total += noise
        self._noise = noise
        return self._level + total / count

    def _stakes(self) -> Stakes:
        here = self._search.incumbent
        per_s = float(self._e[here] / self._t[here])
        s = self._settings
        window = self._window_s(here) + SWITCH_S + SETTLE_S
        allowance = s.loss_share * self._used_j + s.loss_s * per_s - self._extra_j
        # Reading the incumbent again is part of what a probe takes.
        return Stakes(max(0.0, self._left * float(self._e[here])), 2 * window * per_s, allowance)
