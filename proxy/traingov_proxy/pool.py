"""Where runs are trained: this process, this machine's cores, or a Dask or Ray cluster that is already there.

Runs are independent, so joblib spreads them. On a cluster the training function and what it imports must be
importable on the workers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config  # type: ignore[import-untyped,unused-ignore]

from .run import Run, Train, attempt

BACKENDS = ("loky", "dask", "ray")

Trainer = Callable[[Train, Iterable[tuple[int, int]], float], Iterator[Run]]
"""Trains once per (batch size, seed) with a target; runs come as they end, in no fixed order."""


class BackendError(RuntimeError):
    """The back-end is not installed or its cluster cannot be reached: one line with what to do."""


class Pool:
    """``workers`` runs at a time."""

    def __init__(self, workers: int, trainer: Trainer) -> None:
        self.workers = workers
        self._trainer = trainer

    def train(self, train: Train, pairs: Iterable[tuple[int, int]], target: float) -> Iterator[Run]:
        """Train once per (batch size, seed) of ``pairs``; runs come as they end, also those that raise."""
        return self._trainer(train, pairs, target)


@contextmanager
def open_pool(jobs: int = 1, backend: str = "loky", scheduler: str | None = None) -> Iterator[Pool]:
    """The pool of a back-end.

    "loky": ``jobs`` processes here (1: this process; −1: one per core). "dask", "ray": every worker of the cluster at
    ``scheduler``, or of the one this process is already connected to; ``jobs`` is not looked at. Raises BackendError,
    and ValueError for another back-end.
    """
    if backend == "loky":
        if jobs == 1:
            yield Pool(1, _here)
        else:
            yield Pool(effective_n_jobs(jobs), _parallel(jobs, "generator_unordered"))
    elif backend == "dask":
        with _dask(scheduler) as client, parallel_config(backend="dask", client=client):
            yield Pool(_workers_of(client), _checked(client, _parallel(-1, "generator_unordered")))
    elif backend == "ray":
        with _ray(scheduler) as workers, parallel_config(backend="ray"):
            # Ray's back-end gives results only when all of a call are there.
            yield Pool(workers, _parallel(workers, "list"))
    else:
        raise ValueError(f"backend {backend!r}: use one of {', '.join(BACKENDS)}")


def _here(train: Train, pairs: Iterable[tuple[int, int]], target: float) -> Iterator[Run]:
    return (attempt(train, b, seed, target) for b, seed in pairs)


def _parallel(jobs: int, return_as: str) -> Trainer:
    def run(train: Train, pairs: Iterable[tuple[int, int]], target: float) -> Iterator[Run]:
        # One run a task: they are long, and a finished one should be told at once.
        pool = Parallel(n_jobs=jobs, return_as=return_as, batch_size=1)
        try:
            yield from pool(delayed(attempt)(train, b, seed, target) for b, seed in pairs)
        except BrokenExecutor as error:
            raise BackendError(
                f"a process could not load the training function, or was killed ({' '.join(str(error).split())[:200]})"
            ) from None

    return run


def _checked(client: Any, trainer: Trainer) -> Trainer:
    """``trainer``, once every worker has shown that it can load the training function: else joblib waits for ever."""

    cloudpickle = _module("cloudpickle", "dask")

    def run(train: Train, pairs: Iterable[tuple[int, int]], target: float) -> Iterator[Run]:
        try:
            client.run(_load, cloudpickle.dumps(train))
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise BackendError(
                f"dask: the workers cannot load the training function ({said}); install it there"
            ) from None
        yield from trainer(train, pairs, target)

    return run


def _load(payload: bytes) -> None:
    pickle.loads(payload)


@contextmanager
def _dask(scheduler: str | None) -> Iterator[Any]:
    distributed = _module("distributed", "dask")
    if scheduler is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise BackendError("dask: no cluster; give its scheduler's address, such as tcp://server:8786") from None
        yield client
        return
    try:
        # Not as the default client of this process: that one may be the caller's.
        client = distributed.Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise BackendError(f"dask: no scheduler at {scheduler} ({' '.join(str(error).split())[:200]})") from None
    try:
        yield client
    finally:
        client.close()


def _workers_of(client: Any) -> int:
    threads = sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    if not threads:
        raise BackendError("dask: the cluster has no workers; start some with `dask worker ADDRESS`")
    return int(threads)


@contextmanager
def _ray(address: str | None) -> Iterator[int]:
    ray = _module("ray", "ray")
    from ray.util.joblib import register_ray  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415

    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            said = " ".join(str(error).split())[:200]
            raise BackendError(f"ray: no cluster at {address or 'auto'} ({said}); start one with `ray start`") from None
    try:
        register_ray()  # type: ignore[no-untyped-call,unused-ignore]
        yield max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if ours:
            ray.shutdown()


def _module(name: str, extra: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise BackendError(f"{extra}: not installed; pip install 'traingov-proxy[{extra}]'") from None
