"""The relation vector from training runs (method A, section 4: N(b) on a proxy, several seeds, Eq. 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from joblib import Parallel, delayed  # type: ignore[import-untyped,unused-ignore]

from traingov_policies.relation import RelationVector

from .recipe import Train


@dataclass(frozen=True)
class Run:
    """One finished training run. ``samples`` is N, None where the target was missed."""

    batch_size: int
    seed: int
    samples: float | None


class TargetMissedError(ValueError):
    """No batch size reached the target in every run: there is nothing to relate."""


def run_all(train: Train, pairs: Iterable[tuple[int, int]], target: float, *, jobs: int = 1) -> Iterator[Run]:
    """Train once per (batch size, seed) of ``pairs``, ``jobs`` processes at a time; runs come in that order.

    The runs are independent. Whoever chooses batch sizes one after another calls this once per choice.
    Raises ValueError where a run gives what cannot be a number of samples; what a run itself raises goes through.
    """
    todo = list(pairs)
    if jobs == 1:
        results = (train(b, seed, target) for b, seed in todo)
    else:
        results = Parallel(n_jobs=jobs, return_as="generator")(delayed(train)(b, seed, target) for b, seed in todo)
    for (batch_size, seed), samples in zip(todo, results, strict=True):
        if samples is not None and not (math.isfinite(samples) and samples > 0):
            raise ValueError(
                f"the run of batch size {batch_size}, seed {seed} gave {samples!r} samples to accuracy; "
                "a training function returns a positive number, or None where it missed the target"
            )
        yield Run(batch_size, seed, samples)


def estimate(
    train: Train,
    batch_sizes: Sequence[int],
    target: float,
    seeds: Sequence[int],
    *,
    workload: str,
    dataset: str,
    jobs: int = 1,
    learning_rate_rule: str | None = None,
    origin: str | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> RelationVector:
    """r per batch size: the mean of N over ``seeds``, normalised to the largest.

    A batch size with a run that missed ``target`` gets None. ``on_run`` is told each run as it ends.
    Raises TargetMissedError where no batch size reached the target in every run, ValueError where an argument makes no
    sense.
    """
    if not batch_sizes or min(batch_sizes) < 1 or len(set(batch_sizes)) != len(batch_sizes):
        raise ValueError(f"batch_sizes must be positive and without repeats, not {list(batch_sizes)}")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds must be one or more without repeats, not {list(seeds)}")
    if jobs == 0:
        raise ValueError("jobs must be a number of processes (−1: one per core), not 0")
    runs: dict[int, list[float | None]] = {b: [] for b in sorted(batch_sizes)}
    for run in run_all(train, [(b, seed) for b in runs for seed in seeds], target, jobs=jobs):
        runs[run.batch_size].append(run.samples)
        if on_run is not None:
            on_run(run)
    if all(None in of_size for of_size in runs.values()):
        raise TargetMissedError(f"no batch size reached the target {target} in every run")
    return RelationVector.from_runs(
        workload, runs, target=target, dataset=dataset, learning_rate_rule=learning_rate_rule, origin=origin
    )
