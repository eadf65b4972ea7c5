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
    *,
    measured_only: bool = False,
) -> Selection:
    """The point that minimises ``objective`` among those with peak power strictly below ``cap_w`` watts (Eq. 1, 4).

    ``relation`` None means r = 1 for every batch size; ``batch_sizes`` restricts the choice to those the job can use;
    ``measured_only`` leaves out predicted cells: what a model filled in is never chosen for a running job.
    Uncertainties play no part here; ``robust.choose`` takes them into account and is this without them.
    Ties go to the lower peak power, then to the lower frequency and the smaller batch. Where no point is feasible the
    point of lowest peak power is chosen with ``feasible`` False. Raises ValueError when the table and the relation
    vector leave no point at all.
    """
    known = known_candidates(lut, relation, batch_sizes, measured_only=measured_only)
    feasible = [
        (score, candidate)
        for candidate in known
        if (score := candidate.score(objective)) is not None and below_cap(candidate.peak_power_w, cap_w)
    ]
    if not feasible:
        measured = [c for c in known if c.peak_power_w is not None]
        if not measured:
            raise nothing_usable(lut, cap_w)
        least = min(measured, key=lambda c: (c.peak_power_w or 0.0, c.point.gpu_frequency_hz, c.point.batch_size))
        return Selection(least, False, ())
    best: dict[int, tuple[float, Candidate]] = {}
    for score, candidate in feasible:
        b = candidate.point.batch_size
        if b not in best or order(score, candidate) < order(*best[b]):
            best[b] = (score, candidate)
    ranked = [candidate for _, candidate in sorted(best.values(), key=lambda pair: order(*pair))]
    return Selection(ranked[0], True, tuple(ranked))


def known_candidates(
    lut: Lut, relation: RelationVector | None, batch_sizes: Iterable[int] | None, *, measured_only: bool
) -> list[Candidate]:
    """Every point of the table whose batch size is allowed and has a relation value, in the table's order."""
    allowed = None if batch_sizes is None else set(batch_sizes)
    return [
        candidate
        for point in lut.points()
        if allowed is None or point.batch_size in allowed
        if not measured_only or lut.cell(point).origin != "predicted"
        if (candidate := candidate_at(lut, relation, point)) is not None
    ]


def below_cap(peak_power_w: float | None, cap_w: float | None) -> bool:
    """Whether a peak power is feasible: strictly below the cap (Eq. 1). Unknown power is not, except without a cap."""
    return cap_w is None or (peak_power_w is not None and peak_power_w < cap_w)


def order(score: float, candidate: Candidate) -> tuple[float, float, int, int]:
    """How candidates are ranked: by score; ties to lower peak power, then the lower clock, then the smaller batch."""
    power = float("inf") if candidate.peak_power_w is None else candidate.peak_power_w
    return (score, power, candidate.point.gpu_frequency_hz, candidate.point.batch_size)


def nothing_usable(lut: Lut, cap_w: float | None) -> ValueError:
    """The error for a table that leaves no point at all."""
    limit = "" if cap_w is None else f" below {cap_w:g} W"
    return ValueError(
        f"no usable point{limit} in the table of {lut.workload} on {lut.board}: nothing measured for a batch size "
        "that is allowed and has a relation value; profile first, or check the relation vector's batch sizes"
    )
