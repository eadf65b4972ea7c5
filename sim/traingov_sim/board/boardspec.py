"""What a virtual board is made of: values only, read from ``data/boards/NAME.json``. SI units.

Clock tables, node paths, rails, formats and mode limits follow public logs and documentation of the real boards.
Thermal resistances, sensor lags, noise, idle powers and stalls are assumptions of the simulation, not measurements:
they are parameters so that a test or an evaluation can vary them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "boards"


@dataclass(frozen=True)
class GpuSpec:
    """The GPU's devfreq node. Paths are relative to the tree's root.

    ``switch_delay_s`` passes between a write to the bounds and the clock following it (measured in public: 0.65 s
    on a Nano, 0.56 s on an AGX). ``snap``: what a bound off the table becomes; ``order``: what happens to a minimum
    above the maximum, "refuse" (EINVAL) or "clamp"; both as in devfreqnode.DevfreqSettings. ``node_name`` is the
    device tree's name, "" where the device has none; ``load``: whether the driver has a load file (Thor's has not);
    ``beside`` names further nodes of the same device, for other clocks of the GPU.
    """

    device: str
    devfreq: str
    links: dict[str, str]
    node_name: str
    frequencies_hz: tuple[int, ...]
    governors: tuple[str, ...]
    default_governor: str
    switch_delay_s: float
    snap: str
    order: str
    load: bool = True
    beside: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """Folder of the devfreq files."""
        return f"{self.device}/devfreq/{self.devfreq}"


@dataclass(frozen=True)
class PowerSpec:
    """Idle power and what moves true power and step time.

    ``idle_clock_w`` is drawn on top of idle at the highest GPU clock (in proportion below it). True power is nominal
    power × (1 + leakage_per_kelvin (T − reference_celsius) + wander); wander is an AR(1) process of ``wander_sd``
    and correlation time ``wander_tau_s``. Stalls of ``stall_s`` (uniform) come ``stalls_per_s`` while a job runs.
    ``step_jitter`` is the relative sd of a step's time; ``batch_change_s`` is what the first step at another batch
    size costs; ``emc_w`` is what the memory's interface draws of the idle power at its highest clock;
    ``sharing_penalty`` slows each further client's company (cache and memory contention).
    """

    idle_input_w: float
    idle_gpu_w: float
    idle_cpu_w: float
    idle_clock_w: float
    leakage_per_kelvin: float = 0.0015
    reference_celsius: float = 45.0
    wander_sd: float = 0.004
    wander_tau_s: float = 90.0
    stalls_per_s: float = 0.005
    stall_s: tuple[float, float] = (0.2, 1.2)
    step_jitter: float = 0.004
    batch_change_s: float = 0.5
    sharing_penalty: float = 0.05
    emc_w: float = 0.2


@dataclass(frozen=True)
class RailSpec:
    """A power rail: reads gpu × GPU power + cpu × CPU power + rest × (input − GPU − CPU power).

    ``chip`` and ``channel`` place it in the tree; ``volts`` and ``lsb_a`` (the INA3221's 40 µV over the shunt) make
    its steps in watts. ``behind`` names a rail that this one is fed from, and whose power holds this one's already.
    """

    name: str
    chip: int
    channel: int
    gpu: float
    cpu: float
    rest: float
    volts: float
    lsb_a: float
    behind: str | None = None


@dataclass(frozen=True)
class ChipSpec:
    """A power monitor's folder: "iio" (R32: rail_name_N, in_powerN_input), "hwmon" (inN_label, currN_input) or
    "ina238" (hwmon too: one channel, power in µW, no label)."""

    kind: str
    path: str
    label: str


@dataclass(frozen=True)
class SensorSpec:
    """Telemetry: a reading is the mean over ``update_s``, lagging by a first-order ``lag_s``, times noise.

    ``noise_sd`` and ``noise_autocorrelation`` are those of one-second means; ``white_sd`` is added per reading.
    """

    update_s: float = 0.02
    lag_s: float = 0.04
    noise_sd: float = 0.01
    noise_autocorrelation: float = 0.7
    white_sd: float = 0.004


@dataclass(frozen=True)
class ThermalSpec:
    """Two RC stages: the board above ambient (input power), the die above the board (GPU + CPU power).

    ``trip_celsius`` is the passive trip point of the zones that follow the die (throttling); ``critical_celsius``,
    where a real board switches off, is only shown. Both differ by board and release: read the node.
    """

    board_kelvin_per_w: float
    board_tau_s: float
    die_kelvin_per_w: float
    die_tau_s: float
    trip_celsius: float
    resolution_celsius: float
    hysteresis_kelvin: float = 3.0
    ambient_celsius: float = 25.0
    critical_kelvin: float = 5.5

    @property
    def critical_celsius(self) -> float:
        """The critical trip point."""
        return self.trip_celsius + self.critical_kelvin


@dataclass(frozen=True)
class EmcSpec:
    """The memory controller's clock: its steps, and the files that show it.

    ``files``: path → "rate" (the clock now), "max", "min" (the bounds), "cap" (nvpmodel's cap, 0 for none) or a text.
    """

    frequencies_hz: tuple[int, ...]
    files: dict[str, str]


@dataclass(frozen=True)
class ZoneSpec:
    """A thermal zone: board temperature + weight × die rise + offset, or ``fixed_celsius``.

    ``unreadable``: its file holds no number, as a power-gated zone's.
    """

    name: str
    label: str
    weight: float
    offset_celsius: float
    fixed_celsius: float | None = None
    unreadable: bool = False


@dataclass(frozen=True)
class CpuSpec:
    """The CPU cores, all alike."""

    count: int
    idle_hz: int
    busy_hz: int
    frequencies_hz: tuple[int, ...]
    governor: str


@dataclass(frozen=True)
class PowerMode:
    """An nvpmodel mode: a cap on the GPU clock (None: none; it may lie off the table) and the cores online."""

    id: int
    name: str
    gpu_max_hz: int | None
    cpus: int


@dataclass(frozen=True)
class TegrastatsSpec:
    """The line's template, the rails' unit ("" up to R32), and the order of zones (labels) and rails in it.

    ``with_highest``: rails and zones also show their highest value so far (R39). ``gated_shown``: an unreadable zone
    is in the line, as -256C (R35).
    """

    template: str
    unit: str
    stamped: bool
    zones: tuple[str, ...]
    rails: tuple[str, ...]
    with_highest: bool = False
    gated_shown: bool = False


@dataclass(frozen=True)
class BoardSpec:
    """A board, complete. ``note`` says what of it is known from public sources and what is assumed."""

    name: str
    model: str
    compatible: tuple[str, ...]
    release: str
    memory_total_bytes: int
    memory_used_bytes: int
    gpu: GpuSpec
    power: PowerSpec
    rails: tuple[RailSpec, ...]
    chips: tuple[ChipSpec, ...]
    sensor: SensorSpec
    thermal: ThermalSpec
    zones: tuple[ZoneSpec, ...]
    cpu: CpuSpec
    power_modes: tuple[PowerMode, ...]
    default_power_mode: int
    tegrastats: TegrastatsSpec
    emc: EmcSpec
    note: str
    over_current_counters: bool = field(default=False)

    def power_mode(self, mode_id: int) -> PowerMode:
        """The power mode of that number. Raises ValueError when the board has none."""
        for mode in self.power_modes:
            if mode.id == mode_id:
                return mode
        known = ", ".join(f"{m.id} ({m.name})" for m in self.power_modes)
        raise ValueError(f"board {self.name}: no power mode {mode_id}; it has {known}")


def board_names() -> tuple[str, ...]:
    """The boards there are data for."""
    return tuple(sorted(path.stem for path in DATA.glob("*.json")))


def load_board(name: str) -> BoardSpec:
    """The board called ``name``. Raises ValueError naming the ones there are."""
    if name not in board_names():
        raise ValueError(f"no virtual board {name!r}: choose one of {', '.join(board_names())}")
    data: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return _board(data)


def noiseless(spec: BoardSpec) -> BoardSpec:
    """The board without anything random, and without leakage: for exact checks and noise-free evaluations."""
    return replace(
        spec,
        power=replace(
            spec.power, leakage_per_kelvin=0.0, wander_sd=0.0, stalls_per_s=0.0, step_jitter=0.0, batch_change_s=0.0
        ),
        sensor=replace(spec.sensor, noise_sd=0.0, white_sd=0.0),
    )


def _board(data: dict[str, Any]) -> BoardSpec:
    parts: dict[str, Any] = {k: _frozen(v) for k, v in data.items()}
    parts["gpu"] = GpuSpec(**_values(data["gpu"]))
    parts["power"] = PowerSpec(**_values(data["power"]))
    parts["rails"] = tuple(RailSpec(**_values(r)) for r in data["rails"])
    parts["chips"] = tuple(ChipSpec(**_values(c)) for c in data["chips"])
    parts["sensor"] = SensorSpec(**_values(data["sensor"]))
    parts["thermal"] = ThermalSpec(**_values(data["thermal"]))
    parts["zones"] = tuple(ZoneSpec(**_values(z)) for z in data["zones"])
    parts["cpu"] = CpuSpec(**_values(data["cpu"]))
    parts["power_modes"] = tuple(PowerMode(**_values(m)) for m in data["power_modes"])
    parts["emc"] = EmcSpec(**_values(data["emc"]))
    parts["tegrastats"] = TegrastatsSpec(**_values(data["tegrastats"]))
    return BoardSpec(**parts)


def _values(data: dict[str, Any]) -> dict[str, Any]:
    return {key: _frozen(value) for key, value in data.items()}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
