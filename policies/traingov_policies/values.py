"""Small values that every part of traingov speaks in (DESIGN 2). SI units, units in the names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, order=True)
class OperatingPoint:
    """A pair (batch size b, GPU frequency f in Hz)."""

    batch_size: int
    gpu_frequency_hz: int

    def __str__(self) -> str:
        return f"batch {self.batch_size} at {self.gpu_frequency_hz / 1e6:.0f} MHz"


@dataclass(frozen=True)
class Cap:
    """The power limit P_max: mean input power over ``window_s`` stays below ``power_w``.

    ``burst_w`` optionally bounds the mean over 100 ms as well (DESIGN 5.4).
    Raises ValueError when a value makes no sense, naming it.
    """

    power_w: float
    window_s: float = 1.0
    burst_w: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.power_w < 10_000:
            raise ValueError(f"cap: power_w must be a positive number of watts, not {self.power_w!r}")
        if not 0.05 <= self.window_s <= 3600:
            raise ValueError(f"cap: window_s must lie between 0.05 and 3600 s, not {self.window_s!r}")
        if self.burst_w is not None and not self.burst_w >= self.power_w:
            raise ValueError(f"cap: burst_w {self.burst_w!r} must not be below power_w {self.power_w!r}")
        if self.burst_w is not None and self.burst_w > 10_000:
            raise ValueError(f"cap: burst_w must be at most 10000 W, not {str(self.burst_w)[:40]}")


class Objective(str, Enum):
    """What a choice minimises: time to accuracy, energy to accuracy, or their product."""

    TIME = "time"
    ENERGY = "energy"
    EDP = "edp"


class PolicyName(str, Enum):
    """The governor's policies (DESIGN 2)."""

    JOINT = "joint"
    ENERGY = "energy"
    FIXED = "fixed"
    OBSERVE = "observe"


@dataclass(frozen=True)
class Board:
    """The board a governor works on, as found at start: never assumed from a version list.

    ``gpu_frequencies_hz`` is the ascending clock table read from the node; empty when the board shows none.
    ``name``, ``release`` and ``power_mode`` are kept as read, "unknown" where they could not be.
    """

    name: str
    release: str
    power_mode: str
    gpu_frequencies_hz: tuple[int, ...]


@dataclass(frozen=True)
class Features:
    """What the decision tree reads of a workload (method B); None where the job did not say."""

    model_type: str | None = None
    layers: int | None = None
    hidden_size: int | None = None
    seq_len_avg: float | None = None
