"""Temperatures of a virtual board: two RC stages and a trip point with hysteresis. Pure; time is passed in."""

from __future__ import annotations

import math

from .boardspec import ThermalSpec, ZoneSpec

THROTTLE_PERIOD_S = 0.5


class Thermal:
    """Board and die temperature.

    ``throttle_steps`` says how many clock steps the maximum is clamped down: one more each THROTTLE_PERIOD_S above
    the trip point, one less each period below it by the hysteresis.
    """

    def __init__(self, spec: ThermalSpec) -> None:
        self.spec = spec
        self.ambient_celsius = spec.ambient_celsius
        self.board_celsius = spec.ambient_celsius
        self.die_rise_kelvin = 0.0
        self.throttle_steps = 0
        self._since_throttle_s = 0.0

    @property
    def die_celsius(self) -> float:
        """Temperature of the hottest part."""
        return self.board_celsius + self.die_rise_kelvin

    def advance(self, dt_s: float, input_w: float, compute_w: float, max_throttle_steps: int) -> None:
        """Let ``dt_s`` pass at the given mean powers."""
        spec = self.spec
        target = self.ambient_celsius + spec.board_kelvin_per_w * input_w
        self.board_celsius += (target - self.board_celsius) * -math.expm1(-dt_s / spec.board_tau_s)
        rise = spec.die_kelvin_per_w * compute_w
        self.die_rise_kelvin += (rise - self.die_rise_kelvin) * -math.expm1(-dt_s / spec.die_tau_s)
        self._since_throttle_s += dt_s
        if self._since_throttle_s >= THROTTLE_PERIOD_S:
            self._since_throttle_s = 0.0
            if self.die_celsius > spec.trip_celsius:
                self.throttle_steps = min(self.throttle_steps + 1, max_throttle_steps)
            elif self.throttle_steps and self.die_celsius < spec.trip_celsius - spec.hysteresis_kelvin:
                self.throttle_steps -= 1

    def read(self, zone: ZoneSpec) -> float | None:
        """What a zone reads, rounded down to the sensor's resolution; None where it cannot be read."""
        if zone.unreadable:
            return None
        if zone.fixed_celsius is not None:
            return zone.fixed_celsius
        value = self.board_celsius + zone.weight * self.die_rise_kelvin + zone.offset_celsius
        step = self.spec.resolution_celsius
        return math.floor(value / step) * step
