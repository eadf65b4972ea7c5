"""What the daemon would read of a virtual board's health: thermal zones, cooling devices, over-current counters."""

from __future__ import annotations

from traingov_policies.events import OverCurrentCounted, Thermals, Zone

from ..board.physics import VirtualBoard
from ..kernel.health import FOLLOWS_DIE, cooling

THERMALS_S = 1.0
COUNTERS_S = 0.2


class Health:
    """Looks at one board at the daemon's pace; ``due`` gives the events of a moment, if any."""

    def __init__(self, board: VirtualBoard) -> None:
        self._board = board
        self._counts = board.over_current.counts
        self._thermals_s = self._counters_s = float("-inf")

    def due(self, t_s: float) -> list[Thermals | OverCurrentCounted]:
        """Events to feed at ``t_s``."""
        found: list[Thermals | OverCurrentCounted] = []
        if t_s >= self._counters_s:
            self._counters_s = t_s + COUNTERS_S
            now = self._board.over_current.counts
            risen = tuple(
                (f"oc{n}", new - old)
                for n, (new, old) in enumerate(zip(now, self._counts, strict=True), 1)
                if new > old
            )
            self._counts = now
            if risen:
                found.append(OverCurrentCounted(t_s, risen))
        if t_s >= self._thermals_s:
            self._thermals_s = t_s + THERMALS_S
            found.append(self._thermals(t_s))
        return found

    def _thermals(self, t_s: float) -> Thermals:
        spec, thermal = self._board.spec, self._board.thermal
        zones = []
        for zone in spec.zones:
            follows = zone.weight >= FOLLOWS_DIE and not zone.unreadable
            trip = spec.thermal.trip_celsius + zone.offset_celsius if follows else None
            zones.append(Zone(zone.name, thermal.read(zone), trip))
        held = tuple(
            (kind, state) for kind, state, _ in cooling(spec, thermal.throttle_steps) if state and "fan" not in kind
        )
        return Thermals(t_s, tuple(zones), held)
