"""The energy search on measured curves (DESIGN 8): gaps to the best level, probes, and what a job pays for them.

    traingov-sim evaluate search [--json] [--trials N]

Truth is the table. A reading is the table's value with 2 % noise. The prior comes from the board's other curves, read
with the same noise; the curve's own job is left out of it. Three settings of the prior are fixed on one board and
reported on another; "shipped" are those of the service. Tables carry errors of their own, 2–3 % a cell, which no
search can foresee and which make the least cell of a table lower than the true curve's: so smoothed curves are
reported beside the raw ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traingov_policies.search.curves import OTHERS_MOST
from traingov_policies.search.options import SearchSettings
from traingov_policies.search.prior import Known, PriorSettings, prior

from . import search_methods as methods
from .search_data import Floats, MeasuredCurve, loudva, zeus

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
NOISE = 0.02
JOB_S = 3600.0
GRID = tuple(
    PriorSettings(odd, length, oddity) for odd in (0.1, 0.3, 0.6) for length in (0.2, 0.35) for oddity in (0.05, 0.1)
)
_TRIALS_A_PRIOR = 5


@dataclass(frozen=True)
class Source:
    """Curves of one board, and on which other board's the settings reported for it were fixed."""

    name: str
    path: str
    load: Callable[[Path], list[MeasuredCurve]]
    probes_most: int
    tuned_on: str
    axis: str


SOURCES = (
    Source("jetson-nano", "loudva/jetson_nano.csv", loudva, 4, "xavier-nx", "clock"),
    Source("xavier-nx", "loudva/xavier_nx.csv", loudva, 4, "jetson-nano", "clock"),
    Source("v100", "zeus/summary_power_v100.csv", zeus, 6, "rtx6000", "power limit"),
    Source("rtx6000", "zeus/summary_power_rtx6000.csv", zeus, 6, "v100", "power limit"),
)


@dataclass
class _Tally:
    gaps: dict[int, list[float]]
    probes: list[int]
    costs: list[float]
    readings: list[int]

    def row(self, levels: int) -> dict[str, Any]:
        every = np.concatenate([np.array(g) for g in self.gaps.values()])
        return {
            "levels": levels,
            "curves": len(self.gaps),
            "trials": len(every),
            "mean_gap": float(every.mean()),
            "gap_95": float(np.quantile(every, 0.95)),
            "worst_curve_mean_gap": max(float(np.mean(g)) for g in self.gaps.values()),
            "mean_probes": float(np.mean(self.probes)),
            "mean_readings": float(np.mean(self.readings)),
            "most_probes": max(self.probes),
            "job_over_start_worst": max(self.costs),
            "job_over_start_above_1_percent": float(np.mean(np.array(self.costs) > 0.01)),
            "job_over_start_mean": float(np.mean(self.costs)),
        }


def evaluate_search(
    trials: int = 100, data: Path = DATA, sources: Sequence[Source] = SOURCES, tune_trials: int = 20
) -> list[dict[str, Any]]:
    """A row per board, curves (raw, smoothed) and method; gaps are shares (0.01 is 1 %).

    ``job_over_start_*``: energy of a job of an hour, readings included, over that of the start's clock, less 1. A row
    with "skipped" says which data is absent.
    """
    rows: list[dict[str, Any]] = []
    held: dict[str, list[MeasuredCurve]] = {}
    for source in sources:
        try:
            held[source.name] = source.load(data / source.path)
        except OSError:
            rows.append({"kind": "measured-data", "board": source.name, "skipped": f"{source.path} is absent"})
    tuned: dict[str, PriorSettings] = {}
    for source in sources:
        if source.name not in held:
            continue
        settings = {"shipped": PriorSettings()}
        other = next((s for s in sources if s.name == source.tuned_on and s.name in held), None)
        if other is not None:
            if other.name not in tuned:
                tuned[other.name] = tune(held[other.name], other.probes_most, tune_trials)
            settings[f"fixed on {other.name}"] = tuned[other.name]
        for shape in ("raw", "smoothed"):
            curves = held[source.name]
            if shape == "smoothed":
                curves = [c.smoothed() for c in curves]
            base = {"kind": "measured-data", "board": source.name, "axis": source.axis, "shape": shape, "noise": NOISE}
            for name, tally in _others(curves, trials).items():
                rows.append({**base, "method": name, **tally.row(len(curves[0].levels))})
            for name, prior_settings in settings.items():
                tally = ours(curves, trials, source.probes_most, prior_settings)
                text = ", ".join(f"{key} {value:g}" for key, value in vars(prior_settings).items())
                rows.append({**base, "method": f"search, {name}", "settings": text, **tally.row(len(curves[0].levels))})
    return rows


