"""The joint choice on Zeus's measured trainings: r from few runs, chosen one after another (DESIGN 8).

Six jobs on two GPUs: seconds per epoch and mean watts by batch size and power limit, epochs to a target by batch size
and run (You et al., NSDI 2023; ml-energy/zeus, Apache-2.0). The power limit is the second axis in place of the GPU
clock. Nothing here is simulated but the draw of runs: a design that wants another run of a batch size gets one of
those recorded, with replacement, and sees no others. Losses are against the best point with the mean of all recorded
runs. A batch size counts only if every recorded run reached the target.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traingov_policies.relation import RelationVector
from traingov_policies.sequential import Limits, next_step, start_sizes

Floats = npt.NDArray[np.float64]
Runs = dict[int, list[float | None]]
Draw = Callable[[int], float | None]
"""A run of a batch size."""
Key = tuple[str, str, str]
"""Data set, network, optimizer: what both kinds of table are joined on."""

COMPARISON = "joint choice, r from proxy runs, measured trainings (Zeus)"
TARGETS: dict[Key, float] = {
    ("cifar100", "shufflenetv2", "adadelta"): 0.6,
    ("imagenet", "resnet50", "adadelta"): 0.65,
    ("squad", "bert_base_uncased", "adamw"): 84.0,
    ("librispeech", "deepspeech2", "adamw"): 40.0,
    ("movielens-1m", "ncf", "adam"): 0.41,
    ("sentiment140", "bert_base_uncased", "adamw"): 0.84,
}
GPUS = ("v100", "rtx6000")
CAP_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Caps between the lowest and the highest mean power of the job's table; at 1 every point is feasible."""


@dataclass(frozen=True)
class Training:
    """One job on one GPU. ``log_time`` [cap][B]: fastest feasible log seconds per epoch, inf where there is none.

    ``at_highest_limit`` [cap][B]: the same at the highest feasible power limit. ``epochs``: recorded runs by batch
    size (None: target missed).
    """

    job: str
    gpu: str
    batch_sizes: tuple[int, ...]
    log_time: Floats
    at_highest_limit: Floats
    epochs: Mapping[int, tuple[float | None, ...]]

    def true_epochs(self) -> Floats:
        """Mean of all recorded runs, [B]; inf where one missed the target."""
        return np.array([_mean(self.epochs[b]) for b in self.batch_sizes])

    def losses(self, log_r: Floats) -> list[float]:
        """Time lost under each cap by choosing with ``log_r`` [B] (inf: no candidate). inf: what was chosen misses."""
        total = np.log(self.true_epochs()) + self.log_time
        chosen = np.argmin(log_r + self.log_time, axis=1)
        rows = np.arange(len(chosen))
        lost = np.expm1(total[rows, chosen] - total.min(axis=1))
        # Without any candidate there is no choice at all.
        none = ~np.isfinite(log_r + self.log_time).any(axis=1)
        return [float(x) for x in np.where(none, math.inf, lost)]


def _mean(runs: Sequence[float | None]) -> float:
    return math.inf if None in runs else float(np.mean([n for n in runs if n is not None]))


