"""Which batch size is trained next, and when it is enough."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.belief import learn, noise_sd, usable, worth_trying
from traingov_policies.lut import Lut
from traingov_policies.sequential import (
    Limits,
    device_family,
    expected_loss,
    lut_caps_w,
    lut_curves,
    next_step,
    start_sizes,
)

SIZES = (4, 8, 16, 32, 64, 128, 256)


def design(count, sizes=SIZES, curves=None, limits=None):
    """All runs that the design asks for, where ``count(b, i)`` is N of the i-th run."""
    runs = {}
    steps = []
    while (step := next_step(sizes, runs, curves, limits)).batch_sizes:
        (b,) = step.batch_sizes
        runs.setdefault(b, []).append(count(b, len(runs.get(b, ()))))
        steps.append(step)
        assert len(steps) <= 100, "does not end"
    return runs, steps, step


def test_it_starts_with_the_smallest_the_middle_and_the_largest():
    assert start_sizes(SIZES) == (4, 32, 256)
    _, steps, _ = design(lambda b, i: 100.0 * b)
    assert [s.batch_sizes[0] for s in steps[:3]] == [4, 32, 256]


def test_two_sizes_start_with_both():
    assert start_sizes((8, 16)) == (8, 16)


def test_runs_go_to_the_sizes_between_which_the_choice_lies():
    # T falls as 1/b up to 32 and not beyond; N is flat up to 16: the choice lies around 16 and 32.
    curve = np.array([[-math.log(min(b, 32)) for b in SIZES]])
    runs, _, _ = design(lambda b, i: 1000.0 * max(1.0, b / 24) * (1.0 + 0.01 * (i % 2)), curves=curve)
    assert set(runs) <= {4, 16, 32, 64, 256}
    assert len(runs[32]) >= len(runs[4])


def test_a_choice_that_is_clear_after_three_runs_takes_no_more_than_a_few():
    curve = np.array([[0.0] * len(SIZES)])
    runs, _, last = design(lambda b, i: 1000.0 * b, curves=curve)
    assert sum(map(len, runs.values())) <= 5
    assert last.expected_loss is not None
    assert last.expected_loss <= Limits().tolerance


def test_noisy_runs_near_the_decision_are_repeated():
    rng = np.random.default_rng(1)
    runs, _, _ = design(lambda b, i: 1000.0 * math.exp(0.2 * rng.normal()), limits=Limits(tolerance=0.0001))
    assert max(map(len, runs.values())) >= 3


counts = st.one_of(st.none(), st.floats(1.0, 1e9))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), most=st.integers(1, 5), each=st.integers(1, 4), at_once=st.integers(1, 6))
def test_whatever_runs_give_the_limits_hold_and_it_ends(data, most, each, at_once):
    sizes = tuple(sorted(data.draw(st.sets(st.integers(1, 4096), min_size=1, max_size=9))))
    runs, spent, asked = {}, {}, 0
    limits = Limits(most, each, data.draw(st.sampled_from([0.0, 0.001])))
    while (step := next_step(sizes, runs, None, limits, spent=spent, at_once=at_once)).batch_sizes:
        assert len(step.batch_sizes) <= at_once
        for b in step.batch_sizes:
            asked += 1
            if data.draw(st.integers(0, 5)) == 0:
                spent[b] = spent.get(b, 0) + 1
            else:
                runs.setdefault(b, []).append(data.draw(counts))
        for b in sizes:
            assert len(runs.get(b, ())) + spent.get(b, 0) <= each
        assert len(set(runs) | set(spent)) <= most
    assert asked <= most * each


def test_a_size_that_missed_is_settled_and_what_lies_beyond_it_is_not_tried():
    runs, _, _ = design(lambda b, i: None if b >= 32 else 100.0 * b)
    assert len(runs[32]) == 1
    assert len(runs[256]) == 1
    assert 64 not in runs
    assert 128 not in runs


def test_an_untried_size_beside_a_missed_one_is_tried_before_the_design_stops():
    # The largest size misses; the one that is best lies next to it, beyond what is known to work.
    curve = np.array([[-1.5 * math.log(b) for b in SIZES]])
    runs, _, _ = design(lambda b, i: None if b == 256 else 1000.0 * b**0.2, curves=curve)
    assert set(runs) & {64, 128}


def test_where_nothing_reaches_the_target_it_looks_for_a_size_that_does_and_gives_up_in_the_end():
    runs, _, last = design(lambda b, i: None)
    assert len(runs) == 5
    assert all(len(of_size) == 1 for of_size in runs.values())
    assert last.why == "no size reached the target in every run"


def test_side_by_side_runs_are_of_different_sizes_as_long_as_little_is_known():
    assert next_step(SIZES, {}, at_once=3).batch_sizes == (4, 32, 256)
    assert len(next_step(SIZES, {}, at_once=8).batch_sizes) >= 3
    known = {4: [9000.0], 32: [3000.0], 256: [12000.0]}
    assert len(set(next_step(SIZES, known, at_once=2).batch_sizes)) == 2


def test_a_decision_is_a_function_of_its_inputs():
    known = {4: [9000.0], 32: [3000.0, 3100.0], 256: [12000.0]}
    assert next_step(SIZES, known) == next_step(SIZES, known)


def test_curves_of_another_shape_and_limits_without_sense_are_refused():
    with pytest.raises(ValueError, match=r"\[curve\]\[7\]"):
        next_step(SIZES, {}, np.zeros((2, 3)))
    for limits in ({"sizes": 0}, {"runs": 0}, {"tolerance": 1.0}):
        with pytest.raises(ValueError, match="sequential design"):
            Limits(**limits)


def test_the_family_holds_devices_that_want_the_largest_batch_and_devices_that_do_not_care():
    curves = device_family(SIZES)
    assert np.isfinite(curves).all()
    best = {int(i) for i in np.argmin(curves, axis=1)}
    assert len(SIZES) - 1 in best
    assert 0 in best


LUT = Lut(
    "board", "w", 100, (4, 8), (300, 600),
    ((9.0, 7.0), (8.0, 5.0)), ((2.0, 4.0), (3.0, None)), ((2.0, 4.0), (3.0, 5.0)),
)  # fmt: skip


def test_a_tables_curve_is_the_fastest_feasible_time_of_each_batch_size():
    curves = lut_curves(LUT, (4, 8, 16), (1.0, 2.5, 4.5, None))
    assert np.exp(curves).tolist() == [
        [pytest.approx(9.0), math.inf, math.inf],
        [pytest.approx(7.0), pytest.approx(8.0), math.inf],
        [pytest.approx(7.0), pytest.approx(5.0), math.inf],
    ]
    assert lut_caps_w(LUT, (0.5,)) == (3.0, None)
    with pytest.raises(ValueError, match="no point"):
        lut_curves(LUT, (4,), (1.0,))


def test_the_expected_loss_vanishes_when_every_size_is_known_well():
    runs = {b: [100.0 * b**0.5] * 50 for b in SIZES}
    curves = device_family(SIZES)
    few = learn(SIZES, {4: [200.0], 256: [1600.0]})
    assert expected_loss(learn(SIZES, runs), set(SIZES), curves) < 0.001
    assert expected_loss(few, set(SIZES), curves) > 0.01


def test_the_belief_is_the_log_log_line_between_sizes_and_unsure_in_the_middle():
    belief = learn((4, 8, 16, 32, 64), {4: [100.0] * 400, 64: [1600.0] * 400})
    np.testing.assert_allclose(np.exp(belief.mean), [100, 200, 400, 800, 1600], rtol=0.02)
    sd = belief.sd()
    assert sd[2] > sd[1] > sd[0]


def test_one_lucky_run_is_drawn_towards_its_neighbours_and_many_runs_are_not():
    flat = {4: [100.0] * 4, 8: [80.0], 16: [100.0] * 4}
    once = math.exp(learn((4, 8, 16), flat).mean[1])
    often = math.exp(learn((4, 8, 16), {**flat, 8: [80.0, 80.1] * 30}).mean[1])
    assert 81.0 < once < 100.0
    assert often == pytest.approx(80.0, rel=0.01)


def test_noise_is_that_of_the_runs_when_there_are_many():
    rng = np.random.default_rng(0)
    runs = {b: list(np.exp(rng.normal(5.0, sd, 200))) for b, sd in ((4, 0.05), (8, 0.3))}
    np.testing.assert_allclose(noise_sd((4, 8), runs), [0.05, 0.3], rtol=0.25)


def test_what_is_known_lies_between_sizes_that_reached_the_target_with_no_missed_one_between():
    reached = {4: True, 32: True, 128: False}
    assert usable(SIZES, reached) == {4, 8, 16, 32}
    assert worth_trying(SIZES, reached) == {8, 16, 64}


@settings(deadline=None)
@given(
    values=st.dictionaries(st.sampled_from(SIZES), st.lists(st.floats(1, 1e6), min_size=1, max_size=4), min_size=1),
    factor=st.floats(0.01, 100),
)
def test_the_unit_of_n_does_not_matter(values, factor):
    one, other = learn(SIZES, values), learn(SIZES, {b: [n * factor for n in runs] for b, runs in values.items()})
    np.testing.assert_allclose(other.mean - one.mean, math.log(factor), atol=1e-6)
    np.testing.assert_allclose(other.covariance, one.covariance, atol=1e-6)
    assert np.linalg.eigvalsh(one.covariance).min() > -1e-8
