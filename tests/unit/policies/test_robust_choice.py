"""The choice with uncertainty: equal to the plain one without any, and right about its probabilities with some."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lut_tables import tables_with_relation, uncertain

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.robust import choose, relation_cv, violation
from traingov_policies.select import select
from traingov_policies.values import Objective, OperatingPoint

CAPS = st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.5, 4.0, 9.0]))


@given(tables_with_relation(), CAPS, st.sampled_from(Objective), st.sampled_from([0.001, 0.05, 0.5]), st.booleans())
def test_without_uncertainties_the_choice_is_exactly_the_plain_one(pair, cap, objective, level, measured_only) -> None:
    lut, relation = pair
    try:
        plain = select(lut, relation, cap, objective, measured_only=measured_only)
    except ValueError as error:
        with pytest.raises(ValueError, match="no usable point") as raised:
            choose(lut, relation, cap, objective, violation_probability=level, measured_only=measured_only)
        assert str(raised.value) == str(error)  # noqa: PT017
        return
    choice = choose(lut, relation, cap, objective, violation_probability=level, measured_only=measured_only)
    assert choice.selection == plain
    if plain.feasible:
        assert [j.best_probability for j in choice.ranked] == [1.0] + [0.0] * (len(choice.ranked) - 1)


@settings(deadline=None)
@given(uncertain(), CAPS, st.sampled_from(Objective), st.sampled_from([0.01, 0.05, 0.3]))
def test_what_is_chosen_is_measured_and_violates_the_cap_less_often_than_stated(pair, cap, objective, level) -> None:
    lut, relation = pair
    try:
        choice = choose(lut, relation, cap, objective, violation_probability=level, measured_only=True)
    except ValueError:
        return
    chosen = choice.chosen
    assert chosen.origin != "predicted"
    assert sum(j.best_probability for j in choice.judged) <= 1 + 1e-9
    if not choice.selection.feasible:
        assert all(j.violation_probability >= level for j in choice.judged if j.score is not None)
        return
    assert chosen.violation_probability < level
    for j in choice.judged:
        allowed = j.score is not None and j.violation_probability < level
        assert allowed == (j in choice.ranked)
        if allowed:
            assert chosen.score <= j.score
        if cap is not None and j.needed_cap_w is not None and abs(cap - j.needed_cap_w) > 1e-9:
            assert (j.violation_probability < level) == (cap > j.needed_cap_w)


def two_batches(time: tuple[float, float], power: tuple[float, float], **more: object) -> Lut:
    """Batch sizes 8 and 16 at one clock."""
    grids = [tuple((v,) for v in pair) for pair in (time, power, power)]
    return Lut("nano", "w", 64, (8, 16), (1,), *grids, **more)  # type: ignore[arg-type]


def test_a_faster_point_too_likely_above_the_cap_is_not_chosen_and_one_less_strict_takes_it() -> None:
    lut = two_batches((10.0, 8.0), (3.0, 3.9), power_std_w=((0.1,), (0.1,)))  # 16 is one deviation below 4 W
    assert choose(lut, cap_w=4.0, violation_probability=0.05).chosen.point.batch_size == 8
    choice = choose(lut, cap_w=4.0, violation_probability=0.2)
    assert choice.chosen.point.batch_size == 16
    assert choice.chosen.violation_probability == pytest.approx(0.158655, abs=1e-6)


def test_where_all_are_too_likely_above_the_cap_the_least_likely_is_chosen_and_not_called_feasible() -> None:
    lut = two_batches((10.0, 8.0), (3.95, 3.9), power_std_w=((0.05,), (0.2,)))
    choice = choose(lut, cap_w=4.0, violation_probability=0.05)
    assert not choice.selection.feasible
    assert choice.ranked == ()
    # Batch 16 has the lower power, batch 8 the lower chance to exceed the cap.
    assert choice.chosen.point.batch_size == 8


def test_the_chance_of_a_violation_is_that_of_a_normal_error() -> None:
    assert violation(3.9, 0.1, 4.0) == pytest.approx(0.5 * math.erfc(1 / math.sqrt(2)))
    assert [violation(4.0, 0.0, 4.0), violation(3.99, 0.0, 4.0), violation(None, 0.0, 4.0)] == [1.0, 0.0, 1.0]
    assert violation(None, 0.0, None) == 0.0


def brute_force_odds(lut: Lut, relation: RelationVector | None, cap: float | None, objective: Objective):
    """Probabilities of being the best by plain simulation, another way than the policy's."""
    rng = np.random.default_rng(7)
    draws = 60_000
    scores = {}
    for i, b in enumerate(lut.batch_sizes):
        r, interval = 1.0, None
        if relation is not None:
            r, interval = relation.relative_samples[i], relation.interval
        low, high = (r, r) if interval is None else interval[i]
        rs = rng.normal(r, (high - low) / 3.92, draws)
        for j, f in enumerate(lut.gpu_frequencies_hz):
            time = rng.normal(lut.time_s[i][j], lut.time_std_s[i][j], draws) * rs
            error = rng.normal(0, lut.power_std_w[i][j], draws)
            mean = lut.mean_power_w[i][j] + error
            score = {"time": time, "energy": time * mean, "edp": time * time * mean}[objective.value]
            if cap is not None:
                score = np.where(lut.peak_power_w[i][j] + error < cap, score, np.inf)
            scores[OperatingPoint(b, f)] = score
    table = np.array(list(scores.values()))
    winners = np.where(np.isfinite(table.min(axis=0)), table.argmin(axis=0), -1)
    return {point: float(np.mean(winners == k)) for k, point in enumerate(scores)}


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("cap", [None, 4.05, 5.0])
def test_the_chance_to_be_the_best_agrees_with_a_plain_simulation(objective: Objective, cap: float | None) -> None:
    time = ((40.0, 21.0, 14.5), (30.0, 16.0, 13.8), (29.0, 15.8, 13.0))
    power = ((2.0, 3.0, 4.0), (3.0, 4.0, 5.0), (3.1, 4.1, 5.2))
    std_t = tuple(tuple(0.04 * t for t in row) for row in time)
    std_p = tuple(tuple(0.05 for _ in row) for row in power)
    lut = Lut("nano", "w", 64, (8, 16, 32), (1, 2, 3), time, power, power, time_std_s=std_t, power_std_w=std_p)
    relation = RelationVector("w", (8, 16, 32), (0.9, 0.95, 1.0), interval=((0.85, 0.95), (0.9, 1.0), (0.93, 1.07)))
    choice = choose(lut, relation, cap, objective)
    expected = brute_force_odds(lut, relation, cap, objective)
    for judged in choice.judged:
        assert judged.best_probability == pytest.approx(expected[judged.point], abs=0.05), judged.point


