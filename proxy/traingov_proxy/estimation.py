"""The relation vector from training runs (method A, section 4: N(b) on a proxy, several seeds, Eq. 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from traingov_policies.belief import Floats
from traingov_policies.relation import RelationVector
from traingov_policies.sequential import Limits, Step, next_step

from .journal import Journal
from .pool import Pool, open_pool
from .run import Run, Train


class TargetMissedError(ValueError):
    """No batch size reached the target in every run: there is nothing to relate."""


class RunsFailedError(RuntimeError):
    """Every run raised: there is nothing to relate."""


def run_all(
    train: Train, pairs: Iterable[tuple[int, int]], target: float, *, jobs: int = 1, backend: str = "loky"
) -> Iterator[Run]:
    """Train once per (batch size, seed) of ``pairs``; runs come as they end (with ``jobs`` 1 in order).

    A run that raises has its ``error`` set and does not end the others.
    """
    with open_pool(jobs, backend) as pool:
        yield from pool.train(train, pairs, target)


def estimate(
    train: Train,
    batch_sizes: Sequence[int],
    target: float,
    seeds: Sequence[int],
    *,
    workload: str,
    dataset: str,
    full: bool = False,
    limits: Limits | None = None,
    curves: Floats | None = None,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    journal: Journal | None = None,
    learning_rate_rule: str | None = None,
    origin: str | None = None,
    on_run: Callable[[Run], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> RelationVector:
    """r per batch size, from real training; a batch size with a run that missed ``target`` gets None.

    By default batch sizes are trained one after another where the choice is undecided (``policies.sequential``), at
    most five of them and each with at most as many runs as there are ``seeds``; ``curves`` narrows it to devices that
    are known, and r is the posterior mean given all runs. With ``full`` every batch size is trained with every seed
    and r is the plain mean. Either way r is normalised to the largest.

    Runs go to a pool (``open_pool``); runs that a ``journal`` holds are not trained again. A run that raises uses up
    its seed and is told to ``on_run`` like any other; a batch size without a finished run is left out of the vector.
    Raises TargetMissedError, RunsFailedError, BackendError, and ValueError where an argument makes no sense.
    """
    if not batch_sizes or min(batch_sizes) < 1 or len(set(batch_sizes)) != len(batch_sizes):
        raise ValueError(f"batch_sizes must be positive and without repeats, not {list(batch_sizes)}")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds must be one or more without repeats, not {list(seeds)}")
    if jobs == 0:
        raise ValueError("jobs must be a number of processes (−1: one per core), not 0")
    sizes = tuple(sorted(batch_sizes))
    known = {} if journal is None else {(run.batch_size, run.seed): run for run in journal.runs}
    work = _Work(train, target, tuple(seeds), known, journal, on_run)
    with open_pool(jobs, backend, scheduler) as pool:
        if full:
            work.do(pool, [(b, seed) for b in sizes for seed in seeds])
        else:
            if limits is None:
                limits = Limits(runs=len(seeds))
            _one_after_another(work, pool, sizes, limits, curves=curves, on_step=on_step)
    runs = {b: work.counts(b) for b in sizes if work.counts(b)}
    if not runs:
        first = next(run for run in work.ended.values() if run.error is not None)
        raise RunsFailedError(
            f"every run failed; the first, of batch size {first.batch_size} and seed {first.seed}: {first.error}"
        )
    if all(None in of_size for of_size in runs.values()):
        raise TargetMissedError(f"no batch size reached the target {target} in every run")
    return RelationVector.from_runs(
        workload,
        runs,
        smoothed=not full,
        target=target,
        dataset=dataset,
        learning_rate_rule=learning_rate_rule,
        origin=origin,
    )


@dataclass
class _Work:
    """Runs that have ended, and how to make more."""

    train: Train
    target: float
    seeds: tuple[int, ...]
    known: dict[tuple[int, int], Run]
    journal: Journal | None
    on_run: Callable[[Run], None] | None
    ended: dict[tuple[int, int], Run] = field(default_factory=dict)

    def do(self, pool: Pool, pairs: Sequence[tuple[int, int]]) -> None:
        """Train ``pairs``, but for those that are known from before."""
        for pair in pairs:
            if pair in self.known:
                self._end(self.known[pair])
        todo = [pair for pair in pairs if pair not in self.known]
        if not todo:
            return
        for run in pool.train(self.train, todo, self.target):
            if self.journal is not None:
                self.journal.add(run)
            self._end(run)

    def _end(self, run: Run) -> None:
        self.ended[run.batch_size, run.seed] = run
        if self.on_run is not None:
            self.on_run(run)

    def counts(self, batch_size: int) -> list[float | None]:
        """N of the runs of ``batch_size`` that did not fail, in the order of the seeds."""
        runs = [self.ended[batch_size, seed] for seed in self.seeds if (batch_size, seed) in self.ended]
        return [run.samples for run in runs if run.error is None]

    def failed(self, batch_size: int) -> int:
        """How many runs of ``batch_size`` raised."""
        return sum(run.error is not None for run in self.ended.values() if run.batch_size == batch_size)


def _one_after_another(
    work: _Work,
    pool: Pool,
    sizes: tuple[int, ...],
    limits: Limits,
    *,
    curves: Floats | None,
    on_step: Callable[[Step], None] | None,
) -> None:
    """As many runs at a time as the pool has workers; each step is chosen with all runs before it."""
    if limits.runs > len(work.seeds):
        raise ValueError(f"{limits.runs} runs of a batch size need as many seeds, not {len(work.seeds)}")
    while True:
        runs = {b: counts for b in sizes if (counts := work.counts(b))}
        spent = {b: failed for b in sizes if (failed := work.failed(b))}
        step = next_step(sizes, runs, curves, limits, spent=spent, at_once=pool.workers)
        if on_step is not None:
            on_step(step)
        if not step.batch_sizes:
            return
        used = {b: len(work.counts(b)) + work.failed(b) for b in sizes}
        pairs = []
        for b in step.batch_sizes:
            pairs.append((b, work.seeds[used[b]]))
            used[b] += 1
        work.do(pool, pairs)
