"""``estimate`` with training functions that only count."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_proxy import Run, RunsFailedError, TargetMissedError, estimate, run_all
from traingov_proxy.recipes import digits


def square_root_law(batch_size: int, seed: int, target: float) -> float | None:
    return 1000.0 * math.sqrt(batch_size) + 10.0 * seed


def vector(train, batch_sizes=(4, 16), target=0.9, seeds=(0, 1), **more):
    return estimate(train, batch_sizes, target, seeds, workload="w", dataset="d", **{"full": True, **more})


def test_r_is_the_mean_over_seeds_normalised_to_the_largest():
    relation = vector(square_root_law)
    assert relation.samples_to_accuracy == ((2000.0, 2010.0), (4000.0, 4010.0))
    assert relation.relative_samples == (pytest.approx(2005 / 4005), 1.0)
    assert (relation.workload, relation.dataset, relation.target) == ("w", "d", 0.9)


def test_every_batch_size_is_trained_with_every_seed_and_the_target():
    calls = []

    def train(batch_size, seed, target):
        calls.append((batch_size, seed, target))
        return 100.0

    vector(train, batch_sizes=(16, 4), target=0.87, seeds=(7, 3, 5))
    assert calls == [(b, s, 0.87) for b in (4, 16) for s in (7, 3, 5)]


def test_a_batch_size_with_a_run_that_missed_the_target_is_no_candidate():
    relation = vector(lambda b, s, t: None if (b, s) == (16, 1) else 50.0 * b, batch_sizes=(4, 16, 64))
    assert relation.relative_samples == (pytest.approx(200 / 3200), None, 1.0)
    assert relation.samples_to_accuracy[1] == (800.0, None)


def test_no_batch_size_that_reaches_the_target_is_an_error():
    with pytest.raises(TargetMissedError, match="no batch size reached the target 0.9"):
        vector(lambda b, s, t: None)


@pytest.mark.parametrize("nonsense", [0.0, -5.0, math.nan, math.inf, "many"])
def test_a_count_that_is_no_number_of_samples_fails_the_run_and_no_other(nonsense):
    told: list[Run] = []
    relation = vector(lambda b, s, t: nonsense if (b, s) == (16, 1) else 10.0 * b, on_run=told.append)
    assert relation.samples_to_accuracy == ((40.0, 40.0), (160.0,))
    (failed,) = [run for run in told if run.error]
    assert (failed.batch_size, failed.seed, failed.samples) == (16, 1, None)
    assert repr(nonsense) in failed.error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_sizes": ()}, "batch_sizes"),
        ({"batch_sizes": (0, 4)}, "batch_sizes"),
        ({"batch_sizes": (4, 4)}, "batch_sizes"),
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "seeds"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_any_training(change, said):
    def train(batch_size, seed, target):
        pytest.fail("trained all the same")

    with pytest.raises(ValueError, match=said):
        vector(train, **change)


def test_each_run_is_told_as_it_ends():
    told: list[Run] = []
    vector(square_root_law, seeds=(1,), on_run=told.append)
    assert told == [Run(4, 1, 2010.0), Run(16, 1, 4010.0)]


def test_a_run_that_raises_is_one_line_and_the_others_go_on():
    def train(batch_size, seed, target):
        if batch_size == 4:
            raise RuntimeError("disk\n full")
        return 100.0 + seed

    told: list[Run] = []
    relation = vector(train, on_run=told.append)
    assert relation.batch_sizes == (16,)  # nothing is known of batch size 4
    assert relation.samples_to_accuracy == ((100.0, 101.0),)
    assert [run.error for run in told] == ["RuntimeError: disk full"] * 2 + [None] * 2


def test_when_every_run_raises_the_first_reason_is_told():
    def train(batch_size, seed, target):
        raise MemoryError(f"of batch {batch_size}")

    for full in (True, False):
        with pytest.raises(
            RunsFailedError, match=r"every run failed.*batch size 4 and seed 0: MemoryError: of batch 4"
        ):
            vector(train, full=full)


def test_an_interrupt_ends_the_estimate():
    def train(batch_size, seed, target):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vector(train)


def test_pairs_may_be_chosen_one_after_another():
    assert list(run_all(square_root_law, [(16, 2), (4, 0)], 0.5)) == [Run(16, 2, 4020.0), Run(4, 0, 2000.0)]


def test_processes_give_the_same_numbers_as_one_process():
    pairs = [(128, 0), (64, 1), (128, 1)]
    train = digits.proxy_training(max_samples=5000)
    alone = list(run_all(train, pairs, 0.9, jobs=1))
    key = lambda run: (run.batch_size, run.seed)  # noqa: E731
    assert sorted(run_all(train, pairs, 0.9, jobs=2), key=key) == sorted(alone, key=key)
    assert all(run.samples is not None for run in alone)


@given(
    counts=st.dictionaries(
        st.integers(1, 512), st.lists(st.floats(1, 1e9), min_size=2, max_size=2), min_size=1, max_size=8
    ),
    factor=st.sampled_from([0.5, 2.0, 1024.0]),
)
def test_r_does_not_depend_on_the_unit_that_samples_are_counted_in(counts, factor):
    sizes = list(counts)
    one = vector(lambda b, s, t: counts[b][s], batch_sizes=sizes)
    other = vector(lambda b, s, t: counts[b][s] * factor, batch_sizes=sizes[::-1])
    assert one.relative_samples == other.relative_samples  # a power of two scales exactly
    assert max(r for r in one.relative_samples if r is not None) == 1.0
