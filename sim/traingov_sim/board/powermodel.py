"""True power of a virtual board: idle or a phase's power, times leakage and slow wander. Pure."""

from __future__ import annotations

import math
import random

from ..surface import Phase
from .boardspec import PowerSpec, RailSpec
from .meter import Watts


class PowerModel:
    """Powers are (input, GPU, CPU) in watts, at the temperature and wander of the last ``move``."""

    def __init__(self, spec: PowerSpec, rails: tuple[RailSpec, ...], period_s: float, rng: random.Random) -> None:
        self._spec = spec
        self._rails = rails
        self._rng = rng
        self._wander = 0.0
        self._keep = math.exp(-period_s / spec.wander_tau_s)
        self._kick = spec.wander_sd * math.sqrt(1 - self._keep * self._keep)
        self._factor = 1.0
        self.others: Watts = (0.0, 0.0, 0.0)  # what is drawn beside the job, or saved, whatever runs

    def move(self, die_celsius: float) -> None:
        """Let one period of wander pass, at this temperature."""
        if self._kick:
            self._wander = self._keep * self._wander + self._kick * self._rng.gauss(0.0, 1.0)
        spec = self._spec
        self._factor = 1 + spec.leakage_per_kelvin * (die_celsius - spec.reference_celsius) + self._wander

    def idle(self, clock_share: float) -> Watts:
        """Nothing runs; the GPU clock stands at this share of its highest."""
        spec, factor = self._spec, self._factor
        extra = spec.idle_clock_w * clock_share
        return self._all(spec.idle_input_w + extra, spec.idle_gpu_w + extra, spec.idle_cpu_w, factor)

    def loaded(self, phase: Phase, disturbed: float = 1.0, gpu_share: float = 1.0) -> Watts:
        """A phase runs; ``disturbed`` multiplies what it draws above idle, on the GPU's side.

        ``gpu_share``: the share of its clock's pulses that the GPU gets; the others cost idle power.
        """
        factor = self._factor
        extra = 0.0
        if disturbed != 1.0:
            extra = (phase.input_power_w - self._spec.idle_input_w) * (disturbed - 1)
        if gpu_share != 1.0:
            extra -= (1 - gpu_share) * max(0.0, phase.gpu_power_w + extra - self._spec.idle_gpu_w)
        return self._all(phase.input_power_w + extra, phase.gpu_power_w + extra, phase.cpu_power_w, factor)

    def _all(self, input_w: float, gpu_w: float, cpu_w: float, factor: float) -> Watts:
        other_input_w, other_gpu_w, other_cpu_w = self.others
        return (input_w + other_input_w) * factor, (gpu_w + other_gpu_w) * factor, (cpu_w + other_cpu_w) * factor

    def rails_w(self, power: Watts) -> list[float]:
        """The power of each rail."""
        input_w, gpu_w, cpu_w = power
        rest_w = input_w - gpu_w - cpu_w
        return [rail.gpu * gpu_w + rail.cpu * cpu_w + rail.rest * rest_w for rail in self._rails]