def tune(curves: Sequence[MeasuredCurve], probes_most: int, trials: int) -> PriorSettings:
    """Of GRID, the settings of least mean gap on these curves (other draws than those that are reported)."""

    def mean(settings: PriorSettings) -> float:
        gaps = ours(curves, trials, probes_most, settings, seed=7).gaps
        return float(np.mean([np.mean(g) for g in gaps.values()]))

    return min(GRID, key=mean)


def ours(
    curves: Sequence[MeasuredCurve], trials: int, probes_most: int, settings: PriorSettings, seed: int = 0
) -> _Tally:
    """The service's search on every curve, ``trials`` times each."""
    tally, limits = _Tally({}, [], [], []), SearchSettings()
    for number, curve in enumerate(curves):
        rng = np.random.default_rng([seed, number])
        others = [c for c in curves if c.job != curve.job]
        belief = None
        for trial in range(trials):
            if belief is None or trial % _TRIALS_A_PRIOR == 0:
                picked = rng.permutation(len(others))[:OTHERS_MOST]
                known = [_remembered(others[i], rng) for i in picked]
                belief = prior(curve.u, known, float(curve.u[curve.start]), settings)
            found = methods.searched(
                _reader(curve, rng), belief, curve.start, NOISE, probes_most,
                job_s=JOB_S, loss_share=limits.loss_share, loss_s=limits.loss_s,
            )  # fmt: skip
            _count(tally, number, curve, found)
    return tally


def _others(curves: Sequence[MeasuredCurve], trials: int) -> dict[str, _Tally]:
    """The methods that it is compared with."""
    n = len(curves[0].levels)
    runs: dict[str, Callable[[methods.Read, int], methods.Found]] = {
        "start alone": lambda read, start: methods.Found(start, 0, (start,)),
        "golden section": lambda read, start: methods.golden_section(read, n),
        "patience descent": lambda read, start: methods.patience_descent(read, n, start),
        "noisy exhaustive": lambda read, start: methods.exhaustive(read, n),
    }
    out = {}
    for name, run in runs.items():
        out[name] = tally = _Tally({}, [], [], [])
        for number, curve in enumerate(curves):
            rng = np.random.default_rng([1, number])
            for _ in range(trials):
                _count(tally, number, curve, run(_reader(curve, rng), curve.start))
    return out


def _count(tally: _Tally, number: int, curve: MeasuredCurve, found: methods.Found) -> None:
    tally.gaps.setdefault(number, []).append(curve.gap(found.index))
    tally.probes.append(found.probes)
    tally.readings.append(len(found.visited))
    # A reading takes a fixed time, so at a costlier clock fewer samples are done in it: power counts, to first order
    # as the cost does. The rest of the job runs where the search ended.
    relative = curve.cost_j / curve.cost_j[curve.start]
    read_s = methods.READING_S * len(found.visited)
    probing = methods.READING_S * sum(1 - 1 / relative[i] for i in found.visited)
    tally.costs.append(float((probing + (JOB_S - read_s) * (relative[found.index] - 1)) / JOB_S))


def _reader(curve: MeasuredCurve, rng: np.random.Generator) -> methods.Read:
    log = np.log(curve.cost_j)
    return lambda i: float(log[i] + rng.normal(0, NOISE))


def _remembered(curve: MeasuredCurve, rng: np.random.Generator) -> Known:
    value: Floats = np.log(curve.cost_j) + rng.normal(0, NOISE, len(curve.levels))
    return Known(curve.u, value, np.full(len(curve.levels), NOISE))


def table(rows: Iterable[dict[str, Any]]) -> str:
    """The rows as text."""
    head = (
        "board",
        "shape",
        "method",
        "mean %",
        "95 %",
        "worst",
        "probes",
        "most",
        "readings",
        "job worst",
        "above 1%",
    )
    lines = [f"{head[0]:12} {head[1]:9} {head[2]:30} " + " ".join(f"{h:>9}" for h in head[3:])]
    for r in rows:
        if "skipped" in r:
            lines.append(f"{r['board']:12} skipped: {r['skipped']}")
            continue
        figures = [100 * r[k] for k in ("mean_gap", "gap_95", "worst_curve_mean_gap")]
        text = " ".join(f"{x:9.2f}" for x in figures)
        text += f" {r['mean_probes']:9.1f} {r['most_probes']:9d} {r['mean_readings']:9.1f}"
        text += f" {100 * r['job_over_start_worst']:9.2f} {100 * r['job_over_start_above_1_percent']:9.2f}"
        lines.append(f"{r['board']:12} {r['shape']:9} {r['method']:30} {text}")
    return "\n".join(lines)
