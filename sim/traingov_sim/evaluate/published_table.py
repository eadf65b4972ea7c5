"""The published table, row by row and cap by cap, over the families of boards (method A).

Every member of a family, with N drawn for it, is one board that meets the published facts. On each, baseline 1,
baseline 2, the joint choice (``select`` on the noise-free table, r from the proxy) and the fastest (exhaustively, with
the target's own N) give seconds. What is reported are distributions over members, and where the published cell lies.

What is fitted: the SVHN (Austen) baseline cells. Of the second data set only the uncapped cells of the Nano's
baselines are used, for the level of N; the TX2 NX takes N of the second data set from the Nano's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from traingov_policies.select import select
from traingov_policies.values import Objective

from ..surfaces.clocks import CLOCKS_HZ, NANO_TICKED_HZ
from ..surfaces.family import Family, load_family
from ..surfaces.published import BATCHES, CALIBRATION_DATASETS, CAPS_W, ROWS, Row, calibration_row, row
from .boards import Array, Exact, relation_of
from .convergence import Convergence, draw
from .statistics import distribution, quantile_of

CAP_TEXT = {4.5: "4.5 W", 7.0: "7 W", None: "no cap"}
WHAT = ("baseline1", "baseline2", "joint", "fastest")


@dataclass(frozen=True)
class RowResult:
    """Seconds of one row: ``seconds[what]`` is [members, caps]; NaN where a cell does not exist.

    ``points`` [members][caps] is the joint choice (b, Hz). ``exact`` counts joint choices with r true that equal the
    exhaustive best, of ``judged``.
    """

    row: Row
    clocks: str
    variant: str
    seconds: dict[str, Array]
    points: list[list[tuple[int, int]]]
    exact: int
    judged: int


def clock_sets(board: str) -> dict[str, tuple[int, ...]]:
    """The tables of clocks to evaluate: the Nano's six of the figures and all twelve; the TX2 NX has but one."""
    if board == "nano":
        return {"six": NANO_TICKED_HZ, "twelve": CLOCKS_HZ["nano"]}
    return {"thirteen": CLOCKS_HZ[board]}


def level(family: Family, exact: Exact, r: Row, which: str) -> Array:
    """N in samples of a baseline's batch size [members], from the cells that may be used for it."""
    batches = BATCHES[r.workload]
    b, cells = (batches.baseline1, r.baseline1) if which == "baseline1" else (batches.baseline2, r.baseline2)
    i = exact.batch_sizes.index(b)
    fitted = r.dataset in CALIBRATION_DATASETS
    ratio = 1.0
    if not fitted and r.board != "nano":  # N does not depend on the board
        of = {d: getattr(row("nano", r.workload, d), which)[2] for d in (r.dataset, CALIBRATION_DATASETS[0])}
        ratio = of[r.dataset] / of[CALIBRATION_DATASETS[0]]
        calibrated = calibration_row(r.board, r.workload)
        cells, fitted = getattr(calibrated, which), True
    out = np.empty(len(family))
    for m, clocks in enumerate(family.baseline_hz):
        used = [(hz, s) for hz, s in zip(clocks, cells, strict=True) if s is not None]
        logs = [
            np.log(s / exact.sample_s[m, i, exact.clocks_hz.index(hz)]) for hz, s in (used if fitted else used[-1:])
        ]
        out[m] = ratio * np.exp(np.mean(logs))
    return out


def evaluate_row(r: Row, clocks: str, variant: str = "sampled", seed: int = 7) -> RowResult:
    """One row over its family. ``variant`` "figure 2" pins N(32) of ResNet18."""
    family = load_family(r.board, r.workload)
    full = Exact.of(family, CLOCKS_HZ[r.board])
    exact = Exact.of(family, clock_sets(r.board)[clocks])
    batches = BATCHES[r.workload]
    index = [f"{x.board}/{x.workload}/{x.dataset}" for x in ROWS].index(f"{r.board}/{r.workload}/{r.dataset}")
    n1, n2 = level(family, full, r, "baseline1"), level(family, full, r, "baseline2")
    if r.board != "nano":  # the same trainings as on the Nano: the same draws
        index = [f"{x.board}/{x.workload}/{x.dataset}" for x in ROWS].index(f"nano/{r.workload}/{r.dataset}")
    n = draw(batches, n1, n2, np.random.default_rng([seed, index]), figure2=variant == "figure 2")
    seconds = {what: np.full((len(family), len(CAPS_W)), np.nan) for what in WHAT}
    points: list[list[tuple[int, int]]] = []
    same = 0
    for m in range(len(family)):
        seconds_m, points_m, same_m = _member(r, full, exact, n, m)
        points.append(points_m)
        same += same_m
        for what in WHAT:
            seconds[what][m] = seconds_m[what]
    return RowResult(r, clocks, variant, seconds, points, same, len(family) * len(CAPS_W))


def _member(
    r: Row, full: Exact, exact: Exact, n: Convergence, m: int
) -> tuple[dict[str, list[float]], list[tuple[int, int]], int]:
    batches, sizes, family = BATCHES[r.workload], exact.batch_sizes, exact.family
    lut = exact.lut(m)
    from_proxy = relation_of(r.workload, sizes, n.proxy[m])
    true = relation_of(r.workload, sizes, n.samples[m])
    seconds: dict[str, list[float]] = {what: [] for what in WHAT}
    points: list[tuple[int, int]] = []
    same = 0
    for k, cap_w in enumerate(CAPS_W):
        hz = family.baseline_hz[m][k]
        for what, b in (("baseline1", batches.baseline1), ("baseline2", batches.baseline2)):
            i = sizes.index(b)
            seconds[what].append(float(full.sample_s[m, i, full.clocks_hz.index(hz)] * n.samples[m, i]))
        chosen = select(lut, from_proxy, cap_w, Objective.TIME).chosen.point
        i, j = sizes.index(chosen.batch_size), exact.clocks_hz.index(chosen.gpu_frequency_hz)
        seconds["joint"].append(float(exact.sample_s[m, i, j] * n.samples[m, i]))
        points.append((chosen.batch_size, chosen.gpu_frequency_hz))
        best = exact.best(m, n.samples[m], cap_w)
        seconds["fastest"].append(float("nan") if best is None else best[0])
        ideal = select(lut, true, cap_w, Objective.TIME).chosen.point
        same += best is not None and (ideal.batch_size, ideal.gpu_frequency_hz) == best[1:]
    return seconds, points, same


