"""A battery and a solar panel beside a virtual board. Pure; time is passed in. All sizes are assumptions.

The battery gives what the board draws (its true input power, through a converter) less what the panel gives; what the
panel gives beyond that charges it. Charging tapers off and ends at full; an empty battery stays at zero and the board
runs on, since a board that has lost its power has nothing left to show.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

_TAPER = 0.9  # above this charge the charger lets less and less in
_FLAT_V, _FULL_V = 9.9, 12.6  # three lithium cells
_CHARGE_W_PER_WH = 0.5


@dataclass(frozen=True)
class Solar:
    """A panel: a half sine from ``sunrise`` to ``sunset`` (shares of ``day_s``) of ``peak_w``, under passing clouds.

    Clouds: cover between 0 and ``clouds`` drawn anew every ``cloud_s``, with straight lines between.
    """

    peak_w: float = 20.0
    day_s: float = 86_400.0
    sunrise: float = 0.25
    sunset: float = 0.75
    clouds: float = 0.0
    cloud_s: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.peak_w >= 0 and self.day_s > 0 and self.cloud_s > 0 and 0 <= self.clouds <= 1):
            raise ValueError("solar: peak_w, day_s, cloud_s must be positive and clouds within 0 and 1")
        if not 0 <= self.sunrise < self.sunset <= 1:
            raise ValueError("solar: sunrise must lie before sunset, both as shares of the day")

    def power_w(self, t_s: float) -> float:
        """Watts at ``t_s`` seconds after midnight of the first day."""
        share = t_s / self.day_s % 1.0
        if not self.sunrise < share < self.sunset:
            return 0.0
        clear = self.peak_w * math.sin(math.pi * (share - self.sunrise) / (self.sunset - self.sunrise))
        k, rest = divmod(t_s / self.cloud_s, 1.0)
        cover = self._cover(int(k)) * (1 - rest) + self._cover(int(k) + 1) * rest
        return clear * (1 - self.clouds * cover)

    def _cover(self, k: int) -> float:
        return random.Random(f"cloud {self.seed} {k}").random() if self.clouds else 0.0


class Battery:
    """``charge`` 0 … 1 of ``capacity_wh``. ``efficiency`` of the converter from battery or panel to the board."""

    def __init__(
        self, capacity_wh: float = 50.0, charge: float = 0.8, efficiency: float = 0.9, solar: Solar | None = None
    ) -> None:
        if not (0 < capacity_wh < 100_000 and 0 <= charge <= 1 and 0 < efficiency <= 1):
            raise ValueError("battery: capacity_wh must be positive, charge and efficiency within 0 and 1")
        self.capacity_wh, self.charge, self.efficiency, self.solar = capacity_wh, charge, efficiency, solar
        self.power_w = 0.0
        self._began_s: float | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Battery:
        """From plain values; ``solar`` an object. Raises ValueError, TypeError for what makes no sense."""
        solar = data.get("solar")
        return cls(**{**data, "solar": None if solar is None else Solar(**solar)})

    def advance(self, t_s: float, dt_s: float, load_w: float) -> None:
        """Let ``dt_s`` until ``t_s`` pass with the board drawing ``load_w``. ``t_s`` of the first call is midnight."""
        if self._began_s is None:
            self._began_s = t_s
        sun_w = 0.0 if self.solar is None else self.solar.power_w(t_s - self._began_s)
        wanted = sun_w - load_w / self.efficiency
        if wanted > 0:
            room = min(1.0, (1 - self.charge) / (1 - _TAPER))
            wanted = min(wanted, self.capacity_wh * _CHARGE_W_PER_WH * room)
            if self.charge >= 0.9995:
                wanted = 0.0
        self.power_w = wanted
        self.charge = min(1.0, max(0.0, self.charge + wanted * dt_s / 3600 / self.capacity_wh))

    @property
    def status(self) -> str:
        """The kernel's word: Charging, Discharging, Full or Not charging."""
        if self.power_w > 0:
            return "Charging"
        if self.power_w < 0:
            return "Discharging"
        return "Full" if self.charge >= 0.999 else "Not charging"

    @property
    def volts(self) -> float:
        """Terminal voltage, straight between flat and full."""
        return _FLAT_V + (_FULL_V - _FLAT_V) * self.charge
