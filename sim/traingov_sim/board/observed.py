"""What can be known of a virtual board: its sensors' snapshot, the truth behind it, and a disturbance. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from .sensor import Reading


@dataclass(frozen=True)
class Contention:
    """A disturbance from outside: steps at ``from_batch_size`` and above take ``time_factor`` as long, and their
    power above idle is multiplied by ``power_factor``."""

    time_factor: float = 1.0
    power_factor: float = 1.0
    from_batch_size: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.time_factor < 1000 and 0 < self.power_factor < 1000):
            raise ValueError("contention: time_factor and power_factor must be positive and below 1000")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the board's own sensors show. ``readings`` go with the spec's rails, None where missing;
    ``temperatures_celsius`` with its zones, None where unreadable; ``cpu_utilization`` 0..1 per core, None when off.
    ``emc_hz``: the memory's clock; ``throttle_steps``: clock steps that heat takes away; ``oc_events``: oc1 … oc3.
    """

    t_s: float
    readings: tuple[Reading | None, ...]
    gpu_frequency_hz: int
    gpu_utilization: float
    temperatures_celsius: tuple[float | None, ...]
    cpu_utilization: tuple[float | None, ...]
    memory_used_bytes: int
    emc_hz: int = 0
    throttle_steps: int = 0
    oc_events: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True)
class Truth:
    """What really happened, unseen by any sensor: energy since the start in joules, present power, work done."""

    t_s: float
    input_j: float
    compute_j: float
    input_w: float
    compute_w: float
    gpu_frequency_hz: int
    die_celsius: float
    steps: int
    samples: int
    busy_s: float
    stalls: int
