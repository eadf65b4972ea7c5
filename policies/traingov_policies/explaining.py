"""Why a choice was made: plain values that travel with the decision, from which ``wording`` makes sentences.

``detail`` tells the chosen point, what came second and by how much, which constraint bound, what was assumed, and what
would change the choice. Margins are ratios of the objective, so the unknown common factor of r drops out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .lut import Lut
from .relation import RelationVector
from .robust import Choice, Judged, choose
from .select import below_cap, order
from .values import Objective, OperatingPoint

_MOST_CANDIDATES = 12  # what a decision carries; a table may have more batch sizes


def candidate_json(judged: Judged) -> dict[str, Any]:
    """A candidate as ``traingov select --json`` and ``explain --json`` print it: plain values."""
    return {
        **judged.candidate.to_json(),
        "origin": judged.origin,
        "violation_probability": _rounded(judged.violation_probability),
        "best_probability": _rounded(judged.best_probability),
        "relative_std": _rounded(judged.score_cv),
    }


def selection_json(choice: Choice) -> dict[str, Any]:
    """The pinned output of ``traingov select --json``; each candidate has further keys (see ``candidate_json``)."""
    candidates = [candidate_json(choice.of(c.point)) for c in choice.selection.candidates]
    return {**choice.selection.chosen.to_json(), "feasible": choice.selection.feasible, "candidates": candidates}


def detail(
    choice: Choice, lut: Lut, relation: RelationVector | None, *,
    batch_sizes: Sequence[int], dropped: Sequence[int] = (), measured_only: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Everything that ``wording.sentences`` needs, as plain JSON values.

    ``batch_sizes`` are those the job can use, ``dropped`` those it registered and turned out not to fit.
    """
    again = _Again(choice, lut, relation, batch_sizes, measured_only=measured_only)
    out: dict[str, Any] = {
        "objective": choice.objective.value,
        "cap_w": choice.cap_w,
        "violation_limit": choice.violation_probability,
        "feasible": choice.selection.feasible,
        "chosen": candidate_json(choice.chosen),
        "candidates": [candidate_json(choice.of(c.point)) for c in choice.selection.candidates[:_MOST_CANDIDATES]],
        "batch_sizes": len(choice.selection.candidates),
        "points": sum(j.score is not None for j in choice.judged),
        "allowed": len(choice.ranked),
        "second": None,
        "second_batch": None,
        "bound": [],
        "assumed": _assumed(choice, lut, relation, batch_sizes, measured_only=measured_only),
        "changes": [],
    }
    if len(choice.ranked) > 1:
        out["second"] = _margin(choice, choice.ranked[1])
        other = next((j for j in choice.ranked if j.point.batch_size != choice.chosen.point.batch_size), None)
        out["second_batch"] = None if other is None else _margin(choice, other)
    out["bound"] = again.bound(dropped)
    out["changes"] = again.changes()
    return out