def load(directory: Path) -> list[Training]:
    """Every job on every GPU, from the three tables in ``directory``. Raises OSError where one is absent."""
    epochs: dict[Key, dict[int, list[float | None]]] = {key: {} for key in TARGETS}
    for row in _rows(directory / "summary_train.csv"):
        key = (row["dataset"], row["network"], row["optimizer"])
        if key in TARGETS and float(row["target_metric"]) == TARGETS[key]:
            value = float(row["target_epoch"])
            epochs[key].setdefault(int(row["batch_size"]), []).append(None if math.isnan(value) else value)
    out = []
    for gpu in GPUS:
        points: dict[Key, dict[tuple[int, int], tuple[float, float]]] = {key: {} for key in TARGETS}
        for row in _rows(directory / f"summary_power_{gpu}.csv"):
            key = (row["dataset"], row["network"], row["optimizer"])
            if key in TARGETS:
                at = (int(row["batch_size"]), int(row["power_limit"]))
                points[key][at] = (float(row["time_per_epoch"]), float(row["average_power"]))
        out += [_training(key, gpu, points[key], epochs[key]) for key in TARGETS]
    return out


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _training(
    key: Key, gpu: str, points: Mapping[tuple[int, int], tuple[float, float]], epochs: Mapping[int, list[float | None]]
) -> Training:
    sizes = tuple(sorted({b for b, _ in points} & set(epochs)))
    powers = [watts for (b, _), (_, watts) in points.items() if b in sizes]
    low, high = min(powers), max(powers)
    fastest, at_limit = [], []
    for share in CAP_SHARES:
        cap_w = math.inf if share == 1.0 else low + share * (high - low)
        feasible = {b: {lim: t for (c, lim), (t, watts) in points.items() if c == b and watts < cap_w} for b in sizes}
        fastest.append([math.log(min(feasible[b].values())) if feasible[b] else math.inf for b in sizes])
        at_limit.append([math.log(feasible[b][max(feasible[b])]) if feasible[b] else math.inf for b in sizes])
    return Training(
        f"{key[1]}/{key[0]}", gpu, sizes, np.array(fastest), np.array(at_limit), {b: tuple(epochs[b]) for b in sizes}
    )


def log_r(training: Training, runs: Mapping[int, Sequence[float | None]], smoothed: bool = True) -> Floats:
    """What a device makes of the file that ``runs`` give: log r by log-log interpolation, inf for no candidate."""
    if all(None in of_size for of_size in runs.values()):
        return np.full(len(training.batch_sizes), math.inf)
    relation = RelationVector.from_runs(training.job, runs, smoothed=smoothed)
    values = [relation.of(b) for b in training.batch_sizes]
    return np.array([math.inf if r is None else math.log(r) for r in values])


def sequential_runs(training: Training, draw: Draw, limits: Limits, curves: Floats | None) -> Runs:
    """The runs that the design asks for; ``draw`` gives a run of a batch size."""
    runs: Runs = {}
    while step := next_step(training.batch_sizes, runs, curves, limits).batch_sizes:
        runs.setdefault(step[0], []).append(draw(step[0]))
    return runs


def recorded(training: Training, rng: np.random.Generator, *, replace: bool = True) -> Draw:
    """Draws recorded runs, with replacement, or each at most once (as long as there are any left)."""
    if replace:
        return lambda b: training.epochs[b][int(rng.integers(len(training.epochs[b])))]
    rest = {b: [runs[i] for i in rng.permutation(len(runs))] for b, runs in training.epochs.items()}
    return lambda b: rest[b].pop() if rest[b] else training.epochs[b][int(rng.integers(len(training.epochs[b])))]


def all_recorded(training: Training, curves: Floats | None) -> Runs:
    """The design where every size that it asks for comes with all of its recorded runs."""
    runs: Runs = {}
    while step := next_step(training.batch_sizes, runs, curves, Limits(runs=1)).batch_sizes:
        runs[step[0]] = list(training.epochs[step[0]])
    return runs


def evaluate_zeus(
    directory: Path, seeds: int = 100, trainings: Sequence[Training] | None = None
) -> list[dict[str, Any]]:
    """A row per method: losses over every job, GPU, cap and, where runs are drawn, ``seeds`` draws.

    Where the data is absent, one row says so. ``trainings`` evaluates others instead (the synthetic ones).
    """
    kind = "measured-data" if trainings is None else "predicted"
    if trainings is None:
        try:
            trainings = load(directory)
        except OSError as error:
            return [{"comparison": COMPARISON, "kind": kind, "absent": f"{error.filename}: {error.strerror}"}]
    rows = [
        _row("largest batch at the highest limit below the cap", [_largest(t) for t in trainings]),
        _row("ignoring r", [t.losses(np.where(np.isfinite(t.true_epochs()), 0.0, math.inf)) for t in trainings]),
    ]
    for n in (1, 2, 4, None):
        rows.append(_drawn("three fixed sizes", trainings, seeds, n, partial(_fixed, n=n)))
    for curves in ("the board's table", "device family"):
        for n in (1, 2, 4, None):
            run = partial(_design, limits=Limits(runs=n or 1), own=curves != "device family", recorded_all=n is None)
            rows.append(_drawn("one after another", trainings, seeds, n, run, curves=curves))
        use_up = partial(_design, limits=Limits(tolerance=0.0), own=curves != "device family")
        rows.append(_drawn("one after another, all runs allowed", trainings, seeds, 4, use_up, curves=curves))
        rows.append(
            _drawn(
                "one after another, all runs allowed", trainings, seeds, 4, use_up, curves=curves, replace=False,
            )
        )  # fmt: skip
    every = lambda t, draw: {b: [draw(b) for _ in range(4)] for b in t.batch_sizes}  # noqa: E731
    rows.append(_drawn("every size", trainings, seeds, 4, every))
    rows.append(
        _drawn("every size", trainings, seeds, None, lambda t, _: {b: list(t.epochs[b]) for b in t.batch_sizes})
    )
    return [{"comparison": COMPARISON, "kind": kind, **row} for row in rows]


