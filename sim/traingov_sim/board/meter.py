"""True energy and busy time of a virtual board, exact because power is constant between events."""

from __future__ import annotations

Watts = tuple[float, float, float]


class Meter:
    """Counters since the start, and sums since the last tick. Powers are (input, GPU, CPU) in watts."""

    __slots__ = ("_busy", "_cpu", "_gpu", "_host", "_input", "busy_s", "compute_j", "input_j")

    def __init__(self) -> None:
        self.input_j = self.compute_j = self.busy_s = 0.0
        self._input = self._gpu = self._cpu = self._busy = self._host = 0.0

    def add(self, dt_s: float, power_w: Watts, busy: bool, active: bool) -> None:
        """Let ``dt_s`` pass at this power. ``busy``: the GPU computes; ``active``: a step is on its way."""
        input_w, gpu_w, cpu_w = power_w
        self.input_j += input_w * dt_s
        self.compute_j += (gpu_w + cpu_w) * dt_s
        self._input += input_w * dt_s
        self._gpu += gpu_w * dt_s
        self._cpu += cpu_w * dt_s
        if busy:
            self._busy += dt_s
            self.busy_s += dt_s
        elif active:
            self._host += dt_s

    def take_means(self, period_s: float) -> tuple[Watts, float, float]:
        """Mean powers since the last call, and the shares of that ``period_s`` that GPU and host worked, 0..1."""
        means = (self._input / period_s, self._gpu / period_s, self._cpu / period_s)
        busy, host = min(1.0, self._busy / period_s), min(1.0, self._host / period_s)
        self._input = self._gpu = self._cpu = self._busy = self._host = 0.0
        return means, busy, host
