"""Runs on a real local Dask cluster and a real local Ray, as on one machine."""

from __future__ import annotations

import sys
import types

import pytest

from traingov_proxy import BackendError, estimate, open_pool
from traingov_proxy.recipes import digits


def _training():
    # A function within a function travels whole: the workers need not be able to import this file.
    def train(batch_size, seed, target):
        if batch_size == 8:
            raise MemoryError("no room")
        return None if batch_size == 4 else 1000.0 * batch_size**0.5 + seed

    return train


failing_at_eight = _training()
PAIRS = [(b, seed) for b in (4, 8, 16) for seed in (0, 1)]


def by_pair(runs):
    return {(run.batch_size, run.seed): run for run in runs}


@pytest.fixture(scope="module")
def alone():
    with open_pool(1) as pool:
        return by_pair(pool.train(failing_at_eight, PAIRS, 0.5))


@pytest.fixture(scope="module")
def dask_address():
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'traingov-proxy[dask]'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


def test_loky_gives_the_same_runs_as_this_process(alone):
    with open_pool(2) as pool:
        assert pool.workers == 2
        assert by_pair(pool.train(failing_at_eight, PAIRS, 0.5)) == alone


@pytest.mark.slow
def test_dask_gives_the_same_runs_as_this_process(alone, dask_address):
    with open_pool(backend="dask", scheduler=dask_address) as pool:
        assert pool.workers == 2
        assert by_pair(pool.train(failing_at_eight, PAIRS, 0.5)) == alone


@pytest.mark.slow
def test_an_estimate_on_dask_is_that_of_one_process(dask_address):
    train = digits.proxy_training(5000)
    common = {"workload": "w", "dataset": "d", "full": True}
    there = estimate(train, (64, 128), 0.8, (0, 1), backend="dask", scheduler=dask_address, **common)
    assert there == estimate(train, (64, 128), 0.8, (0, 1), **common)


@pytest.fixture
def only_here(monkeypatch):
    """A training function of a module that only this process has."""
    module = types.ModuleType("only_here_for_a_test")
    exec("def train(batch_size, seed, target):\n    return 1.0\n", module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.train


@pytest.mark.slow
def test_workers_that_cannot_load_the_training_function_say_so(dask_address, only_here):
    with (
        open_pool(backend="dask", scheduler=dask_address) as pool,
        pytest.raises(BackendError, match="workers cannot load the training function .*only_here_for_a_test"),
    ):
        list(pool.train(only_here, PAIRS, 0.5))


def test_processes_that_cannot_load_the_training_function_say_so(only_here):
    with open_pool(2) as pool, pytest.raises(BackendError, match="could not load"):
        list(pool.train(only_here, PAIRS, 0.5))


@pytest.mark.slow
def test_a_dask_scheduler_that_is_not_there_is_one_line():
    pytest.importorskip("distributed", reason="needs Dask: pip install 'traingov-proxy[dask]'")
    with (
        pytest.raises(BackendError, match="no scheduler at nonsense:") as caught,
        open_pool(backend="dask", scheduler="nonsense://x"),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_dask_without_an_address_or_a_cluster_says_what_to_give():
    pytest.importorskip("distributed", reason="needs Dask: pip install 'traingov-proxy[dask]'")
    with pytest.raises(BackendError, match="scheduler's address"), open_pool(backend="dask"):
        pass


@pytest.mark.slow
def test_ray_gives_the_same_runs_as_this_process(alone):
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'traingov-proxy[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        with open_pool(backend="ray") as pool:
            assert pool.workers == 2
            assert by_pair(pool.train(failing_at_eight, PAIRS, 0.5)) == alone
        assert ray.is_initialized()  # the cluster was there before
    finally:
        ray.shutdown()


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_back_end_that_is_not_installed_says_how_to_install_it(backend, monkeypatch):
    real = __import__

    def without(name, *rest, **more):
        if name.split(".")[0] in ("distributed", "ray"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr("builtins.__import__", without)
    with (
        pytest.raises(BackendError, match=rf"pip install 'traingov-proxy\[{backend}\]'"),
        open_pool(backend=backend, scheduler="tcp://127.0.0.1:1"),
    ):
        pass


def test_an_unknown_back_end_is_refused():
    with pytest.raises(ValueError, match="loky, dask, ray"), open_pool(backend="mpi"):
        pass
