"""Over-current and under-voltage protection of a virtual board: counters, and the throttle pulse. Pure.

As the SoC's thermal unit (``soctherm_oc`` on Orin and later): the power monitor compares each conversion with
``currN_crit`` (instantaneous: oc3) and a mean with ``currN_max`` (average: oc2); a weak supply gives under-voltage
(oc1). Each alarm counts one event and throttles the GPU by skipping clock pulses, which no devfreq file shows.

Assumptions: conversions as long as the monitor's update period (20 ms), averages over AVERAGE_S, and a pulse of
PULSE_S in which the GPU works at 1 / SLOWDOWN. A GPU steadily above a limit then counts about eight events a second;
one public report shows 27,390 in an hour (7.6 a second). A supply sags once the board draws more than ``supply_w``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .boardspec import RailSpec

AVERAGE_S = 0.5
PULSE_S = 0.1
SLOWDOWN = 2.0
NO_LIMIT_A = 32.76  # the INA3221's registers at their largest: no limit


@dataclass(frozen=True)
class CurrentLimits:
    """Amperes of one rail: ``max_a`` for the average, ``crit_a`` for each conversion."""

    max_a: float = NO_LIMIT_A
    crit_a: float = NO_LIMIT_A

    def __post_init__(self) -> None:
        if not (0 < self.max_a <= NO_LIMIT_A and 0 < self.crit_a <= NO_LIMIT_A):
            raise ValueError(f"current limits: max_a and crit_a must lie above 0 and not above {NO_LIMIT_A} A")


class OverCurrent:
    """``counts`` of oc1, oc2, oc3 since the start; ``throttling`` while a pulse lasts. ``limits``: one per rail."""

    def __init__(self, rails: Sequence[RailSpec], present: bool, period_s: float) -> None:
        self._rails = tuple(rails)
        self._present = present
        self._period_s = period_s
        self._follow = -math.expm1(-period_s / AVERAGE_S)
        self._average_a: list[float] | None = None
        self._left_s = 0.0
        self.limits = [CurrentLimits() for _ in self._rails]
        self.supply_w: float | None = None
        self.counts = (0, 0, 0)

    @property
    def throttling(self) -> bool:
        """Whether the GPU's clock skips pulses now."""
        return self._left_s > 0

    def set_limits(self, limits: Mapping[str, CurrentLimits]) -> None:
        """Limits by rail; the others are lifted. Raises ValueError for an unknown rail or a board without counters."""
        self._check()
        unknown = set(limits) - {rail.name for rail in self._rails}
        if unknown:
            raise ValueError(f"current limits: no rail {', '.join(sorted(unknown))} on this board")
        self.limits = [limits.get(rail.name, CurrentLimits()) for rail in self._rails]

    def set_supply(self, supply_w: float | None) -> None:
        """What the supply gives before its voltage sags, in watts; None: any. Raises ValueError as ``set_limits``."""
        if supply_w is not None:
            self._check()
            if not supply_w > 0:
                raise ValueError(f"supply: watts above 0, or null, not {supply_w!r}")
        self.supply_w = supply_w

    def tick(self, rails_w: Sequence[float], input_w: float) -> bool:
        """One conversion of mean powers. True when throttling began or ended."""
        if not self._present:
            return False
        amperes = [w / rail.volts for w, rail in zip(rails_w, self._rails, strict=True)]
        if self._average_a is None:
            self._average_a = list(amperes)
        alarms = [self.supply_w is not None and input_w > self.supply_w, False, False]
        for i, (now, limits) in enumerate(zip(amperes, self.limits, strict=True)):
            self._average_a[i] += (now - self._average_a[i]) * self._follow
            alarms[1] |= self._average_a[i] > limits.max_a
            alarms[2] |= now > limits.crit_a
        before = self.throttling
        if before:
            self._left_s = max(0.0, self._left_s - self._period_s)
            if self._left_s < self._period_s / 2:
                self._left_s = 0.0
        elif any(alarms):
            one, two, three = self.counts
            self.counts = (one + alarms[0], two + alarms[1], three + alarms[2])
            self._left_s = PULSE_S
        return self.throttling != before

    def _check(self) -> None:
        if not self._present:
            raise ValueError("this board has no over-current counters (soctherm_oc)")
