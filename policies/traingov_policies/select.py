"""The joint choice of batch size and GPU frequency (method A, Eq. 4 and Algorithm 1).

The paper takes for each batch size the highest frequency whose power stays below the cap. Measured tables are not
always monotone, so every feasible point is compared; on a monotone table the two agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .lut import Lut
from .relation import RelationVector
from .values import Objective, OperatingPoint


@dataclass(frozen=True)
class Candidate:
    """A point that may be chosen.

    ``time_s`` and ``energy_j`` are relation-weighted: T_s·r seconds and mean power times it, for the table's samples;
    true up to one factor common to all candidates. None where the table lacks the measurement.
    """

    point: OperatingPoint
    time_s: float | None
    peak_power_w: float | None
    energy_j: float | None

    def score(self, objective: Objective) -> float | None:
        """What ``objective`` minimises; None where a needed measurement is missing."""
        if objective is Objective.TIME:
            return self.time_s
        if objective is Objective.ENERGY or self.energy_j is None or self.time_s is None:
            return self.energy_j
        return self.energy_j * self.time_s

    def to_json(self) -> dict[str, Any]:
        """Plain values, as ``traingov select --json`` prints them."""
        return {
            "batch_size": self.point.batch_size,
            "gpu_frequency_hz": self.point.gpu_frequency_hz,
            "time_s": self.time_s,
            "peak_power_w": self.peak_power_w,
            "energy_j": self.energy_j,
        }


@dataclass(frozen=True)
class Selection:
    """The chosen point, and the best feasible point of each batch size in ``candidates``, best first.

    ``feasible`` is False when no point stays below the cap: then ``chosen`` is the point of lowest peak power and
    ``candidates`` is empty.
    """

    chosen: Candidate
    feasible: bool
    candidates: tuple[Candidate, ...]

    def to_json(self) -> dict[str, Any]:
        """The pinned output of ``traingov select --json``."""
        return {
            **self.chosen.to_json(),
            "feasible": self.feasible,
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }


def candidate_at(lut: Lut, relation: RelationVector | None, point: OperatingPoint) -> Candidate | None:
    """The candidate at ``point``, or None when its batch size has no relation value."""
    r = 1.0 if relation is None else relation.of(point.batch_size)
    if r is None:
        return None
    cell = lut.cell(point)
    time_s = None if cell.time_s is None else cell.time_s * r
    energy_j = None if time_s is None or cell.mean_power_w is None else cell.mean_power_w * time_s
    return Candidate(point, time_s, cell.peak_power_w, energy_j)


def select(
    lut: Lut,
    relation: RelationVector | None = None,
    cap_w: float | None = None,
    objective: Objective = Objective.TIME,
    batch_sizes: Iterable[int] | None = None,
) -> Selection:
    """The point that minimises ``objective`` among those with peak power strictly below ``cap_w`` watts (Eq. 1, 4).

    ``relation`` None means r = 1 for every batch size; ``batch_sizes`` restricts the choice to those the job can use.
    Ties go to the lower peak power, then to the lower frequency and the smaller batch. Where no point is feasible the
    point of lowest peak power is chosen with ``feasible`` False. Raises ValueError when the table and the relation
    vector leave no point at all.
    """
    allowed = None if batch_sizes is None else set(batch_sizes)
    known = [
        candidate
        for point in lut.points()
        if allowed is None or point.batch_size in allowed
        if (candidate := candidate_at(lut, relation, point)) is not None
    ]
    feasible = [
        (score, candidate)
        for candidate in known
        if (score := candidate.score(objective)) is not None and below_cap(candidate.peak_power_w, cap_w)
    ]
    if not feasible:
        return Selection(_lowest_power(lut, known, cap_w), False, ())
    best: dict[int, tuple[float, Candidate]] = {}
    for score, candidate in feasible:
        b = candidate.point.batch_size
        if b not in best or _order(score, candidate) < _order(*best[b]):
            best[b] = (score, candidate)
    ranked = [candidate for _, candidate in sorted(best.values(), key=lambda pair: _order(*pair))]
    return Selection(ranked[0], True, tuple(ranked))


def below_cap(peak_power_w: float | None, cap_w: float | None) -> bool:
    """Whether a peak power is feasible: strictly below the cap (Eq. 1). Unknown power is not, except without a cap."""
    return cap_w is None or (peak_power_w is not None and peak_power_w < cap_w)


def _order(score: float, candidate: Candidate) -> tuple[float, float, int, int]:
    power = float("inf") if candidate.peak_power_w is None else candidate.peak_power_w
    return (score, power, candidate.point.gpu_frequency_hz, candidate.point.batch_size)


def _lowest_power(lut: Lut, known: list[Candidate], cap_w: float | None) -> Candidate:
    measured = [c for c in known if c.peak_power_w is not None]
    if not measured:
        limit = "" if cap_w is None else f" below {cap_w:g} W"
        raise ValueError(
            f"no usable point{limit} in the table of {lut.workload} on {lut.board}: nothing measured for a batch size "
            "that is allowed and has a relation value; profile first, or check the relation vector's batch sizes"
        )
    return min(measured, key=lambda c: (c.peak_power_w or 0.0, c.point.gpu_frequency_hz, c.point.batch_size))
