"""What an administrator can set about the guard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GuardSettings:
    """``dead_time_s``: from a written clock to readings that show it. ``climb_*``: patience before a step up.

    ``blind_at_most``: after so many dead times and windows above the cap in a row no write excuses waiting any more.
    ``stuck_after_s``: a reading that has not moved for so long although clock or load did is none.
    ``avoid_over_current``: stay below the clock at which the board's over-current counters rise; it is tried again
    after ``over_current_retry_s`` without any, then after twice that, and so on up to ``over_current_retry_most_s``.
    ``temperature_ceiling_celsius`` holds for every zone that has none of its own in ``zone_ceilings_celsius``; the
    clock climbs back when all are ``temperature_hysteresis_celsius`` below for ``temperature_climb_after_s``.
    """

    dead_time_s: float = 0.8
    climb_margin: float = 0.03
    climb_after_s: float = 10.0
    climb_after_most_s: float = 300.0
    blind_at_most: float = 3.0
    stuck_after_s: float = 2.0
    avoid_over_current: bool = True
    over_current_retry_s: float = 60.0
    over_current_retry_most_s: float = 3600.0
    temperature_ceiling_celsius: float | None = None
    zone_ceilings_celsius: tuple[tuple[str, float], ...] = ()
    temperature_hysteresis_celsius: float = 3.0
    temperature_climb_after_s: float = 60.0
