"""What is believed of a job's energy curve: prior from other jobs, readings, drift, expected gains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.search.prior import Known, prior, remembered
from traingov_policies.search.process import Belief, Reading, gains

U = np.log(np.linspace(0.2, 1.0, 11))


def valley(bottom: float, depth: float = 0.5) -> np.ndarray:
    return depth * (U - np.log(bottom)) ** 2


def others(bottom: float, count: int = 5, noise: float = 0.005, seed: int = 0) -> list[Known]:
    rng = np.random.default_rng(seed)
    return [Known(U, valley(bottom) + i + rng.normal(0, noise, 11), np.full(11, 0.005)) for i in range(count)]


def test_without_other_jobs_the_prior_is_a_valley_at_the_start() -> None:
    belief = prior(U, [], float(U[6])).given([])
    assert int(np.argmin(belief.mean)) == 6


def test_other_jobs_move_the_valley_whatever_their_level() -> None:
    belief = prior(U, others(0.4), float(U[9])).given([])
    assert abs(U[int(np.argmin(belief.mean))] - np.log(0.4)) < 0.15


def test_curves_with_a_few_clocks_count_too() -> None:
    few = [Known(k.u[[2, 4, 7]], k.value[[2, 4, 7]], k.sd[[2, 4, 7]]) for k in others(0.45)]
    belief = prior(U, few, float(U[9])).given([])
    assert abs(U[int(np.argmin(belief.mean))] - np.log(0.45)) < 0.3


def test_a_spike_that_every_other_job_shows_is_expected_of_the_next() -> None:
    spiky = [Known(k.u, k.value + 0.08 * (np.arange(11) == 5), k.sd) for k in others(0.6)]
    plain = prior(U, others(0.6), float(U[5])).given([]).mean
    assert prior(U, spiky, float(U[5])).given([]).mean[5] - plain[5] > 0.04 + float(
        np.mean(np.delete(prior(U, spiky, float(U[5])).given([]).mean - plain, 5))
    )


def test_a_job_unlike_the_others_is_found_out_by_its_readings() -> None:
    mixture = prior(U, others(0.4, noise=0.001), float(U[6]))
    truth = valley(1.0, 0.9)
    belief = mixture.given([Reading(i, float(i), float(truth[i]), 0.01) for i in (2, 5, 8)])
    assert int(np.argmin(belief.mean)) >= 8


def test_readings_taken_in_turn_cancel_drift_that_readings_taken_apart_do_not() -> None:
    base = prior(U, others(0.6), float(U[5]))
    near = [Reading(5, 0, 0, 0.01), Reading(7, 10, 0, 0.01), Reading(5, 20, 0, 0.01), Reading(7, 30, 0, 0.01)]
    far = [Reading(5, 0, 0, 0.01), Reading(5, 10, 0, 0.01), Reading(7, 1200, 0, 0.01), Reading(7, 1210, 0, 0.01)]
    drift = 1e-4 / 60
    assert base.given(near, drift).difference(5, 7)[1] < base.given(far, drift).difference(5, 7)[1]


def test_drift_of_the_level_is_not_taken_for_a_difference_between_clocks() -> None:
    flat = [Known(U, np.zeros(11) + i, np.full(11, 0.003)) for i in range(4)]
    base = prior(U, flat, float(U[5]))
    # The level rises by 1 % a reading; the clocks are equal.
    rising = [Reading(5 if k % 2 == 0 else 7, 60.0 * k, 0.01 * k, 0.005) for k in range(6)]
    mean, sd = base.given(rising, 1e-4 / 60).difference(5, 7)
    assert abs(mean) < 0.01
    assert sd > 0


def test_a_remembered_curve_gives_its_shape_but_not_its_level() -> None:
    own = valley(0.8)
    mixture = remembered(prior(U, others(0.4), float(U[5])), range(11), Known(U, own + 7, np.full(11, 0.005)))
    belief = mixture.given([Reading(5, 0.0, 0.0, 0.005)])
    assert own[int(np.argmin(belief.mean))] - own.min() < 0.001
    assert belief.mean[5] == pytest.approx(0.0, abs=0.02)


def test_a_reading_that_cannot_change_the_choice_gains_nothing() -> None:
    sure = Belief(np.array([0.0, 1.0, 0.1]), np.diag([1e-8, 1e-4, 1e-2]))
    gain = gains(sure, [0, 1, 2], 0.01)
    assert gain[1] == pytest.approx(0.0, abs=1e-9)
    assert gain[2] > 1e-3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.floats(-0.5, 0.5)), min_size=1, max_size=12))
def test_readings_only_ever_narrow_a_belief_and_gains_are_never_negative(data: list[tuple[int, float]]) -> None:
    for belief in prior(U, others(0.5), float(U[5])).beliefs:
        after, _ = belief.given([Reading(i, float(t), v, 0.02) for t, (i, v) in enumerate(data)], 1e-6)
        assert np.all(after.sd <= belief.sd + 1e-9)
        assert np.all(np.isfinite(after.mean))
        assert np.all(gains(after, list(range(11)), 0.02) >= 0)
