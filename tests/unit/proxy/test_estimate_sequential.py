"""The default estimate: one batch size after another."""

from __future__ import annotations

import math

import pytest

from traingov_policies.sequential import Limits
from traingov_proxy import Run, estimate

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)


def u_shape(batch_size: int, seed: int, target: float) -> float:
    return (1000 + 40 * batch_size + 16000 / batch_size) * (1 + 0.02 * (seed % 3 - 1))


def vector(train, **more):
    told: list[Run] = []
    relation = estimate(train, SIZES, 0.9, range(4), workload="w", dataset="d", on_run=told.append, **more)
    return relation, told


def test_at_most_five_sizes_and_four_runs_each_are_trained():
    relation, told = vector(u_shape, limits=Limits(tolerance=0.0))
    assert len(relation.batch_sizes) == 5
    assert len(told) == 20
    assert all(len(runs) == 4 for runs in relation.samples_to_accuracy)


def test_it_stops_earlier_where_nothing_is_left_to_decide_and_says_why():
    steps = []
    _, told = vector(lambda b, s, t: 100.0 * b, on_step=steps.append)
    assert len(told) < 20
    assert steps[-1].batch_sizes == ()
    assert "expected" in steps[-1].why


def test_r_of_every_size_in_between_is_close_to_that_of_training_them_all():
    some, _ = vector(u_shape)
    full, _ = vector(u_shape, full=True)
    top = full.of(512) / some.of(512)
    for b in SIZES:
        assert some.of(b) * top == pytest.approx(full.of(b), rel=0.35)


def test_a_run_that_fails_uses_up_its_seed_and_others_go_on():
    def train(batch_size, seed, target):
        if seed == 0 and batch_size in (4, 512):
            raise RuntimeError("gone")
        return u_shape(batch_size, seed, target)

    relation, told = vector(train)
    pairs = [(run.batch_size, run.seed) for run in told]
    assert len(pairs) == len(set(pairs))
    assert {4, 512} <= set(relation.batch_sizes)


def test_a_size_that_always_fails_is_left_out():
    def train(batch_size, seed, target):
        if batch_size == 512:
            raise MemoryError
        return u_shape(batch_size, seed, target)

    relation, told = vector(train)
    assert 512 not in relation.batch_sizes
    assert relation.of(512) is None
    assert sum(run.batch_size == 512 for run in told) <= 4


def test_a_size_that_misses_is_no_candidate_and_is_not_trained_again():
    relation, told = vector(lambda b, s, t: None if b > 100 else u_shape(b, s, t))
    assert relation.of(512) is None
    assert sum(run.batch_size == 512 for run in told) == 1
    assert relation.of(16) is not None


def test_several_workers_train_several_runs_at_a_time_and_no_more_than_one_worker():
    alone, _ = vector(u_shape, limits=Limits(tolerance=0.0))
    both, told = vector(u_shape, limits=Limits(tolerance=0.0), jobs=2)
    assert len(told) == 20
    assert both.batch_sizes[0] == alone.batch_sizes[0]
    assert math.isclose(both.of(64), alone.of(64), rel_tol=0.1)


def test_more_runs_than_seeds_are_refused():
    with pytest.raises(ValueError, match="as many seeds"):
        vector(u_shape, limits=Limits(runs=5))
