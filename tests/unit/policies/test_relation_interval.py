"""Intervals of r, measured and interpolated, and smoothed vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.relation import RelationVector

RUNS = {4: [100.0, 110.0, 90.0], 16: [200.0, 190.0], 64: [None, 3.0]}


@pytest.mark.parametrize("smoothed", [True, False])
def test_every_candidate_has_an_interval_that_holds_it_and_others_have_none(smoothed):
    r = RelationVector.from_runs("w", RUNS, smoothed=smoothed)
    assert r.interval is not None
    for b in (4, 16):
        low, high = r.interval_of(b)
        assert low < r.of(b) < high
    assert r.interval[2] == (None, None)
    assert r.interval_of(64) is None
    assert RelationVector.from_json(r.to_json()) == r


def test_an_interpolated_value_is_less_sure_than_its_neighbours():
    r = RelationVector.from_runs("w", {b: RUNS[b] for b in (4, 16)})

    def width(b):
        low, high = r.interval_of(b)
        return math.log(high / low)

    assert width(8) > max(width(4), width(16))
    low, high = r.interval_of(8)
    assert low * high == pytest.approx(r.of(8) ** 2)
    assert r.interval_of(32) is None
    assert RelationVector("w", (4, 16), (0.5, 1.0)).interval_of(8) is None


def test_more_runs_narrow_the_interval():
    few, many = (RelationVector.from_runs("w", {4: [90.0, 110.0] * n, 8: [200.0] * n}) for n in (2, 20))
    assert few.interval_of(4)[0] < many.interval_of(4)[0] < many.of(4) < many.interval_of(4)[1] < few.interval_of(4)[1]


def test_about_95_of_100_intervals_hold_the_true_mean():
    rng = np.random.default_rng(5)
    held = []
    for _ in range(300):
        # The largest size is known exactly, so that r of the others is N over a known number.
        noise = {b: np.exp(rng.normal(0, 0.1, 4)) for b in (4, 8, 16)}
        runs = {**{b: list(10.0 * b * noise[b]) for b in noise}, 64: [640.0]}
        relation = RelationVector.from_runs("w", runs)
        held += [low <= b / 64 * math.exp(0.005) <= high for b in noise for low, high in [relation.interval_of(b)]]
    assert 0.90 <= np.mean(held) <= 0.98


def test_a_smoothed_vector_of_many_runs_is_the_plain_one():
    runs = {4: [99.0, 101.0] * 200, 16: [199.0, 201.0] * 200}
    plain, smooth = (RelationVector.from_runs("w", runs, smoothed=s) for s in (False, True))
    assert smooth.relative_samples == pytest.approx(plain.relative_samples, rel=0.005)


@given(
    runs=st.dictionaries(
        st.integers(1, 1000), st.lists(st.floats(1, 1e9), min_size=1, max_size=4), min_size=1, max_size=8
    ),
    smoothed=st.booleans(),
)
def test_any_runs_give_a_vector_that_its_own_file_format_takes(runs, smoothed):
    r = RelationVector.from_runs("w", runs, smoothed=smoothed)
    assert max(x for x in r.relative_samples if x is not None) == 1.0
    assert RelationVector.from_json(r.to_json()) == r


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (((0.4, 0.6),), "1 pairs for 2"),
        (((0.6, 0.7), (0.9, 1.1)), "batch 4"),
        (((0.4, None), (0.9, 1.1)), "batch 4 must be two numbers"),
        (((0.4, 0.6), (0.9, math.inf)), "batch 8"),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(interval, said):
    with pytest.raises(ValueError, match=said):
        RelationVector("w", (4, 8), (0.5, 1.0), interval=interval)