def test_an_uncertain_r_leaves_two_batch_sizes_undecided_but_not_two_clocks_of_one() -> None:
    lut = Lut("nano", "w", 64, (8, 16), (1, 2), ((20.0, 10.0), (20.0, 10.0)), *(((1.0, 2.0), (1.0, 2.0)),) * 2)
    relation = RelationVector("w", (8, 16), (1.0, 1.0), interval=((0.8, 1.2), (0.8, 1.2)))
    best = {j.point: j.best_probability for j in choose(lut, relation).judged}
    assert best[OperatingPoint(8, 2)] == pytest.approx(0.5, abs=0.05)
    assert best[OperatingPoint(16, 2)] == pytest.approx(0.5, abs=0.05)
    # r is common to both clocks: the lower one is twice as slow whatever r is.
    only = choose(lut, relation, batch_sizes=[8])
    assert {j.point.gpu_frequency_hz: j.best_probability for j in only.judged} == {1: 0.0, 2: 1.0}


def test_for_energy_times_time_the_spread_of_time_counts_in_the_expectation() -> None:
    # Both have the same product; the uncertain one's expected product is larger by 1 + 0.3².
    lut = two_batches((10.0, 10.0), (3.0, 3.0), time_std_s=((3.0,), (0.0,)))
    choice = choose(lut, objective=Objective.EDP)
    assert choice.chosen.point.batch_size == 16
    assert choice.of(OperatingPoint(8, 1)).score == pytest.approx(300 * 1.09)
    assert choose(lut, objective=Objective.TIME).chosen.point.batch_size == 8


def test_the_spread_of_r_is_that_of_its_interval_and_wider_between_measured_batch_sizes() -> None:
    relation = RelationVector("w", (8, 32), (0.5, 1.0), interval=((0.49, 0.51), (0.8, 1.2)))
    assert relation_cv(relation, 32) == pytest.approx(0.4 / (2 * 1.959964))
    assert relation_cv(relation, 8) == pytest.approx(0.02 / (2 * 1.959964) / 0.5)
    assert relation_cv(relation, 16) > relation_cv(relation, 8)
    low, high = relation.interval_of(16)
    assert relation_cv(relation, 16) == pytest.approx((high - low) / (2 * 1.959964) / relation.of(16))
    assert relation_cv(replace(relation, interval=None), 32) == 0.0
    assert relation_cv(relation, 64) == 0.0


@pytest.mark.parametrize("level", [0.0, -0.1, 0.51, float("nan")])
def test_a_violation_probability_that_makes_no_sense_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="violation probability"):
        choose(two_batches((1.0, 1.0), (1.0, 1.0)), violation_probability=level)


def test_the_same_table_gives_the_same_figures_every_time() -> None:
    lut = two_batches((10.0, 10.1), (3.0, 3.0), time_std_s=((0.3,), (0.3,)))
    first = choose(lut)
    assert choose(lut) == first
    assert 0 < first.judged[1].best_probability < 0.5 < first.judged[0].best_probability
