"""The evaluation on measured trainings: what it reads, what it counts, and that it finds what is known of the data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.select import select
from traingov_policies.sequential import Limits
from traingov_sim.evaluate import zeus
from traingov_sim.evaluate.synthetic_trainings import synthetic

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "zeus"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs Zeus's measured trainings in ../shared/data/zeus")


@pytest.fixture(scope="module")
def trainings():
    return zeus.load(DATA)


@pytest.fixture(scope="module")
def rows():
    return zeus.evaluate_zeus(DATA, seeds=3)


def test_absent_data_is_a_row_that_says_so(tmp_path):
    (row,) = zeus.evaluate_zeus(tmp_path)
    assert row["kind"] == "measured-data"
    assert "No such file" in row["absent"]


@needs_data
def test_six_jobs_on_two_gpus_are_read_with_their_own_runs(trainings):
    assert len(trainings) == 12
    cifar = next(t for t in trainings if "cifar" in t.job and t.gpu == "v100")
    assert cifar.epochs[16] == (18.0, 18.0, 21.0, 19.0, 19.0)
    assert cifar.epochs[4096] == (566.0, 456.0, 498.0, None, 421.0)
    assert math.isinf(cifar.true_epochs()[-1])
    assert all(np.isfinite(t.log_time[-1]).all() for t in trainings)  # the last cap allows every point


@needs_data
def test_every_row_says_that_it_is_of_measured_data(rows):
    assert rows
    assert {row["kind"] for row in rows} == {"measured-data"}
    assert all(row["cases"] % 72 == 0 for row in rows)


def row_of(rows, method, runs, curves=None):
    (row,) = [
        r for r in rows
        if r["method"] == method and r.get("runs_per_size") == runs and r.get("curves") == curves
        and r.get("draws") != "each run at most once"
    ]  # fmt: skip
    return row


@needs_data
def test_ignoring_r_costs_a_fifth_to_a_third_as_is_known(rows):
    assert 0.2 < row_of(rows, "ignoring r", None)["mean_loss"] < 0.3


@needs_data
@pytest.mark.parametrize("curves", ["the board's table", "device family"])
def test_with_all_recorded_runs_five_sizes_are_as_good_as_every_size(rows, curves):
    row = row_of(rows, "r from one after another", "all recorded", curves)
    assert row["mean_loss"] <= 0.001
    assert row["worst_loss"] <= 0.02
    assert row["mean_sizes"] <= 5


@needs_data
def test_one_after_another_beats_three_fixed_sizes(rows):
    fixed = row_of(rows, "r from three fixed sizes", "all recorded")["mean_loss"]
    assert row_of(rows, "r from one after another", "all recorded", "device family")["mean_loss"] < fixed / 2


@needs_data
def test_the_choice_is_that_of_the_policy(trainings):
    training = next(t for t in trainings if "squad" in t.job and t.gpu == "v100")
    runs = {b: list(training.epochs[b]) for b in (8, 24, 56)}
    relation = RelationVector.from_runs("w", runs, smoothed=True)
    for cap in range(len(zeus.CAP_SHARES)):
        feasible = np.isfinite(training.log_time[cap])
        sizes = tuple(b for b, ok in zip(training.batch_sizes, feasible, strict=True) if ok)
        column = tuple((math.exp(t),) for t in training.log_time[cap][feasible])
        chosen = select(Lut("b", "w", 1, sizes, (1,), column, column, column), relation).chosen.point.batch_size
        total = np.log(training.true_epochs()) + training.log_time[cap]
        expected = math.expm1(total[training.batch_sizes.index(chosen)] - total.min())
        assert training.losses(zeus.log_r(training, runs))[cap] == pytest.approx(expected)


def made(epochs):
    sizes = tuple(epochs)
    flat = np.zeros((1, len(sizes)))
    return zeus.Training("j", "g", sizes, flat, flat, epochs)


def test_a_choice_that_misses_the_target_is_an_infinite_loss():
    training = made({4: (1.0, 1.0), 8: (0.5, None)})
    assert training.losses(np.log([2.0, 1.0])) == [math.inf]
    assert training.losses(np.log([1.0, 2.0])) == [0.0]
    assert training.losses(np.full(2, math.inf)) == [math.inf]


def test_no_design_sees_more_than_the_runs_it_asked_for():
    training = made({b: tuple(float(100 * b + i) for i in range(5)) for b in (4, 8, 16, 32, 64, 128, 256)})
    asked = []
    draw = zeus.recorded(training, np.random.default_rng(0), replace=False)

    def counting(b):
        asked.append(b)
        return draw(b)

    runs = zeus.sequential_runs(training, counting, Limits(tolerance=0.0), None)
    assert {b: len(of_size) for b, of_size in runs.items()} == {b: asked.count(b) for b in set(asked)}
    assert len(runs) == 5
    assert all(len(set(of_size)) == 4 for of_size in runs.values())  # each recorded run at most once


def test_made_up_trainings_are_the_same_again_and_marked_as_such():
    one, two = synthetic(3, seed=1), synthetic(3, seed=1)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.log_time, b.log_time)
        assert a.epochs == b.epochs
    assert {row["kind"] for row in zeus.evaluate_zeus(DATA, 1, one)} == {"predicted"}
