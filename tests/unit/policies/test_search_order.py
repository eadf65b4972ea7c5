"""The order of readings: interleaved, never on one probe's word, over when a probe no longer repays itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.search.prior import Known, prior
from traingov_policies.search.process import Reading
from traingov_policies.search.search import Search, Stakes, Step

U = np.log(np.linspace(0.2, 1.0, 11))
RICH = Stakes(rest_j=1e6, probe_j=100, allowance_j=1e6)
PRIOR = prior(
    U, [Known(U, 0.4 * (U - U[6]) ** 2 + 0.01 * np.sin(7 * U + i), np.full(11, 0.01)) for i in range(4)], float(U[5])
)


def run(  # noqa: PLR0917
    curve: np.ndarray, noise: float = 0.0, seed: int = 0, stakes: Stakes = RICH, most: int = 4,
    allowed: frozenset[int] = frozenset(range(11)), known: int | None = None,
) -> tuple[Search, list[Step]]:  # fmt: skip
    rng = np.random.default_rng(seed)
    search, steps = Search(PRIOR, 5, probes_most=most, noise_sd=0.01, known=known), []
    for t in itertools.count():
        step = search.next(allowed, lambda: stakes)
        if step is None:
            return search, steps
        steps.append(step)
        assert t < 60
        value = float(curve[step.index] + rng.normal(0, noise))
        search.tell(Reading(step.index, 9.0 * t, value, max(noise, 0.005)))
    raise AssertionError


BOWL = 0.4 * (U - U[8]) ** 2


def test_it_begins_at_the_start_with_two_readings_and_finds_the_best_clock() -> None:
    search, steps = run(BOWL)
    assert [s.index for s in steps[:2]] == [5, 5]
    assert BOWL[search.incumbent] - BOWL.min() < 0.003
    assert search.probes <= 4


def test_after_every_probe_the_incumbent_is_read_before_the_next_probe() -> None:
    _, steps = run(BOWL, noise=0.02)
    assert any(s.why == "probe" for s in steps)
    for first, second in itertools.pairwise(steps):
        assert "probe" not in {first.why} & {second.why}


def test_no_clock_is_ended_with_on_the_strength_of_one_reading() -> None:
    for seed in range(20):
        search, _ = run(BOWL, noise=0.03, seed=seed)
        assert search.count(search.incumbent) >= 2


def test_one_lucky_reading_does_not_win() -> None:
    search = Search(PRIOR, 5, probes_most=4, noise_sd=0.01)
    truth = 0.4 * (U - U[5]) ** 2 + 0.02 * (np.arange(11) != 5)
    lucky = True
    for t in itertools.count():
        step = search.next(range(11), lambda: RICH)
        if step is None:
            break
        value = float(truth[step.index])
        if step.why == "probe" and lucky:
            value, lucky = value - 0.06, False
        search.tell(Reading(step.index, 9.0 * t, value, 0.01))
    assert not lucky
    assert truth[search.incumbent] - truth.min() <= 0.021
    assert search.count(search.incumbent) >= 2


def test_a_rest_of_the_job_that_repays_no_probe_gets_none() -> None:
    search, steps = run(BOWL, stakes=Stakes(rest_j=0.0, probe_j=100, allowance_j=1e6))
    assert (search.incumbent, search.probes, len(steps)) == (5, 0, 2)


def test_a_probe_that_may_lose_more_than_is_allowed_is_not_made() -> None:
    search, _ = run(BOWL, stakes=Stakes(rest_j=1e9, probe_j=100, allowance_j=0.0))
    assert search.probes == 0


def test_only_allowed_clocks_are_read() -> None:
    _, steps = run(BOWL, allowed=frozenset({3, 4, 5}))
    assert {s.index for s in steps} <= {3, 4, 5}


def test_a_clock_left_out_is_neither_read_nor_ended_with() -> None:
    search = Search(PRIOR, 5, probes_most=4, noise_sd=0.01)
    for t in range(40):
        step = search.next(range(11), lambda: RICH)
        if step is None:
            break
        if step.index == 8:
            search.leave_out(8)
            continue
        search.tell(Reading(step.index, float(t), float(BOWL[step.index]), 0.005))
    assert search.count(8) == 0
    assert search.incumbent != 8


def test_the_best_known_from_before_is_the_first_to_be_verified() -> None:
    _, steps = run(BOWL, known=8)
    assert steps[2] == Step(8, "probe")


def test_a_settled_search_that_is_looked_at_again_reads_start_and_incumbent_first() -> None:
    search, _ = run(BOWL)
    search.again(0)
    first = search.next(range(11), lambda: RICH)
    assert first == Step(5, "again")


def test_a_clock_that_does_not_surely_beat_the_start_is_read_against_it_again() -> None:
    flat = np.where(np.arange(11) == 6, -0.004, 0.0)
    search, steps = run(flat, noise=0.02, seed=3, most=2)
    if search.incumbent != 5:
        assert search.count(5) >= 3
    assert len(steps) <= 2 + 2 * 2 + 1 + 4 + 2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-0.3, 0.3), min_size=11, max_size=11),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 0.05),
    st.integers(0, 6),
)
def test_on_any_curve_it_ends_and_stays_within_its_probes(
    curve: list[float], seed: int, noise: float, most: int
) -> None:
    search, steps = run(np.array(curve), noise, seed, most=most)
    assert search.probes <= most
    assert len(steps) <= 2 + 3 * most + 8
    assert search.incumbent in {s.index for s in steps}


def test_without_noise_it_never_ends_above_the_start() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        curve = rng.normal(0, 0.05, 11)
        search, _ = run(curve)
        assert curve[search.incumbent] <= curve[5] + 1e-3


@pytest.mark.parametrize("index", [0, 10])
def test_a_best_clock_at_either_end_can_be_reached(index: int) -> None:
    curve = 0.5 * np.abs(U - U[index])
    search, _ = run(curve, most=6)
    assert curve[search.incumbent] < 0.35 * curve[5]
