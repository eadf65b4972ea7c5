"""How probably each point is the best one below the cap: a fixed Latin hypercube of normal errors (see ``robust``).

The generator begins anew each time and only products, sums and comparisons are made of the draws, so that a replay
gives the same figures. With 1,024 draws a probability is off by 0.016 at most (one standard deviation); it informs and
explains, the choice itself does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from .mersenne import Uniforms
from .select import Candidate, below_cap, order
from .values import Objective

_DRAWS = 1024
_FLOOR = 0.05  # a time or power drawn below this share of its mean is taken as this: normal errors have no bound


@dataclass(frozen=True)
class Uncertain:
    """A candidate and its uncertainties: ``score`` is the expected objective; relative standard deviations ``_cv``."""

    candidate: Candidate
    score: float | None
    time_cv: float
    mean_power_cv: float
    relation_cv: float
    power_std_w: float

    def score_cv(self, objective: Objective, *, with_relation: bool = True) -> float:
        """Relative standard deviation of the objective, to first order; with or without the part from r."""
        twice = 2 if objective is Objective.EDP else 1
        parts = [twice * self.time_cv, 0.0 if objective is Objective.TIME else self.mean_power_cv]
        if with_relation:
            parts.append(twice * self.relation_cv)
        return math.sqrt(sum(part**2 for part in parts))

    def sure(self) -> bool:
        """Whether nothing about it is uncertain."""
        return self.time_cv == self.mean_power_cv == self.relation_cv == self.power_std_w == 0


def best_probabilities(rows: Sequence[Uncertain], cap_w: float | None, objective: Objective) -> list[float]:
    """For each row the share of draws in which it has the least objective of those below ``cap_w`` watts.

    Draws in which nothing is below the cap count for no row. Two rows of a batch size share the draw of r.
    """
    shares = [0.0] * len(rows)
    entries = _contenders(rows, cap_w, objective)
    if not entries:
        return shares
    if all(rows[i].sure() for i in entries):
        shares[entries[0]] = 1.0
        return shares
    best = np.full(_DRAWS, np.inf)
    winner = np.full(_DRAWS, -1)
    source = Uniforms(1)
    batches = sorted({rows[i].candidate.point.batch_size for i in entries})
    relation_z = {b: _errors(source) for b in batches}
    for i in entries:
        row = rows[i]
        time = _factor(row.time_cv, _errors(source))
        time = time * _factor(row.relation_cv, relation_z[row.candidate.point.batch_size])
        power_z = _errors(source)
        score: Any = (row.candidate.score(objective) or 0.0) * time
        if objective is not Objective.TIME:
            score = score * np.maximum(1 + row.mean_power_cv * power_z, _FLOOR)
        if objective is Objective.EDP:
            score = score * time
        wins = score < best  # the rows come in ``order``: of equals the first stays
        if cap_w is not None:
            wins &= (row.candidate.peak_power_w or 0.0) + row.power_std_w * power_z < cap_w
        best[wins] = np.broadcast_to(score, best.shape)[wins]
        winner[wins] = i
    for i in entries:
        shares[i] = int(np.count_nonzero(winner == i)) / _DRAWS
    return shares


def _contenders(rows: Sequence[Uncertain], cap_w: float | None, objective: Objective) -> list[int]:
    """Rows that could be the best at all, in ``order``: none that is worse, beyond all doubt, than a sure one."""
    scored = [i for i, row in enumerate(rows) if row.candidate.score(objective) is not None]
    possible, surely = [], []
    for i in scored:
        peak, std = rows[i].candidate.peak_power_w, rows[i].power_std_w
        if cap_w is None or (peak is not None and peak - 4 * std < cap_w and (std > 0 or below_cap(peak, cap_w))):
            possible.append(i)
            if cap_w is None or (peak is not None and peak + 4 * std < cap_w):
                surely.append(i)

    def bound(i: int, side: int) -> float:
        return (rows[i].candidate.score(objective) or 0.0) * (1 + side * 4 * rows[i].score_cv(objective))

    limit = min((bound(i, 1) for i in surely), default=math.inf)
    kept = [i for i in possible if bound(i, -1) <= limit]
    return sorted(kept, key=lambda i: order(rows[i].candidate.score(objective) or 0.0, rows[i].candidate))


def _factor(cv: float, errors: Any) -> Any:
    return 1.0 if cv == 0 else np.maximum(1 + cv * errors, _FLOOR)


def _errors(source: Uniforms) -> Any:
    """Standard normal errors, each of 1,024 equally likely strata once, in an order that ``source`` gives."""
    return _quantiles()[source.random_sample(_DRAWS).argsort()]


@lru_cache(maxsize=1)
def _quantiles() -> Any:
    normal = NormalDist()
    return np.array([normal.inv_cdf((k + 0.5) / _DRAWS) for k in range(_DRAWS)])