class _Again:
    """The same choice under other circumstances."""

    def __init__(
        self, choice: Choice, lut: Lut, relation: RelationVector | None, batch_sizes: Sequence[int], *,
        measured_only: bool,
    ) -> None:  # fmt: skip
        self._choice, self._lut, self._relation = choice, lut, relation
        self._batch_sizes, self._measured_only = batch_sizes, measured_only

    def bound(self, dropped: Sequence[int]) -> list[dict[str, Any]]:
        """The constraints without each of which another point would be chosen, and which point."""
        found = []
        chosen = self._choice.chosen
        if self._choice.cap_w is not None and (best := self._best(math.inf)) is not None and best != chosen:
            found.append({"by": "cap", **self._compared(best), "needed_cap_w": best.needed_cap_w})
        if self._choice.selection.feasible and (nominal := self._nominal()) is not None and nominal != chosen:
            odds = {"violation_probability": _rounded(nominal.violation_probability)}
            found.append({"by": "uncertainty", **self._compared(nominal), **odds})
        if dropped:
            entry: dict[str, Any] = {"by": "memory", "batch_sizes": list(dropped), "point": None}
            with_them = self._chosen(relation=self._relation, batch_sizes=[*self._batch_sizes, *dropped])
            if with_them is not None and with_them.point.batch_size in dropped:
                entry |= self._compared(with_them)
            found.append(entry)
        if self._relation is not None:
            alone = self._chosen(relation=None, batch_sizes=self._batch_sizes)
            if alone is not None and alone.point != chosen.point:
                found.append({"by": "relation", "point": _place(alone.point)})
        return found

    def changes(self) -> list[dict[str, Any]]:
        """What would change the choice: the next caps up and down at which it differs, and other values of r."""
        choice = self._choice
        found = []
        if choice.cap_w is not None:
            levels = sorted(
                {j.needed_cap_w for j in choice.judged if j.needed_cap_w is not None and j.score is not None}
            )
            above = [w for w in levels if w >= choice.cap_w]
            for level in above:
                best = self._best(level, inclusive=True)
                if best is not None and (best.point != choice.chosen.point or not choice.selection.feasible):
                    found.append({"what": "cap-up", "cap_w": level, **self._compared(best)})
                    break
        if choice.selection.feasible and choice.chosen.needed_cap_w is not None:
            level = choice.chosen.needed_cap_w
            below = self._best(level)
            entry = {"what": "cap-down", "cap_w": level, "point": None}
            found.append(entry if below is None else entry | self._compared(below))
        second = next((j for j in choice.ranked if j.point.batch_size != choice.chosen.point.batch_size), None)
        if second is not None and self._relation is not None:
            ratio = _ratio(second, choice.chosen)
            power = 0.5 if choice.objective is Objective.EDP else 1.0  # r enters squared there
            if ratio is not None:
                found.append({"what": "relation", "more_samples": ratio**power - 1, "point": _place(second.point)})
        return found

    def _best(self, cap_w: float, *, inclusive: bool = False) -> Judged | None:
        """The best point with a needed cap below ``cap_w`` (``inclusive``: or equal to it); None if there is none."""
        held = [
            j
            for j in self._choice.judged
            if j.score is not None
            and (
                cap_w == math.inf
                or (j.needed_cap_w is not None and (j.needed_cap_w < cap_w or (inclusive and j.needed_cap_w == cap_w)))
            )
        ]
        return min(held, key=lambda j: order(j.score or 0.0, j.candidate), default=None)

    def _nominal(self) -> Judged | None:
        """The best point whose stated peak power is below the cap, however uncertain it is."""
        choice = self._choice
        held = [j for j in choice.judged if j.score is not None and below_cap(j.candidate.peak_power_w, choice.cap_w)]
        return min(held, key=lambda j: order(j.score or 0.0, j.candidate), default=None)

    def _chosen(self, *, relation: RelationVector | None, batch_sizes: Sequence[int]) -> Judged | None:
        choice = self._choice
        try:
            return choose(
                self._lut, relation, choice.cap_w, choice.objective, batch_sizes,
                violation_probability=choice.violation_probability, measured_only=self._measured_only,
            ).chosen  # fmt: skip
        except ValueError:
            return None

    def _compared(self, other: Judged) -> dict[str, Any]:
        """``other`` against the chosen point: its place, power, and the objective as a relative difference."""
        ratio = _ratio(other, self._choice.chosen)
        more = None if ratio is None else ratio - 1
        return {"point": _place(other.point), "peak_power_w": other.candidate.peak_power_w, "more": more}


def _margin(choice: Choice, other: Judged) -> dict[str, Any]:
    """How much more ``other`` costs than the chosen point, with one standard deviation of that ratio."""
    chosen = choice.chosen
    same = other.point.batch_size == chosen.point.batch_size  # r is then common to both
    one, two = (chosen.table_cv, other.table_cv) if same else (chosen.score_cv, other.score_cv)
    ratio = _ratio(other, chosen)
    return {
        "point": _place(other.point),
        "more": None if ratio is None else ratio - 1,
        "more_std": None if ratio is None else ratio * math.hypot(one, two),
        "best_probability": _rounded(other.best_probability),
    }


def _assumed(
    choice: Choice, lut: Lut, relation: RelationVector | None, batch_sizes: Sequence[int], *, measured_only: bool
) -> list[dict[str, Any]]:
    """What was taken for granted, and what was left out."""
    found: list[dict[str, Any]] = []
    sizes = [b for b in lut.batch_sizes if b in set(batch_sizes)]
    if relation is None:
        found.append({"what": "no-relation"})
    else:
        without = [b for b in sizes if relation.of(b) is None]
        between = [b for b in sizes if b not in relation.batch_sizes and b not in without]
        found += [{"what": "no-relation-value", "batch_sizes": without}] if without else []
        found += [{"what": "interpolated-relation", "batch_sizes": between}] if between else []
        if relation.interval is None:
            found.append({"what": "exact-relation"})
    cells = [(p, lut.cell(p)) for p in lut.points() if p.batch_size in set(batch_sizes)]
    count = {o: sum(c.origin == o for _, c in cells) for o in ("predicted", "infeasible", "failed")}
    if count["predicted"]:
        found.append({"what": "predicted", "cells": count["predicted"], "used": not measured_only})
    found += [{"what": o, "cells": count[o]} for o in ("infeasible", "failed") if count[o]]
    unknown = sum(c.time_s is None and c.origin is None for _, c in cells)
    if unknown:
        found.append({"what": "not-measured", "cells": unknown})
    if choice.cap_w is not None and not any(c.power_std_w for _, c in cells):
        found.append({"what": "exact-power"})
    if not any(c.time_std_s for _, c in cells):
        found.append({"what": "exact-time"})
    return found


def _ratio(other: Judged, chosen: Judged) -> float | None:
    return other.score / chosen.score if other.score is not None and chosen.score else None


def _place(point: OperatingPoint) -> dict[str, int]:
    return {"batch_size": point.batch_size, "gpu_frequency_hz": point.gpu_frequency_hz}


def _rounded(share: float) -> float:
    """Four digits after the point: more would claim a precision that these figures do not have."""
    return round(share, 4)
