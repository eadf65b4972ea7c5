"""What one training step costs on a virtual board: the contract between calibration and the board's physics.

Everything here is simulated. The generator of these surfaces shares no functional form with what the policies fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Phase:
    """A stretch of a step during which power is steady, at the reference temperature, without noise.

    ``input_power_w`` is what the whole board draws, ``gpu_power_w`` and ``cpu_power_w`` the shares of the GPU and
    CPU rails in it. ``gpu_busy``: the GPU computes (its utilization counts this stretch).
    """

    duration_s: float
    input_power_w: float
    gpu_power_w: float
    cpu_power_w: float
    gpu_busy: bool


@dataclass(frozen=True)
class Scales:
    """Factors by which each kind of work in a step takes longer, and of the memory's power at full traffic.

    ``update`` is the optimizer's; what of it waits for memory takes ``memory`` too. Raises ValueError unless positive.
    """

    compute: float = 1.0
    memory: float = 1.0
    launch: float = 1.0
    host: float = 1.0
    update: float = 1.0
    memory_power: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < 1000:
                raise ValueError(f"scales: {name} must be positive and below 1000, not {value!r}")


class Surface(Protocol):
    """Time and power of one workload on one board, as a function of batch size and GPU clock."""

    @property
    def board(self) -> str:
        """Board key, such as "nano"."""

    @property
    def workload(self) -> str:
        """Workload name, such as "resnet18"."""

    def phases(self, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        """The phases of one training step, in order."""

    def memory_bytes(self, batch_size: int) -> int:
        """Memory that training with ``batch_size`` needs."""


@runtime_checkable
class Scalable(Protocol):
    """A surface that knows its kinds of work."""

    def scaled(self, scales: Scales) -> Surface:
        """The surface with every kind of work scaled."""


def step_time_s(surface: Surface, batch_size: int, gpu_frequency_hz: int) -> float:
    """Seconds that one step takes."""
    return sum(phase.duration_s for phase in surface.phases(batch_size, gpu_frequency_hz))


def mean_power_w(surface: Surface, batch_size: int, gpu_frequency_hz: int) -> float:
    """Mean input power of a step in watts, at the reference temperature."""
    phases = surface.phases(batch_size, gpu_frequency_hz)
    return sum(p.duration_s * p.input_power_w for p in phases) / sum(p.duration_s for p in phases)


def peak_power_w(surface: Surface, batch_size: int, gpu_frequency_hz: int, window_s: float = 1.0) -> float:
    """The largest ``window_s`` mean of input power while the step repeats (DESIGN 5.4), in watts."""
    phases = surface.phases(batch_size, gpu_frequency_hz)
    period = sum(p.duration_s for p in phases)
    full, rest = divmod(window_s, period)
    energy = full * sum(p.duration_s * p.input_power_w for p in phases)
    edges = [0.0]
    for p in phases:
        edges.append(edges[-1] + p.duration_s)
    # The largest mean of a piecewise constant, periodic signal begins or ends at an edge.
    starts = {edge % period for edge in edges} | {(edge - rest) % period for edge in edges}
    return max((energy + _integral(phases, period, start, rest)) / window_s for start in starts)


def _integral(phases: tuple[Phase, ...], period: float, start: float, length: float) -> float:
    total, begin = 0.0, 0.0
    for p in (*phases, *phases):
        low, high = max(begin, start), min(begin + p.duration_s, start + length)
        total += max(0.0, high - low) * p.input_power_w
        begin += p.duration_s
    return total
