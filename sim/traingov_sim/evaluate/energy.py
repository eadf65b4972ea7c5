"""``evaluate energy``: table II over the family of virtual AGX Orins, method by method (issue 4.5, 4.6).

Every row says what kind of figure it is: "calibrated" where the family was fitted to it (FFG's column), else
"predicted". Spreads are over members of the family: boards and curves that the published facts do not tell apart.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from traingov_policies.fitting import Fitted, grid_search
from traingov_policies.search.options import SearchSettings

from ..surfaces.orin_family import OrinFamily, load_orin_family
from ..surfaces.orin_pairs import EXAMPLES, MODELS, SAVINGS_714, SAVINGS_TREE, TEST_PAIRS, TEST_TASKS, Pair
from ..surfaces.published_orin import BATCH, FFG_HZ
from .energy_methods import METHODS, Family, OneBoard, Outcome
from .statistics import distribution, quantile_of

MEMBERS = 16
_PUBLISHED = {"ffg": SAVINGS_714, "mlg": SAVINGS_TREE}
_LENGTHS = (("below 1 min", 0.0, 60.0), ("1 to 10 min", 60.0, 600.0), ("10 min and more", 600.0, float("inf")))
SEARCHES = tuple(m for m in METHODS if m.startswith("search"))
Table = dict[tuple[str, str], list[Outcome]]  # (method, pair) → one outcome per member


def evaluate_energy(
    members: int = MEMBERS, seed: int = 0, *, family: OrinFamily | None = None,
    settings: SearchSettings | None = None, say: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Every comparison as a row of plain values. Savings in percent of mode 0's GPU + CPU energy.

    ``members`` of the family are taken, spread evenly over its boards. Raises ValueError for fewer than one or more
    than there are.
    """
    # Matrices are small: threads of a BLAS library would only wait for each other. Comes with scikit-learn.
    with importlib.import_module("threadpoolctl").threadpool_limits(1):
        return _evaluate(members, seed, family or load_orin_family(), settings, say)