def _design(
    training: Training, draw: Draw, *, limits: Limits, own: bool, recorded_all: bool = False
) -> Mapping[int, Sequence[float | None]]:
    curves = training.log_time if own else None
    return all_recorded(training, curves) if recorded_all else sequential_runs(training, draw, limits, curves)


def _fixed(training: Training, draw: Draw, *, n: int | None) -> Mapping[int, Sequence[float | None]]:
    """Smallest, middle and largest of the sizes that reach the target."""
    sizes = start_sizes([b for b in training.batch_sizes if None not in training.epochs[b]])
    return {b: list(training.epochs[b]) if n is None else [draw(b) for _ in range(n)] for b in sizes}


def _largest(training: Training) -> list[float]:
    """Losses of the largest batch size that reaches the target, at the highest power limit below the cap."""
    total = np.log(training.true_epochs()) + training.log_time
    usable = np.isfinite(total)
    last = [int(np.flatnonzero(row)[-1]) for row in usable]
    epochs = np.log(training.true_epochs())
    return [float(math.expm1(epochs[i] + training.at_highest_limit[c, i] - total[c].min())) for c, i in enumerate(last)]


def _drawn(
    method: str,
    trainings: Sequence[Training],
    seeds: int,
    n: int | None,
    run: Callable[[Training, Draw], Mapping[int, Sequence[float | None]]],
    *,
    curves: str | None = None,
    replace: bool = True,
) -> dict[str, Any]:
    losses: list[list[float]] = []
    means: list[float] = []
    runs_used, sizes_used = [], []
    for number, training in enumerate(trainings):
        per_draw = []
        for seed in range(1 if n is None else seeds):
            draw = recorded(training, np.random.default_rng([seed, number]), replace=replace)
            runs = run(training, draw)
            runs_used.append(sum(map(len, runs.values())))
            sizes_used.append(len(runs))
            per_draw.append(training.losses(log_r(training, runs)))
        losses += per_draw
        means += [float(x) for x in np.mean(per_draw, axis=0)]
    return _row(
        f"r from {method}", losses, runs_per_size="all recorded" if n is None else n, curves=curves,
        draws=None if n is None else ("with replacement" if replace else "each run at most once"),
        worst_mean_over_draws=_number(max(means)), mean_runs=float(np.mean(runs_used)),
        mean_sizes=float(np.mean(sizes_used)),
    )  # fmt: skip


def _row(method: str, losses: Sequence[Sequence[float]], **more: Any) -> dict[str, Any]:
    values = np.concatenate([np.asarray(x) for x in losses])
    made = values[np.isfinite(values)]
    return {
        "method": method,
        "cases": len(values),
        "mean_loss": float(made.mean()),
        "p95_loss": _number(np.sort(values)[math.ceil(0.95 * (len(values) - 1))]),
        "worst_loss": _number(values.max()),
        "share_within_2_percent": float(np.mean(values <= 0.02)),
        "chose_one_that_misses": int(np.sum(~np.isfinite(values))),
        **{key: value for key, value in more.items() if value is not None},
    }


def _number(value: float) -> float | None:
    """JSON has no infinity: None where a chosen batch size misses the target."""
    return float(value) if math.isfinite(value) else None
