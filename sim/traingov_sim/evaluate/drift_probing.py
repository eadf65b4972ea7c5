"""Active probing: how soon a change of one point against another is found, by the share of time spent on probes.

The probes are those that the governor would make (``drift.rivals``) of tables with noise, made from members of the
calibrated families; each costs its settling and measuring time, another batch size a second more. One rival point,
any of those within 10 % of the chosen one, becomes 5 % faster against all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traingov_policies.drift.rivals import Rivals
from traingov_policies.drift.settings import DriftSettings
from traingov_policies.robust import Choice, choose
from traingov_policies.values import OperatingPoint

from ..surfaces.clocks import CLOCKS_HZ
from ..surfaces.family import FAMILIES, load_family
from ..surfaces.published import BATCHES
from .drift_partial import SAMPLES, Physics, measured_table, physics_of, truth
from .statistics import distribution

SEED = 2026
BUDGETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
_SHIFT = 0.05
_NEAR = 0.10
_SETTLE_S, _MEASURE_S, _BATCH_S = 0.8, 1.2, 1.0
_PROBE_SD = 0.008  # of ln(time) of a probe, against a live mean
_TABLE_SD = 0.01
_LIMIT_S = 48 * 3600.0


def probing_figures(cases: int = 100, seed: int = SEED) -> dict[str, Any]:
    """By budget: seconds from the change to the alarm (``delay_s``, distribution; ``missed`` within two days), seconds
    a probe costs, rivals in turn, and false alarms in 1,000 h of clean tables. Kind "calibrated".
    """
    rng = np.random.default_rng(seed)
    tables = [_case(k, rng) for k in range(cases)]
    rows = []
    for budget in BUDGETS:
        delays, clean_alarms, clean_s = [], 0, 0.0
        for case in tables:
            delay, _ = _run(case, budget, rng, changed=True)
            delays.append(delay)
            alarm, lasted = _run(case, budget, rng, changed=False)
            clean_alarms += alarm is not None
            clean_s += lasted
        seen = [d for d in delays if d is not None]
        rows.append(
            {
                "budget": budget,
                "delay_s": distribution(seen, 0) if seen else None,
                "missed": len(delays) - len(seen),
                "false_alarms": clean_alarms,
                "clean_hours": round(clean_s / 3600),
                "false_alarms_per_1000_h": round(3.6e6 * clean_alarms / clean_s, 2),
            }
        )
    return {"kind": "calibrated", "seed": seed, "shift": _SHIFT, "cases": cases, "budgets": rows}


class _Case:
    """A table with noise, its choice, and the rival that will change."""

    def __init__(
        self, choice: Choice, errors: dict[OperatingPoint, float], steps_s: dict[OperatingPoint, float]
    ) -> None:
        self.choice, self.errors, self.steps_s = choice, errors, steps_s
        chosen = choice.chosen
        near = [
            j.point
            for j in choice.ranked
            if j.point != chosen.point and j.score and chosen.score and j.score / chosen.score - 1 <= _NEAR
        ]
        self.near = near or [choice.ranked[1].point]

    def cost_s(self, point: OperatingPoint) -> float:
        step_s = self.steps_s[point]
        other = point.batch_size != self.choice.chosen.point.batch_size
        return _SETTLE_S + 0.5 * step_s + max(_MEASURE_S, 2 * step_s) + _BATCH_S * other


def _case(k: int, rng: np.random.Generator) -> _Case:
    family = FAMILIES[k % len(FAMILIES)]
    members = load_family(*family)
    clocks, sizes = CLOCKS_HZ[family[0]], BATCHES[family[1]].sizes
    physics: Physics = physics_of(members, int(rng.integers(len(members))))
    true = truth(physics, sizes, clocks)
    table = measured_table(family, sizes, clocks, true, rng)
    powers = np.sort(true[1].ravel())
    cap_w = float(powers[int(len(powers) * rng.uniform(0.5, 1.0)) - 1]) * 1.02
    choice = choose(table, None, cap_w)
    errors, steps_s = {}, {}
    for p in table.points():
        i, j = table.index(p)
        errors[p] = float(np.log((table.time_s[i][j] or 0.0) / true[0][i, j]))
        steps_s[p] = float(true[0][i, j]) * p.batch_size / SAMPLES
    return _Case(choice, errors, steps_s)


def _run(case: _Case, budget: float, rng: np.random.Generator, *, changed: bool) -> tuple[float | None, float]:
    """Seconds from the change to the alarm (None: none), and seconds until the run ended."""
    settings = DriftSettings(probe_budget=budget)
    rivals, choice = Rivals(settings), case.choice
    home = choice.chosen.point
    points = [j.point for j in choice.ranked if case.cost_s(j.point) <= settings.probe_most_s]
    moved = case.near[int(rng.integers(len(case.near)))]
    begin_s = float(rng.uniform(0, 3600)) if changed else 0.0
    spent_s, now_s = 0.0, 0.0
    limit_s = begin_s + _LIMIT_S
    while now_s < limit_s:
        point = rivals.next(choice.ranked, choice.chosen, points, now_s, 0.0)
        if point is None:
            return None, limit_s
        cost_s = case.cost_s(point)
        ahead_s = 2 * (_SETTLE_S + _MEASURE_S) if rivals.suspect() else 0.0
        now_s = max(now_s + cost_s + 10.0, (spent_s + cost_s - ahead_s) / budget)
        spent_s += cost_s
        x = _PROBE_SD * float(rng.standard_t(5)) / 1.29 - case.errors[point] + case.errors[home]
        if changed and point == moved and now_s >= begin_s:
            x += float(np.log(1 - _SHIFT))
        sd = float(np.hypot(np.hypot(_PROBE_SD, 0.004), _TABLE_SD * 2**0.5))
        if rivals.tell(point, now_s, x, sd, power=None, power_sd=1.0):
            return (now_s - begin_s if now_s >= begin_s else None), now_s
    return None, limit_s
