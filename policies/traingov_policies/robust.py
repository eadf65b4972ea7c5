"""The joint choice with uncertainty: what is chosen stays below the cap with a stated probability.

Assumptions, all of them: the error of each table value is normal and independent of the others. ``time_std_s`` is the
standard deviation of ``time_s``; ``power_std_w`` that of ``peak_power_w``, and the same watts for ``mean_power_w``.
``RelationVector.interval`` is a 95 % interval, read as normal with its half width over 1.96; one value of r holds for
all clocks of a batch size. A value without a stated uncertainty is exact, so that without any ``choose`` equals
``select.select``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from .lut import Lut
from .odds import Uncertain, best_probabilities
from .relation import RelationVector
from .select import Candidate, Selection, below_cap, known_candidates, nothing_usable, order
from .values import Objective, OperatingPoint

VIOLATION_PROBABILITY = 0.05
_Z95 = 1.959963984540054  # half width of a 95 % interval, in standard deviations


@dataclass(frozen=True)
class Judged:
    """A candidate with what uncertainty makes of it.

    ``score`` is the expected objective (seconds, joules, or joule-seconds; up to the common factor), ``score_cv`` its
    relative standard deviation, ``table_cv`` the part of it that does not come from r. ``violation_probability``:
    that the peak power is not below the cap (0 without a cap; 1 where the power is unknown). ``best_probability``:
    that this point is the best of those below the cap. ``needed_cap_w``: the cap from which on it is feasible.
    """

    candidate: Candidate
    origin: str | None
    score: float | None
    score_cv: float
    table_cv: float
    violation_probability: float
    best_probability: float
    needed_cap_w: float | None

    @property
    def point(self) -> OperatingPoint:
        """The operating point."""
        return self.candidate.point


@dataclass(frozen=True)
class Choice:
    """``selection`` is the chosen point and the best of each batch size; ``judged`` every point that was looked at.

    ``ranked`` are the points that may be chosen, best first: those whose probability of violating the cap is below
    ``violation_probability``. It is empty where there is none; then the point least likely to violate is chosen.
    """

    selection: Selection
    judged: tuple[Judged, ...]
    ranked: tuple[Judged, ...]
    objective: Objective
    cap_w: float | None
    violation_probability: float

    def of(self, point: OperatingPoint) -> Judged:
        """What was found of ``point``. Raises KeyError where it was not looked at."""
        for judged in self.judged:
            if judged.point == point:
                return judged
        raise KeyError(f"{point} was not among the points of this choice")

    @property
    def chosen(self) -> Judged:
        """The chosen point."""
        return self.of(self.selection.chosen.point)


def choose(
    lut: Lut,
    relation: RelationVector | None = None,
    cap_w: float | None = None,
    objective: Objective = Objective.TIME,
    batch_sizes: Iterable[int] | None = None,
    *,
    violation_probability: float = VIOLATION_PROBABILITY,
    measured_only: bool = False,
) -> Choice:
    """The point of least expected objective among those that violate the cap with less than the stated probability.

    Without uncertainties it is ``select``'s. Of points that are all too likely to violate the cap, the least likely
    one is chosen, of equals that of lowest peak power, and the selection is not feasible. ``measured_only`` leaves
    predicted cells out. Raises ValueError when no point is left, or for a probability outside (0, 0.5].
    """
    if not 0 < violation_probability <= 0.5:
        raise ValueError(f"violation probability: must lie in (0, 0.5], not {violation_probability!r}")
    known = known_candidates(lut, relation, batch_sizes, measured_only=measured_only)
    rows = [_uncertain(lut, relation, candidate, objective) for candidate in known]
    odds = best_probabilities(rows, cap_w, objective)
    z = _z_of(violation_probability)
    judged = tuple(
        Judged(
            row.candidate,
            lut.cell(row.candidate.point).origin,
            row.score,
            row.score_cv(objective),
            row.score_cv(objective, with_relation=False),
            violation(row.candidate.peak_power_w, row.power_std_w, cap_w),
            best,
            None if row.candidate.peak_power_w is None else row.candidate.peak_power_w + z * row.power_std_w,
        )
        for row, best in zip(rows, odds, strict=True)
    )
    ranked = tuple(
        sorted(
            (j for j in judged if j.score is not None and _feasible(j, cap_w, violation_probability)),
            key=lambda j: order(j.score or 0.0, j.candidate),
        )
    )
    if ranked:
        best_of: dict[int, Candidate] = {}
        for j in ranked:
            best_of.setdefault(j.point.batch_size, j.candidate)
        selection = Selection(ranked[0].candidate, True, tuple(best_of.values()))
    else:
        selection = Selection(_least_likely(judged, lut, cap_w), False, ())
    return Choice(selection, judged, ranked, objective, cap_w, violation_probability)


def violation(peak_power_w: float | None, std_w: float, cap_w: float | None) -> float:
    """Probability that the peak power is not below the cap: normal with ``std_w``; unknown power violates any cap."""
    if cap_w is None:
        return 0.0
    if peak_power_w is None:
        return 1.0
    if std_w <= 0:
        return 0.0 if peak_power_w < cap_w else 1.0
    return 0.5 * math.erfc((cap_w - peak_power_w) / (std_w * math.sqrt(2)))


def relation_cv(relation: RelationVector | None, batch_size: int) -> float:
    """Relative standard deviation of r, from its 95 % interval; 0 where none is stated."""
    r = None if relation is None else relation.of(batch_size)
    interval = None if relation is None else relation.interval_of(batch_size)
    if not r or interval is None:
        return 0.0
    low, high = interval
    return (high - low) / (2 * _Z95 * r)


def _feasible(judged: Judged, cap_w: float | None, level: float) -> bool:
    return below_cap(judged.candidate.peak_power_w, cap_w) and judged.violation_probability < level


def _least_likely(judged: tuple[Judged, ...], lut: Lut, cap_w: float | None) -> Candidate:
    measured = [j for j in judged if j.candidate.peak_power_w is not None]
    if not measured:
        raise nothing_usable(lut, cap_w)
    return min(
        measured,
        key=lambda j: (
            j.violation_probability,
            j.candidate.peak_power_w or 0.0,
            j.point.gpu_frequency_hz,
            j.point.batch_size,
        ),
    ).candidate


def _uncertain(lut: Lut, relation: RelationVector | None, candidate: Candidate, objective: Objective) -> Uncertain:
    cell = lut.cell(candidate.point)
    time_cv = cell.time_std_s / cell.time_s if cell.time_std_s and cell.time_s else 0.0
    mean_cv = cell.power_std_w / cell.mean_power_w if cell.power_std_w and cell.mean_power_w else 0.0
    r_cv = relation_cv(relation, candidate.point.batch_size)
    score = candidate.score(objective)
    if score is not None and objective is Objective.EDP:
        score *= (1 + time_cv**2) * (1 + r_cv**2)  # E[P T² r²]: time and r enter squared
    return Uncertain(candidate, score, time_cv, mean_cv, r_cv, cell.power_std_w or 0.0)


def _z_of(probability: float) -> float:
    """Standard deviations below the cap that a point must stay, so that it violates with ``probability``."""
    return NormalDist().inv_cdf(1 - probability)
