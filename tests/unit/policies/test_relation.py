"""Relation vectors and learning-rate rules."""

from __future__ import annotations

import pytest

from traingov_policies.relation import RelationVector, scaled_learning_rate


def test_r_is_the_mean_of_runs_normalised_to_the_largest() -> None:
    r = RelationVector.from_runs("w", {8: [9.0, 11.0], 32: [15.0, 15.0]})
    assert r.relative_samples == (pytest.approx(10 / 15), 1.0)
    assert RelationVector.from_json(r.to_json()) == r


def test_a_batch_with_one_missed_run_is_no_candidate() -> None:
    r = RelationVector.from_runs("w", {8: [10.0, None], 32: [15.0, 15.0]})
    assert r.of(8) is None
    assert r.of(16) is None
    assert r.of(32) == 1.0


def test_between_measured_sizes_r_is_log_log_interpolated_and_outside_it_is_unknown() -> None:
    r = RelationVector("w", (4, 64), (0.25, 1.0))
    assert r.of(16) == pytest.approx(0.5)
    assert r.of(2) is None
    assert r.of(128) is None


@pytest.mark.parametrize(("rule", "rate"), [("sqrt", 2.5e-4), ("linear", 1.25e-4), ("none", 5e-4)])
def test_learning_rates_follow_the_batch(rule: str, rate: float) -> None:
    assert scaled_learning_rate(5e-4, 128, 32, rule) == pytest.approx(rate)


def test_an_unknown_rule_and_a_wrong_vector_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="sqrt"):
        scaled_learning_rate(1.0, 8, 16, "cube")
    with pytest.raises(ValueError, match="batch 8 is 1.5"):
        RelationVector("w", (8,), (1.5,))
    with pytest.raises(ValueError, match="reached"):
        RelationVector.from_runs("w", {8: [None]})
