"""Full table, staircase and adaptive plan compared: points, cost, loss (DESIGN 8). ``profiling_run`` says how."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traingov_policies.plans import thinned
from traingov_policies.robust import VIOLATION_PROBABILITY
from traingov_policies.values import Objective

from ..surfaces import CLOCKS_HZ, NANO_TICKED_HZ
from ..surfaces.published import CAPS_W, ROWS
from . import profiling_run as p

COMPARISON = "profiling"
NOISE_SHOWN = 0.01  # at this noise the choice without guard band is shown too
ALL_CLOCKS, FEW_CLOCKS = "all clocks", "at most 8 clocks"


def evaluate_profiling(
    data: Path | None = None, *, quick: bool = False, repeats: int = 1, caps: int = 3, first_seed: int = 1000
) -> list[dict[str, Any]]:
    """Rows of plain numbers, one per surface, clock table, objective, noise and plan; "kind" says what they rest on.

    ``data``: the folder that holds ``loudva/``; where it is None or lacks a table, a row says so. ``caps``: how many
    caps are drawn per measured table, relation and repeat; ``repeats`` of noisy cases. ``quick``: one cap, and time
    only. About two minutes on one core with the defaults.
    """
    folder = None if data is None else data / "loudva"
    objectives = (Objective.TIME,) if quick else (Objective.TIME, Objective.ENERGY, Objective.EDP)
    drawn = 1 if quick else caps * repeats
    return [*measured_rows(folder, objectives, drawn, first_seed), *virtual_rows(repeats, first_seed)]


def measured_rows(
    data: Path | None, objectives: Sequence[Objective], caps: int, first_seed: int
) -> Iterator[dict[str, Any]]:
    """LoudVA's tables: all batch sizes and powers of two, all clocks and thinned ones, objectives, noises, plans."""
    for board, name in p.LOUDVA.items():
        path = None if data is None else data / name
        if path is None or not path.is_file():
            yield {
                "comparison": COMPARISON, "kind": "measured-data", "surface": f"loudva/{board}",
                "absent": f"{name} is not there: its figures are left out",
            }  # fmt: skip
            continue
        whole = p.measured_table(path)
        powers = [b for b in whole.batch_sizes if b & (b - 1) == 0]
        for clocks_name, clocks in ((ALL_CLOCKS, whole.clocks_hz), (FEW_CLOCKS, thinned(whole.clocks_hz, 8))):
            tables = [whole.part(sizes, clocks) for sizes in (whole.batch_sizes, powers)]
            for objective in objectives:
                plans = p.PLANS if objective is Objective.TIME else ("full", "adaptive")
                for noise in p.NOISES if objective is Objective.TIME else p.NOISES[:2]:
                    cases = _drawn(tables, objective, caps, first_seed)
                    for plan in (*plans, p.UNGUARDED) if noise == NOISE_SHOWN else plans:
                        row = _row(cases, plan, noise, 1, first_seed)
                        head = {"surface": f"loudva/{board}", "clocks": clocks_name, "objective": objective.value}
                        yield {"comparison": COMPARISON, "kind": "measured-data", **head, **row}


def virtual_rows(repeats: int, first_seed: int) -> Iterator[dict[str, Any]]:
    """The published rows and caps on the virtual boards, with the published length of each training."""
    for clocks_name in (FEW_CLOCKS, ALL_CLOCKS):
        cases = []
        for row in ROWS:
            few = NANO_TICKED_HZ if row.board == "nano" else thinned(CLOCKS_HZ[row.board], 8)
            table = p.virtual_table(row.board, row.workload, few if clocks_name == FEW_CLOCKS else CLOCKS_HZ[row.board])
            cases += [
                p.Case(table, relation, cap, job_s=float(length))
                for cap, length in zip(CAPS_W, row.joint, strict=True)
                for relation in p.relation_vectors(table.batch_sizes)
            ]
        for noise in p.NOISES:
            for plan in (*p.PLANS, p.UNGUARDED) if noise == NOISE_SHOWN else p.PLANS:
                result = _row(cases, plan, noise, 1 if noise == 0 else repeats, first_seed)
                head = {"surface": "virtual boards", "clocks": clocks_name, "objective": "time"}
                yield {"comparison": COMPARISON, "kind": "predicted", **head, **result}


def _drawn(tables: Sequence[p.Table], objective: Objective, caps: int, first_seed: int) -> list[p.Case]:
    """Caps drawn evenly over each table's range of power, and none."""
    cases = []
    for table in tables:
        rng = random.Random(f"{first_seed} {table.name} {len(table.batch_sizes)} {len(table.clocks_hz)}")
        low, high = float(table.peak_w.min()), float(table.peak_w.max())
        for relation in p.relation_vectors(table.batch_sizes):
            for cap in [None, *(rng.uniform(low, high) for _ in range(caps))]:
                cases.append(p.Case(table, relation, cap, objective))
    return cases


def _row(cases: Sequence[p.Case], plan: str, noise: float, repeats: int, first_seed: int) -> dict[str, Any]:
    runs = []
    for k in range(repeats):
        for n, case in enumerate(cases):
            outcome = p.profile(case, plan, noise, first_seed + 7919 * k + n)
            if outcome is not None:
                runs.append((case, outcome))
    outcomes = [o for _, o in runs]
    losses = [o.loss for o in outcomes if o.loss is not None]
    row: dict[str, Any] = {
        "plan": plan,
        "noise": noise,
        "cases": len(outcomes),
        "points_mean": float(np.mean([o.points for o in outcomes])),
        "points_most": max(o.points for o in outcomes),
        "same_choice_share": float(np.mean([o.same for o in outcomes])),
        "loss_mean": float(np.mean(losses)),
        "loss_95": float(np.percentile(losses, 95)),
        "loss_most": max(losses),
        "loss_beyond_guard_band_mean": float(np.mean([o.beyond for o in outcomes if o.beyond is not None])),
        "nothing_found_share": float(np.mean([o.loss is None for o in outcomes])),
        "violation_share": float(np.mean([o.violates for o in outcomes])),
        "violation_allowed": VIOLATION_PROBABILITY,
        "excess_most": max(o.excess for o in outcomes),
        "highest_point_over_cap_95": float(np.percentile([o.highest for o in outcomes], 95)),
        "gross_s_mean": float(np.mean([o.gross_s for o in outcomes])),
        "net_s_mean": float(np.mean([o.net_s for o in outcomes])),
    }
    for name, long in (("long", True), ("short", False)):
        some = [(o, c.job_s) for c, o in runs if c.job_s is not None and (c.job_s >= p.LONG_JOB_S) == long]
        if some:
            gross, net = [o.gross_s / s for o, s in some], [o.net_s / s for o, s in some]
            row |= {
                f"{name}_jobs": len(some),
                f"{name}_gross_share_mean": float(np.mean(gross)),
                f"{name}_gross_share_most": max(gross),
                f"{name}_net_share_mean": float(np.mean(net)),
                f"{name}_net_share_most": max(net),
            }
    return row
