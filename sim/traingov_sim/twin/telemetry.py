"""What the daemon would read of a virtual board: its sensors through tegrastats' rounding, as ``events.Sample``."""

from __future__ import annotations

import math
from dataclasses import replace

from traingov_policies.events import Sample

from ..board.boardspec import BoardSpec
from ..board.physics import VirtualBoard

# Which rails add up to input and compute power: the same as in etc/boards/*.yaml, which a test compares.
_ORIN = (("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"), ("VDD_GPU_SOC", "VDD_CPU_CV"))
_ONE_RAIL = (("VDD_IN",), ("VDD_CPU_GPU_CV",))
_TX2 = (("VDD_IN",), ("VDD_SYS_GPU", "VDD_SYS_CPU"))
_THOR = (("VIN",), ("VDD_GPU", "VDD_CPU_SOC_MSS"))
RAILS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "nano": (("POM_5V_IN",), ("POM_5V_GPU", "POM_5V_CPU")),
    "tx2-nx": _TX2,
    "tx2": _TX2,
    "xavier-nx": _ONE_RAIL,
    "agx-xavier": (("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"), ("GPU", "CPU")),
    "orin-nano": _ONE_RAIL,
    "orin-nx": _ONE_RAIL,
    "agx-orin": _ORIN,
    "agx-orin-r35": _ORIN,
    "thor": _THOR,
    "thor-r39": _THOR,
}


class Telemetry:
    """Samples of one board. A rail that is missing makes its sum missing (None), never less.

    Raises ValueError for a board whose rails are not known here.
    """

    def __init__(self, board: VirtualBoard) -> None:
        name = board.spec.name
        if name not in RAILS:
            raise ValueError(f"twin: the rails of board {name!r} are not known; add them to twin/telemetry.py")
        self._board = board
        rails = [rail.name for rail in board.spec.rails]
        self._input, self._compute = ([rails.index(rail) for rail in of] for of in RAILS[name])
        self._zones = [zone for zone in board.spec.zones if zone.label in board.spec.tegrastats.zones]
        self._seen: object = None
        self._input_w: float | None = None
        self._compute_w: float | None = None
        self._celsius: float | None = None

    def sample(self, t_s: float) -> Sample:
        """What tegrastats prints at ``t_s``: whole milliwatts and megahertz, load in whole percent."""
        board = self._board
        readings = board.sensor.readings
        if readings is not self._seen:  # sensors move at the monitor's pace; most 10 ms samples repeat a reading
            self._seen = readings
            self._input_w, self._compute_w = self._sum(self._input), self._sum(self._compute)
            shown = [c for zone in self._zones if (c := board.thermal.read(zone)) is not None]
            self._celsius = int(max(shown) * 1000) / 1000 if shown else None
        hz = (board.clock.hz - 1) // 1_000_000 * 1_000_000
        return Sample(t_s, self._input_w, self._compute_w, hz, round(board.clock.load * 100) / 100, self._celsius)

    def _sum(self, rails: list[int]) -> float | None:
        total = 0
        for index in rails:
            reading = self._board.sensor.readings[index]
            if reading is None:
                return None
            total += reading.milliwatts
        return total / 1000


def coarse(spec: BoardSpec, interval_s: float) -> BoardSpec:
    """The board with a power monitor that averages over ``interval_s``, for a twin that samples no oftener.

    Unchanged where the monitor is slower already. Noise per reading falls with the root of the time it is averaged
    over; noise with a memory keeps the sd of its one-second means.
    """
    sensor = spec.sensor
    if interval_s <= sensor.update_s:
        return spec
    white = sensor.white_sd * math.sqrt(sensor.update_s / interval_s)
    return replace(spec, sensor=replace(sensor, update_s=interval_s, white_sd=white))
