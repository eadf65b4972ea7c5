"""From parameters to a surface: the physics of one training step on a virtual board.

A step has three phases, each of steady power: the host prepares the batch, the GPU runs forward and backward, the
optimizer updates the weights. With φ = f / f_max and b the batch size (all times in seconds):

- host:   ``host_step_s + b · host_sample_s``; the CPU works, the GPU idles with its clock running.
- GPU:    the p-norm of three limits, none of which the others hide completely:
  compute ``compute_s · (padded(b) + half_batch) / φ``, where part of the work runs in whole waves of ``wave_size``
  samples and small batches leave lanes empty; memory ``b · memory_s + memory_step_s``, which the GPU clock does
  not speed up (the roofline's plateau); launching kernels, ``launch_s`` per step, which the CPU's clock sets.
- update: ``update_s · (1 − update_scaling + update_scaling / φ)``; bound by memory for the most part.

Power is idle + leakage(V) + dynamic · V² · φ · activity on the GPU rail, memory power by bandwidth, and the CPU
rail. V is a staircase over the clock (a floor, then a rise in regulator steps). Activity falls where lanes are
empty or wait for memory, so power need not rise with the batch size.

Every function takes numbers or NumPy arrays that broadcast, so that a calibration evaluates a whole population at
once with the code that the board runs. Everything here is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traingov_sim.surface import Phase, Scales

Values = Any  # a float or an array of float64; they broadcast
Parameters = Mapping[str, Values]

BOARD_PARAMETERS = (
    *("idle_w", "leakage_w", "dynamic_w", "voltage_floor", "voltage_knee", "voltage_bend"),
    *("idle_activity", "memory_w", "cpu_host_w", "cpu_wait_w"),
)
WORKLOAD_PARAMETERS = (
    *("compute_s", "half_batch", "wave_share", "wave_size", "memory_s", "memory_step_s", "launch_s", "norm"),
    *("host_step_s", "host_sample_s", "update_s", "update_scaling", "activity", "stall_activity", "lane_activity"),
)
TIME_PARAMETERS = (*("compute_s", "memory_s", "memory_step_s", "launch_s", "host_step_s", "host_sample_s", "update_s"),)
POWER_PARAMETERS = ("idle_w", "leakage_w", "dynamic_w", "memory_w", "cpu_host_w", "cpu_wait_w")

VOLTAGE_STEP = 0.02  # of V_max: about what the boards' regulators resolve
_HOST_MEMORY = 0.15  # share of memory_w that preparing a batch draws
_UPDATE_MEMORY = 0.9  # share of memory_w that the optimizer's update draws


@dataclass(frozen=True)
class StepArrays:
    """The three phases of a step (host, GPU, update), each value a float or an array.

    ``durations_s``, ``input_w``, ``gpu_w`` and ``cpu_w`` have one entry per phase.
    """

    durations_s: tuple[Values, Values, Values]
    input_w: tuple[Values, Values, Values]
    gpu_w: tuple[Values, Values, Values]
    cpu_w: tuple[Values, Values, Values]

    def time_s(self) -> Values:
        """Seconds a step takes."""
        return self.durations_s[0] + self.durations_s[1] + self.durations_s[2]

    def mean_input_w(self) -> Values:
        """Mean input power of a step in watts."""
        return sum(d * p for d, p in zip(self.durations_s, self.input_w, strict=True)) / self.time_s()

    def mean_compute_w(self) -> Values:
        """Mean of GPU rail + CPU rail in watts: what the energy paper integrates (method B)."""
        rails = zip(self.durations_s, self.gpu_w, self.cpu_w, strict=True)
        return sum(d * (gpu + cpu) for d, gpu, cpu in rails) / self.time_s()

    def gpu_busy_share(self) -> Values:
        """Share of a step in which the GPU computes: its utilization, 0..1."""
        return (self.durations_s[1] + self.durations_s[2]) / self.time_s()

    def peak_input_w(self, window_s: float = 1.0) -> Values:
        """The largest ``window_s`` mean of input power: ``surface.peak_power_w`` for arrays."""
        d, p = self.durations_s, self.input_w
        edge1, edge2, period = d[0], d[0] + d[1], self.time_s()
        whole = d[0] * p[0] + d[1] * p[1] + d[2] * p[2]

        def energy_until(t: Values) -> Values:
            turns = np.floor(t / period)
            rest = t - turns * period
            first = np.minimum(rest, edge1) * p[0]
            second = np.clip(rest - edge1, 0.0, d[1]) * p[1]
            return turns * whole + first + second + np.maximum(rest - edge2, 0.0) * p[2]

        # Shifted by whole periods so that no time is negative; a best window begins or ends at an edge.
        shift = np.ceil(window_s / period) * period
        starts = [shift + e for e in (0.0, edge1, edge2)]
        starts += [s - window_s for s in starts]
        windows = [energy_until(s + window_s) - energy_until(s) for s in starts]
        return np.maximum.reduce(np.broadcast_arrays(*windows)) / window_s


def relative_voltage(p: Parameters, share: Values) -> Values:
    """GPU voltage over its largest value, at ``share`` = f / f_max: a floor, then a rise in regulator steps."""
    floor, knee = p["voltage_floor"], p["voltage_knee"]
    rise = np.clip((share - knee) / (1.0 - knee), 0.0, 1.0) ** p["voltage_bend"]
    smooth = floor + (1.0 - floor) * rise
    # Up to the next regulator step: a clock never gets less than it needs.
    return np.minimum(1.0, np.ceil(np.round(smooth / VOLTAGE_STEP, 9)) * VOLTAGE_STEP)


def step(p: Parameters, batch_size: Values, share: Values, slowdown: Values = 1.0) -> StepArrays:
    """The phases of a step of ``batch_size`` samples at ``share`` = f / f_max.

    ``p`` holds BOARD_PARAMETERS and WORKLOAD_PARAMETERS. ``slowdown`` multiplies the GPU and the host phase: an
    irregularity of one clock (method B: "spikes in the curve").
    """
    b = batch_size
    host = (p["host_step_s"] + b * p["host_sample_s"]) * slowdown
    padded = (1.0 - p["wave_share"]) * b + p["wave_share"] * np.ceil(b / p["wave_size"]) * p["wave_size"]
    compute = p["compute_s"] * (padded + p["half_batch"]) / share
    memory = p["memory_s"] * b + p["memory_step_s"]
    n = p["norm"]
    gpu = (compute**n + memory**n + p["launch_s"] ** n) ** (1.0 / n)
    update = p["update_s"] * (1.0 - p["update_scaling"] + p["update_scaling"] / share)

    lanes = b / (padded + p["half_batch"])
    working = compute / gpu
    activity = p["activity"] * (
        working * (p["lane_activity"] + (1.0 - p["lane_activity"]) * lanes) + (1.0 - working) * p["stall_activity"]
    )
    volts = relative_voltage(p, share)
    switching = p["dynamic_w"] * volts**2 * share
    leakage = p["leakage_w"] * volts**3
    gpu_w = (
        leakage + switching * p["idle_activity"],
        leakage + switching * np.maximum(activity, p["idle_activity"]),
        leakage + switching * np.maximum(p["activity"] * p["stall_activity"], p["idle_activity"]),
    )
    launching = p["launch_s"] / gpu
    cpu_w = (
        p["cpu_host_w"],
        p["cpu_wait_w"] + (p["cpu_host_w"] - p["cpu_wait_w"]) * launching,
        p["cpu_wait_w"],
    )
    memory_w = (
        p["memory_w"] * _HOST_MEMORY,
        p["memory_w"] * np.minimum(1.0, memory / gpu),
        p["memory_w"] * _UPDATE_MEMORY,
    )
    total = tuple(p["idle_w"] + g + c + m for g, c, m in zip(gpu_w, cpu_w, memory_w, strict=True))
    return StepArrays((host, gpu * slowdown, update), (total[0], total[1], total[2]), gpu_w, cpu_w)


@dataclass(frozen=True)
class GeneratedSurface:
    """A ``Surface`` made from parameters (see the module). Phases are kept once computed.

    ``irregularities`` maps a clock in Hz to the factor by which steps at it take longer (missing: 1). Raises
    ValueError for a batch size below 1 or a clock that is not above 0.
    """

    board: str
    workload: str
    parameters: Mapping[str, float]
    max_frequency_hz: int
    memory_base_bytes: int
    memory_sample_bytes: int
    irregularities: Mapping[int, float] = field(default_factory=dict)
    _phases: dict[tuple[int, int], tuple[Phase, ...]] = field(default_factory=dict, repr=False, compare=False)

    def phases(self, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        """The phases of one training step, in order."""
        key = (batch_size, gpu_frequency_hz)
        known = self._phases.get(key)
        if known is None:
            known = self._phases[key] = self._compute(batch_size, gpu_frequency_hz)
        return known

    def memory_bytes(self, batch_size: int) -> int:
        """Memory that training with ``batch_size`` needs."""
        return self.memory_base_bytes + batch_size * self.memory_sample_bytes

    def scaled(self, scales: Scales) -> GeneratedSurface:
        """The surface with every kind of work scaled: the same physics with other parameters."""
        p = dict(self.parameters)
        for names, factor in (
            (("compute_s",), scales.compute),
            (("memory_s", "memory_step_s"), scales.memory),
            (("launch_s",), scales.launch),
            (("host_step_s", "host_sample_s"), scales.host),
            (("memory_w",), scales.memory_power),
        ):
            for name in names:
                p[name] *= factor
        u = p["update_scaling"]
        whole = (1 - u) * scales.memory + u
        p["update_s"] *= scales.update * whole
        p["update_scaling"] = u / whole
        return replace(self, parameters=p, _phases={})

    def _compute(self, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        if batch_size < 1 or gpu_frequency_hz <= 0:
            raise ValueError(
                f"surface {self.board}/{self.workload}: no step of batch {batch_size} at {gpu_frequency_hz} Hz; "
                "use a batch size of at least 1 and a clock above 0"
            )
        share = gpu_frequency_hz / self.max_frequency_hz
        arrays = step(self.parameters, float(batch_size), share, self.irregularities.get(gpu_frequency_hz, 1.0))
        rows = zip(arrays.durations_s, arrays.input_w, arrays.gpu_w, arrays.cpu_w, strict=True)
        return tuple(
            Phase(float(d), float(total), float(gpu), float(cpu), gpu_busy=i > 0)
            for i, (d, total, gpu, cpu) in enumerate(rows)
        )


def grid(
    p: Parameters, batch_sizes: NDArray[np.float64], shares: NDArray[np.float64], slowdown: Values = 1.0
) -> StepArrays:
    """``step`` over a table: every value has shape [..., B, F], where parameters have shape [..., 1, 1]."""
    return step(p, batch_sizes[:, None], shares[None, :], slowdown)
