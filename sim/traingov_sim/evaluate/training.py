"""A result without virtual convergence: real training on bundled data, time and power from the virtual Nano.

``data/digits-training.json`` holds recorded runs of the digits recipe (benchmarks/digits_training.py made it): real
samples to accuracy of the target task for batch sizes 4 to 128 and five seeds, the proxy's, and runs that change the
batch size on the way. Only seconds and watts are simulated, hence ``measured-data``.
"""

from __future__ import annotations

import json
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from traingov_policies.relation import RelationVector
from traingov_policies.select import select

from ..board.boardspec import load_board
from ..surface import step_time_s
from ..surfaces import NANO_TICKED_HZ, load
from ..surfaces.family import load_family
from ..surfaces.published import BASELINE_HZ, CAPS_W
from .boards import Array, Exact
from .regret import Truth, run_case
from .statistics import distribution

FILE = Path(__file__).resolve().parent.parent / "data" / "digits-training.json"
SCHEMA = "traingov-sim.training/1"
WORKLOAD = "digits-mlp"


@cache
def recorded() -> dict[str, Any]:
    """The recorded trainings. Raises ValueError for another schema."""
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{FILE}: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
    return data


def samples(task: str) -> tuple[tuple[int, ...], Array]:
    """Batch sizes, and N [B, seeds] of "target" or "proxy". Raises ValueError where a run missed its target."""
    runs = recorded()["samples_to_accuracy"][task]
    sizes = tuple(sorted(map(int, runs)))
    if any(n is None for b in sizes for n in runs[str(b)]):
        raise ValueError(f"{FILE}: a run of the {task} task missed its target; record with more samples")
    return sizes, np.array([runs[str(b)] for b in sizes], dtype=float)


def proxy_relation() -> RelationVector:
    """r as the proxy task gives it: the mean over its five seeds."""
    sizes, n = samples("proxy")
    return RelationVector.from_runs(WORKLOAD, {b: list(row) for b, row in zip(sizes, n.tolist(), strict=True)})


def against_the_baselines(tries: int = 5) -> list[dict[str, Any]]:
    """Joint against both baselines and the exhaustive best on the default virtual Nano, cap by cap, five seeds.

    The joint choice is what the governor makes in the twin after profiling (``tries`` runs), r from the proxy;
    seconds are the true surface's at that point times the real N of each seed.
    """
    surface, spec = load("nano", WORKLOAD), load_board("nano")
    sizes, n = samples("target")
    proxy = proxy_relation()
    relative = np.array([proxy.of(b) or np.nan for b in sizes])
    truth = Truth.of(surface, spec, sizes, n.mean(axis=1))
    fewest = min((r, b) for r, b in zip(relative.tolist(), sizes, strict=True))[1]
    out: list[dict[str, Any]] = []
    for k, cap_w in enumerate(CAPS_W):
        chosen = [
            run.chosen
            for seed in range(tries)
            if (run := run_case(spec, surface, sizes, relative, cap_w, seed=seed)) is not None
        ]
        best = truth.best(cap_w, NANO_TICKED_HZ)
        if best is None:
            continue
        points = {"baseline1": (sizes[-1], BASELINE_HZ[k]), "baseline2": (fewest, BASELINE_HZ[k]), "fastest": best}
        by_seed = {what: _seconds(surface, sizes, n, point) for what, point in points.items()}
        joint = [_seconds(surface, sizes, n, truth.held_back(point, cap_w)) for point in chosen]
        by_seed["joint"] = [statistics.mean(column) for column in zip(*joint, strict=True)]
        seconds = {what: round(statistics.mean(values), 3) for what, values in by_seed.items()}
        out.append(
            {
                "comparison": "real training (digits), time and power of the virtual Nano",
                "kind": "measured-data",
                "cap_w": cap_w,
                "seconds": seconds,
                "seconds_by_seed": {what: [round(x, 3) for x in values] for what, values in by_seed.items()},
                "speed_up_over_baseline1": round(seconds["baseline1"] / seconds["joint"], 3),
                "speed_up_over_baseline2": round(seconds["baseline2"] / seconds["joint"], 3),
                "loss_against_fastest": round(seconds["joint"] / seconds["fastest"] - 1, 4),
                "points": {what: list(p) for what, p in points.items()} | {"joint": [list(p) for p in chosen]},
            }
        )
    return out


def _seconds(surface: Any, sizes: tuple[int, ...], n: Array, point: tuple[int, int]) -> list[float]:
    b, hz = point
    return [step_time_s(surface, b, hz) / b * float(x) for x in n[sizes.index(b)]]


