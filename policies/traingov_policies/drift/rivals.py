"""Which other points are probed, and what their probes say: do they still stand to the present point as in the table?

A change that hits all points alike leaves the choice as it is. What changes it is a change of one point relative to
another (method A, "Validation"), so a probe is judged by the difference of ln(live / table) there and here. Points are
probed the sooner, the less they are behind the chosen one. Each has a two-sided CUSUM of its differences.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..robust import Judged
from ..values import OperatingPoint
from .settings import DriftSettings

THRESHOLD = 9.0  # nats for one point
_SUSPECT = 2.5  # from here on a point is looked at again before others
_MOST = 5.0  # nats that one probe may add: no single one decides
_NEAR = 0.02  # added to how far a point is behind: the nearest is not probed for ever
_OTHER_BATCH = 0.25  # weight of points that cost a change of the batch size
_MARGIN = 0.25  # points further behind are not worth a probe


@dataclass
class _Point:
    up: float = 0.0
    down: float = 0.0
    power_up: float = 0.0
    power_down: float = 0.0
    probed_s: float | None = None
    probes: int = 0

    @property
    def worst(self) -> float:
        return max(self.up, self.down, self.power_up, self.power_down)


@dataclass
class Rivals:
    """Remembers the probes of one choice's rivals."""

    settings: DriftSettings
    points: dict[OperatingPoint, _Point] = field(default_factory=dict)

    def next(
        self, ranked: Iterable[Judged], chosen: Judged, safe: Iterable[OperatingPoint], now_s: float, begun_s: float
    ) -> OperatingPoint | None:
        """The point to probe: one of ``safe`` that waited longest for its weight; None where there is none."""
        allowed = set(safe)
        best: tuple[float, OperatingPoint] | None = None
        for judged in ranked:
            point = judged.point
            if point == chosen.point or point not in allowed or judged.score is None or not chosen.score:
                continue
            behind = judged.score / chosen.score - 1
            if behind > _MARGIN:
                continue
            known = self.points.get(point, _Point())
            waited_s = now_s - (begun_s if known.probed_s is None else known.probed_s)
            weight = 1 / (_NEAR + max(behind, 0.0))
            if point.batch_size != chosen.point.batch_size:
                weight *= _OTHER_BATCH
            if known.worst >= _SUSPECT:
                weight *= 100
            value = (waited_s + 1.0) * weight
            if best is None or (value, point) > best:
                best = (value, point)
        return None if best is None else best[1]

    def tell(
        self,
        point: OperatingPoint,
        now_s: float,
        time: float,
        time_sd: float,
        *,
        power: float | None,
        power_sd: float,
    ) -> bool:
        """A probe's differences of ln(live / table), there less here; True where the point moved against the other."""
        known = self.points.setdefault(point, _Point())
        known.probed_s = now_s
        known.probes += 1
        known.up, known.down = self._sums(known.up, known.down, time, time_sd)
        if power is not None:
            known.power_up, known.power_down = self._sums(known.power_up, known.power_down, power, power_sd)
        return known.worst >= THRESHOLD

    def failed(self, point: OperatingPoint, now_s: float) -> None:
        """The probe came to nothing: others first."""
        self.points.setdefault(point, _Point()).probed_s = now_s

    def suspect(self) -> bool:
        """Whether a point should be looked at again soon."""
        return any(_SUSPECT <= known.worst < THRESHOLD for known in self.points.values())

    def _sums(self, up: float, down: float, x: float, sd: float) -> tuple[float, float]:
        s = self.settings
        sd = max(sd, s.shift / 6)
        weight, middle = (s.shift - s.tolerance) / sd**2, (s.shift + s.tolerance) / 2
        return max(0.0, up + min(_MOST, weight * (x - middle))), max(0.0, down + min(_MOST, weight * (-x - middle)))