def published_cell(r: Row, what: str, k: int) -> float | None:
    """The published seconds; None for the one cell that does not fit its neighbours."""
    cell: float | None = getattr(r, what)[k]
    return cell


def kind_of(r: Row, what: str, k: int) -> str:
    """What kind of figure a cell is: whether the seconds took part in a fit."""
    if what in ("joint", "fastest"):
        return "predicted"
    if r.dataset in CALIBRATION_DATASETS:
        return "calibrated"
    return "calibrated" if k == len(CAPS_W) - 1 and r.board == "nano" else "predicted"


def cells(result: RowResult) -> list[dict[str, Any]]:
    """Every cell of a row as a comparison."""
    out: list[dict[str, Any]] = []
    strict = np.array(load_family(result.row.board, result.row.workload).strict)
    for what in WHAT:
        for k, cap_w in enumerate(CAPS_W):
            values = result.seconds[what][:, k]
            known = values[~np.isnan(values)]
            published = published_cell(result.row, what, k)
            entry: dict[str, Any] = {
                **_place(result, cap_w),
                "comparison": f"seconds of {what}",
                "kind": kind_of(result.row, what, k),
                "published": published,
                "seconds": distribution(known, 1),
            }
            if published is not None:
                entry["error"] = distribution(known / published - 1)
                entry["published_at_quantile"] = quantile_of(published, known)
                if what in ("joint", "fastest") and strict.sum() >= 20:
                    entry["published_at_quantile_strict"] = quantile_of(published, values[strict & ~np.isnan(values)])
            if what == "joint":
                entry["chosen"] = _shares([p[k] for p in result.points])
            out.append(entry)
    return out


def speed_ups(result: RowResult) -> list[dict[str, Any]]:
    """Speed-up of joint over each baseline, cell by cell."""
    out: list[dict[str, Any]] = []
    for what in ("baseline1", "baseline2"):
        for k, cap_w in enumerate(CAPS_W):
            values = result.seconds[what][:, k] / result.seconds["joint"][:, k]
            base, joint = published_cell(result.row, what, k), published_cell(result.row, "joint", k)
            published = None if base is None or joint is None else base / joint
            entry: dict[str, Any] = {
                **_place(result, cap_w),
                "comparison": f"speed-up of joint over {what}",
                "kind": "predicted",
                "published": None if published is None else round(published, 4),
                "speed_up": distribution(values),
            }
            if published is not None:
                entry["published_at_quantile"] = quantile_of(published, values)
            out.append(entry)
    return out


def overall(results: list[RowResult]) -> dict[str, Any]:
    """DESIGN 8 row 3: mean and peak speed-up over all cells and both baselines, one value per draw of boards.

    A draw takes the same member number of every row's family, up to the smallest family's size.
    """
    ratios: list[Array] = []
    published: dict[str, list[float]] = {"baseline1": [], "baseline2": []}
    draws = min(len(result.points) for result in results)
    for result in results:
        for what in ("baseline1", "baseline2"):
            ratios.append((result.seconds[what] / result.seconds["joint"])[:draws])
            for k in range(len(CAPS_W)):
                base, joint = published_cell(result.row, what, k), published_cell(result.row, "joint", k)
                if base is not None and joint is not None:
                    published[what].append(base / joint)
    table = np.concatenate(ratios, axis=1)
    mean, peak = table.mean(axis=1), table.max(axis=1)
    every = published["baseline1"] + published["baseline2"]
    over = {w: np.concatenate(ratios[i::2], axis=1).mean(axis=1) for i, w in enumerate(("baseline1", "baseline2"))}
    return {
        "comparison": "speed-up of joint over both baselines, all rows and caps",
        "kind": "predicted",
        "clocks": results[0].clocks if len({r.clocks for r in results}) == 1 else "six (Nano), thirteen (TX2 NX)",
        "variant": results[0].variant,
        "published": {
            "mean": round(float(np.mean(every)), 3),
            "peak": round(max(every), 3),
            **{f"mean_over_{w}": round(float(np.mean(v)), 3) for w, v in published.items()},
        },
        "mean": distribution(mean),
        **{f"mean_over_{w}": distribution(values) for w, values in over.items()},
        "peak": distribution(peak),
        "published_mean_at_quantile": quantile_of(float(np.mean(every)), mean),
        "published_peak_at_quantile": quantile_of(max(every), peak),
    }


def _place(result: RowResult, cap_w: float | None) -> dict[str, Any]:
    return {
        "board": result.row.board,
        "workload": result.row.workload,
        "dataset": result.row.dataset,
        "cap_w": cap_w,
        "clocks": result.clocks,
        "variant": result.variant,
    }


def _shares(points: list[tuple[int, int]]) -> dict[str, float]:
    """How often each point was chosen, most often first."""
    found: dict[tuple[int, int], int] = {}
    for point in points:
        found[point] = found.get(point, 0) + 1
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return {f"{b} at {hz / 1e6:.0f} MHz": round(count / len(points), 3) for (b, hz), count in ranked[:4]}
