"""The power monitor of a virtual board: averaging, lag, noise, quantisation and faults. Pure; time is passed in."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .boardspec import RailSpec, SensorSpec

FAULTS = ("stuck", "missing", "spikes", "lag")
LAG_S = 2.0


@dataclass(frozen=True)
class Reading:
    """What a rail's channel shows: millivolts, milliamperes, milliwatts (whole numbers, as the registers)."""

    millivolts: int
    milliamperes: int
    milliwatts: int


def ou_for_second_means(sd: float, autocorrelation: float) -> tuple[float, float]:
    """Correlation time in seconds and sd of an Ornstein-Uhlenbeck process with these one-second means.

    With a = 1 s / τ, one-second means have lag-one autocorrelation (1 − e^−a)² / (2 (a − 1 + e^−a)) and variance
    σ² 2 (a − 1 + e^−a) / a². Solved for a by bisection. Raises ValueError outside (0, 1).
    """
    if not 0 < autocorrelation < 1:
        raise ValueError(f"sensor: noise_autocorrelation must lie between 0 and 1, not {autocorrelation!r}")
    low, high = 1e-4, 50.0
    for _ in range(100):
        a = math.sqrt(low * high)
        if math.expm1(-a) ** 2 / (2 * (a + math.expm1(-a))) > autocorrelation:
            low = a
        else:
            high = a
    return 1 / a, sd / math.sqrt(2 * (a + math.expm1(-a))) * a


class PowerSensor:
    """All channels of a board's power monitors.

    ``fault`` is one of FAULTS or None, for the rails named in ``faulty`` (empty: all). A missing reading is None;
    "spikes": one reading in fifty is 0, or 3 or 10 times the power; "lag": readings follow with LAG_S.
    """

    def __init__(self, rails: Sequence[RailSpec], spec: SensorSpec, rng: random.Random) -> None:
        self.rails = tuple(rails)
        self.spec = spec
        self.fault: str | None = None
        self.faulty: frozenset[str] = frozenset()
        self.readings: tuple[Reading | None, ...] = tuple(None for _ in self.rails)
        self._rng = rng
        self._lagged: list[float] | None = None
        self._noise = 0.0
        tau_s, sd = ou_for_second_means(spec.noise_sd, spec.noise_autocorrelation)
        keep = math.exp(-spec.update_s / tau_s)
        self._keep, self._kick = keep, sd * math.sqrt(1 - keep * keep)
        self._follow = 1.0 if spec.lag_s <= 0 else -math.expm1(-spec.update_s / spec.lag_s)
        self._follow_late = -math.expm1(-spec.update_s / LAG_S)

    def set_fault(self, fault: str | None, rails: Sequence[str] = ()) -> None:
        """Break the sensor, or mend it (None). Raises ValueError for an unknown fault or rail."""
        if fault is not None and fault not in FAULTS:
            raise ValueError(f"sensor fault {fault!r}: use one of {', '.join(FAULTS)}, or null")
        unknown = set(rails) - {rail.name for rail in self.rails}
        if unknown:
            raise ValueError(f"sensor fault: no rail {', '.join(sorted(unknown))} on this board")
        self.fault, self.faulty = fault, frozenset(rails)

    def update(self, mean_w: Sequence[float]) -> None:
        """Take the rails' mean true power over the last update period, in the rails' order."""
        gauss = self._rng.gauss
        if self._lagged is None:
            self._lagged = list(mean_w)
        self._noise = self._keep * self._noise + self._kick * gauss(0.0, 1.0)
        lagged, follow, white, noise = self._lagged, self._follow, self.spec.white_sd, self._noise
        readings: list[Reading | None] = []
        for i, rail in enumerate(self.rails):
            faulty = self.fault is not None and (not self.faulty or rail.name in self.faulty)
            lagged[i] += (mean_w[i] - lagged[i]) * (self._follow_late if faulty and self.fault == "lag" else follow)
            shown_w: float | None = lagged[i] * (1 + noise + white * gauss(0.0, 1.0))
            if faulty:
                if self.fault == "stuck" and self.readings[i] is not None:
                    readings.append(self.readings[i])
                    continue
                if self.fault == "missing":
                    shown_w = None
                elif self.fault == "spikes" and self._rng.random() < 0.02:
                    shown_w = lagged[i] * self._rng.choice((0.0, 3.0, 10.0))
            readings.append(None if shown_w is None else quantised(rail, shown_w))
        self.readings = tuple(readings)


def quantised(rail: RailSpec, power_w: float) -> Reading:
    """The registers' steps: current in the rail's LSB, the bus voltage (sagging 1 % at 10 A) in 8 mV."""
    amperes = power_w / rail.volts
    millivolts = round(rail.volts * (1 - 0.001 * amperes) * 125) * 8
    steps = round(power_w * 1000 / millivolts / rail.lsb_a)
    milliamperes = round(steps * rail.lsb_a * 1000)
    return Reading(millivolts, milliamperes, millivolts * milliamperes // 1000)