def _evaluate(
    members: int, seed: int, whole: OrinFamily, settings: SearchSettings | None, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    if not 1 <= members <= len(whole):
        raise ValueError(f"members must lie between 1 and {len(whole)}, not {members}")
    shared = Family(whole)
    chosen = sorted({int(m) for m in np.linspace(0, len(whole) - 1, members)})
    table: Table = {(method, p.name): [] for method in METHODS for p in TEST_PAIRS}
    fits: dict[str, list[Fitted]] = {"regret": [], "labels": [], "regret-grouped": [], "labels-grouped": []}
    for number, member in enumerate(chosen):
        board = OneBoard(shared, member, seed, settings)
        fits["regret"].append(board.by_regret)
        fits["labels"].append(grid_search(board.data))
        fits["regret-grouped"].append(grid_search(board.data, "grouped", cost_sensitive=True))
        fits["labels-grouped"].append(grid_search(board.data, "grouped"))
        for method in METHODS:
            for pair in TEST_PAIRS:
                table[method, pair.name].append(board.outcome(pair, method))
        say(f"{number + 1} of {len(chosen)} boards")
    source = {"what": "family", "kind": "calibrated", "members": len(chosen), "of": len(whole), "sha256": whole.sha256}
    rows = [*_means(table), *_lengths(table, shared, chosen), *_cells(table), *_tree_column(table)]
    return [source, *rows, *_trees(fits), *_targets(table)]


def _kind(method: str) -> str:
    return "calibrated" if method == "ffg" else "predicted"


def _savings(table: Table, method: str, pairs: Sequence[Pair]) -> Any:
    """[members]: mean saving over pairs, percent."""
    return 100 * np.array([[o.saving for o in table[method, p.name]] for p in pairs]).mean(axis=0)


def _times(table: Table, method: str, pairs: Sequence[Pair]) -> Any:
    return np.array([[o.time for o in table[method, p.name]] for p in pairs]).mean(axis=0)


def _groups() -> list[tuple[str, str, list[Pair]]]:
    models = [("model", m.name, [p for p in TEST_PAIRS if p.model is m]) for m in MODELS]
    tasks = [("task", t, [p for p in TEST_PAIRS if p.task == t]) for t in TEST_TASKS]
    return [("all", "all", list(TEST_PAIRS)), *models, *tasks]


def _means(table: Table) -> list[dict[str, Any]]:
    """As table II prints them: all, per model, per task; and what it costs in time."""
    rows = []
    for what, name, pairs in _groups():
        for method in METHODS:
            row: dict[str, Any] = {
                **{"what": what, "name": name, "method": method, "kind": _kind(method)},
                "saving_percent": distribution(_savings(table, method, pairs), 2),
                "time_over_mode0": distribution(_times(table, method, pairs), 3),
            }
            if method in _PUBLISHED:
                cells = [_PUBLISHED[method][p.model.name][TEST_TASKS.index(p.task)] for p in pairs]
                row["published_percent"] = round(float(np.mean(cells)), 2)
            rows.append(row)
    return rows


def _lengths(table: Table, family: Family, chosen: Sequence[int]) -> list[dict[str, Any]]:
    """By how long the job lasts at mode 0, since a search needs time; and weighted by energy, as a battery sees it."""
    steps = np.array([math.ceil(EXAMPLES[p.task] / BATCH) for p in TEST_PAIRS])[:, None]
    members = list(chosen)
    seconds = steps * np.array([family.curves(p).time_s[members, -1] for p in TEST_PAIRS])
    joules = steps * np.array([family.curves(p).compute_j[members, -1] for p in TEST_PAIRS])
    rows = []
    for method in METHODS:
        saving = 100 * np.array([[o.saving for o in table[method, p.name]] for p in TEST_PAIRS])
        best = 100 * np.array([[o.saving for o in table["best", p.name]] for p in TEST_PAIRS])
        for name, low, high in _LENGTHS:
            within = (seconds >= low) & (seconds < high)
            if within.any():
                rows.append(
                    {
                        **{"what": "length", "name": name, "method": method, "kind": _kind(method)},
                        "saving_percent": round(float(saving[within].mean()), 2),
                        "gap_points": round(float((best - saving)[within].mean()), 2),
                        "jobs": int(within.sum()),
                    }
                )
        weighted = (saving * joules).sum(axis=0) / joules.sum(axis=0)
        short = (best * joules).sum(axis=0) / joules.sum(axis=0) - weighted
        rows.append(
            {
                **{"what": "energy-weighted", "name": "all", "method": method, "kind": _kind(method)},
                **{"saving_percent": distribution(weighted, 2), "gap_points": distribution(short, 2)},
            }
        )
    return rows


def _cells(table: Table) -> list[dict[str, Any]]:
    rows = []
    for pair in TEST_PAIRS:
        for method in METHODS:
            outcomes = table[method, pair.name]
            clocks = [o.clock_hz for o in outcomes if o.clock_hz is not None]
            row: dict[str, Any] = {
                **{"what": "cell", "name": pair.name, "method": method, "kind": _kind(method)},
                "saving_percent": distribution([100 * o.saving for o in outcomes], 2),
                "time_over_mode0": round(float(np.mean([o.time for o in outcomes])), 3),
                "clocks_hz": {str(hz): clocks.count(hz) for hz in sorted(set(clocks))},
            }
            if method in SEARCHES:
                row["probes"] = round(float(np.mean([o.probes for o in outcomes])), 2)
            if method in _PUBLISHED:
                row["published_percent"] = _PUBLISHED[method][pair.model.name][TEST_TASKS.index(pair.task)]
            rows.append(row)
    return rows


def _tree_column(table: Table) -> list[dict[str, Any]]:
    """MLG's cells that differ from FFG's: published beside predicted."""
    rows, errors, inside, rises = [], [], 0, 0
    for pair in TEST_PAIRS:
        if pair.saving_tree is None or pair.saving_714 is None:
            continue
        predicted = [100 * o.saving for o in table["mlg", pair.name]]
        fixed = [100 * o.saving for o in table["ffg", pair.name]]
        spread = distribution(predicted, 2)
        same = all(o.clock_hz == FFG_HZ for o in table["mlg", pair.name])
        error = spread["mean"] - pair.saving_tree
        errors.append(error)
        held = spread["least"] - 1.5 <= pair.saving_tree <= spread["largest"] + 1.5
        inside += held
        rises += (np.mean(predicted) - np.mean(fixed)) * (pair.saving_tree - pair.saving_714) > 0
        rows.append(
            {
                **{"what": "mlg-cell", "name": pair.name, "method": "mlg", "kind": "predicted"},
                **{"published_percent": pair.saving_tree, "published_ffg_percent": pair.saving_714},
                **{"saving_percent": spread, "error_points": round(error, 2), "within_spread": bool(held)},
                "quantile": quantile_of(pair.saving_tree, predicted),
                "algorithm_1_gives_714": same,
            }
        )
    summary = {
        **{"what": "mlg-summary", "name": "27 cells", "method": "mlg", "kind": "predicted"},
        "error_points": distribution(errors, 2),
        "absolute_error_points": distribution(np.abs(errors), 2),
        **{"within_spread": inside, "same_direction_as_published": int(rises), "cells": len(rows)},
    }
    return [*rows, summary]


def _trees(fits: dict[str, list[Fitted]]) -> list[dict[str, Any]]:
    """Trees fitted to each member's sweep of the training tasks: what they are worth on held-out workloads."""
    rows = []
    for name, fitted in fits.items():
        rows.append(
            {
                **{"what": "tree", "name": name, "method": fitted[0].method, "kind": "predicted"},
                **{"folds": fitted[0].folds, "published_accuracy": 0.62 if name == "labels" else None},
                "accuracy": distribution([f.score.accuracy for f in fitted], 3),
                "regret_percent": distribution([100 * f.score.regret_mean for f in fitted], 2),
                "majority_accuracy": distribution([f.majority.accuracy for f in fitted], 3),
                "majority_regret_percent": distribution([100 * f.majority.regret_mean for f in fitted], 2),
            }
        )
    return rows


def _targets(table: Table) -> list[dict[str, Any]]:
    """No model with a negative mean; mean saving within a point of the best clock's, probing included."""
    rows: list[dict[str, Any]] = []
    best = _savings(table, "best", TEST_PAIRS)
    for method in (*SEARCHES, "cost_tree", "mlg", "ffg"):
        models = {m.name: _savings(table, method, [p for p in TEST_PAIRS if p.model is m]) for m in MODELS}
        lowest = min(models, key=lambda name: float(models[name].mean()))
        gap = best - _savings(table, method, TEST_PAIRS)
        more = _savings(table, method, TEST_PAIRS) - _savings(table, "mlg", TEST_PAIRS)
        rows += [
            {
                **{"what": "target", "name": "no model with a negative mean", "method": method, "kind": "predicted"},
                **{"lowest_model": lowest, "saving_percent": distribution(models[lowest], 2)},
                "negative_model_means": int(sum(int((v < 0).sum()) for v in models.values())),
                **{"of": len(models) * len(best), "met": bool(models[lowest].mean() >= 0)},
            },
            {
                **{"what": "target", "name": "within 1 point of the best clock", "method": method},
                **{"kind": "predicted", "gap_points": distribution(gap, 2), "met": bool(gap.mean() <= 1.0)},
                "better_than_mlg_points": distribution(more, 2),
            },
        ]
    return rows