def over_the_family() -> list[dict[str, Any]]:
    """The same with ResNet18's family in place of one surface (noise-free tables; times in its own scale)."""
    family = load_family("nano", "resnet18")
    exact = Exact.of(family, NANO_TICKED_HZ)
    sizes, n = samples("target")
    if sizes != exact.batch_sizes:
        raise ValueError(f"{FILE}: batch sizes {sizes} are not the family's {exact.batch_sizes}")
    relation, mean = proxy_relation(), n.mean(axis=1)
    fewest = min((relation.of(b) or 1.0, b) for b in sizes)[1]
    out: list[dict[str, Any]] = []
    for k, cap_w in enumerate(CAPS_W):
        hz = exact.clocks_hz.index(BASELINE_HZ[k])
        ratios: dict[str, list[float]] = {"baseline1": [], "baseline2": [], "fastest": []}
        for m in range(len(family)):
            point = select(exact.lut(m), relation, cap_w).chosen.point
            i, j = sizes.index(point.batch_size), exact.clocks_hz.index(point.gpu_frequency_hz)
            joint = exact.sample_s[m, i, j] * mean[i]
            ratios["baseline1"].append(float(exact.sample_s[m, -1, hz] * mean[-1] / joint))
            i2 = sizes.index(fewest)
            ratios["baseline2"].append(float(exact.sample_s[m, i2, hz] * mean[i2] / joint))
            best = exact.best(m, mean, cap_w)
            ratios["fastest"].append(float("nan") if best is None else best[0] / joint)
        out.append(
            {
                "comparison": "real training (digits) over the family of ResNet18 on the Nano",
                "kind": "measured-data",
                "cap_w": cap_w,
                **{f"speed_up_over_{b}": distribution(ratios[b]) for b in ("baseline1", "baseline2")},
                "loss_against_fastest": distribution(1 / np.array(ratios["fastest"]) - 1),
            }
        )
    return out


def mid_run_switches() -> list[dict[str, Any]]:
    """Whether a run that changes its batch size needs more samples than r predicts: mean excess and standard error.

    Predicted: the samples before the change, and after it that share less of what this seed needs at the second
    batch size.
    """
    data = recorded()["mid_run"]
    out: list[dict[str, Any]] = []
    for switch in data["switch"]:
        first, second = data["stay"][str(switch["first"])], data["stay"][str(switch["second"])]
        ratios = [
            n / (at + (1 - at / n1) * n2) - 1
            for at, n, n1, n2 in zip(switch["at_samples"], switch["samples"], first, second, strict=True)
            if None not in (n, n1, n2)
        ]
        out.append(
            {
                "comparison": "samples of a run that changes its batch size, against r",
                "kind": "measured-data",
                "first": switch["first"],
                "second": switch["second"],
                "after_share": switch["share"],
                "excess": round(statistics.mean(ratios), 4),
                "standard_error": round(statistics.stdev(ratios) / len(ratios) ** 0.5, 4),
                "runs": len(ratios),
                "missed": len(switch["samples"]) - len(ratios),
            }
        )
    return out


def repeated_switches() -> list[dict[str, Any]]:
    """Runs that change their batch size again and again: samples against what r predicts for the same seed.

    With the optimizer's state kept, and with Adam begun anew at each change: Adam's second moments are those of the
    gradient noise at the batch size before.
    """
    data = recorded()
    stay = data["mid_run"]["stay"]
    out: list[dict[str, Any]] = []
    for row in data["repeated"]:
        first, n_first, second, n_second = row["pattern"]
        share = n_first / (n_first + n_second)
        ratios = [
            n * (share / a + (1 - share) / b) - 1
            for n, a, b in zip(row["samples"], stay[str(first)], stay[str(second)], strict=True)
            if None not in (n, a, b)
        ]
        out.append(
            {
                "comparison": "samples of a run that changes its batch size again and again, against r",
                "kind": "measured-data",
                "pattern": row["pattern"],
                "optimizer": row["optimizer"],
                "excess": round(statistics.mean(ratios), 4),
                "standard_error": round(statistics.stdev(ratios) / len(ratios) ** 0.5, 4),
                "runs": len(ratios),
                "missed": len(row["samples"]) - len(ratios),
            }
        )
    return out


def changing_cap() -> list[dict[str, Any]]:
    """Real trainings in the twin under a cap that changes again and again: follow with the batch size, or stay.

    Recorded with the governor of the recording's day; the file names the command.
    """
    data = recorded()["governed"]
    out: list[dict[str, Any]] = []
    for workload, period_s in data["period_s"].items():
        runs: dict[str, list[dict[str, Any]]] = {}
        for run in data["runs"]:
            if run["step_times_of"] == workload:
                name = "follow" if len(run["batch_sizes"]) > 1 else f"stay at {run['batch_sizes'][0]}"
                runs.setdefault(name, []).append(run)
        seconds = {name: [r["seconds"] for r in held] for name, held in runs.items()}
        entry: dict[str, Any] = {
            "comparison": "real training under a changing cap, governed in the twin",
            "kind": "measured-data",
            "step_times_of": workload,
            "caps_w": data["caps_w"],
            "period_s": period_s,
            "seconds": {name: distribution(values, 2) for name, values in seconds.items()},
            "samples": {name: distribution([r["samples"] for r in held], 0) for name, held in runs.items()},
            "input_energy_j": {
                name: distribution([r["input_energy_j"] for r in held], 1) for name, held in runs.items()
            },
            "missed": {name: sum(not r["reached"] for r in held) for name, held in runs.items()},
        }
        for name, staying in seconds.items():
            if name != "follow":
                gains = [s / f for s, f in zip(staying, seconds["follow"], strict=True)]
                entry[f"speed_up_of_following_over_{name.replace(' ', '_')}"] = distribution(gains)
        out.append(entry)
    return out
