"""Selection equals brute force over random tables: ties, gaps, nothing feasible, non-monotone power."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lut_tables import tables_with_relation

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.select import select
from traingov_policies.values import Objective, OperatingPoint


def brute_force(lut: Lut, relation: RelationVector | None, cap: float | None, objective: Objective):
    rows = []
    for i, b in enumerate(lut.batch_sizes):
        r = 1.0 if relation is None else relation.relative_samples[i]
        if r is None:
            continue
        for j, f in enumerate(lut.gpu_frequencies_hz):
            t, peak, mean = lut.time_s[i][j], lut.peak_power_w[i][j], lut.mean_power_w[i][j]
            if t is None or (cap is not None and (peak is None or not peak < cap)):
                continue
            if objective is not Objective.TIME and mean is None:
                continue
            score = {"time": t * r, "energy": (mean or 0) * (t * r), "edp": (mean or 0) * (t * r) * (t * r)}[
                objective.value
            ]
            rows.append((score, float("inf") if peak is None else peak, f, b))
    return min(rows, default=None)


@given(
    tables_with_relation(),
    st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.5, 4.0, 9.0])),
    st.sampled_from(Objective),
)
def test_the_choice_is_the_exhaustive_best_with_ties_to_lower_power(pair, cap, objective) -> None:
    lut, relation = pair
    best = brute_force(lut, relation, cap, objective)
    if best is None:
        try:
            selection = select(lut, relation, cap, objective)
        except ValueError as error:
            assert "no usable point" in str(error)  # noqa: PT017
        else:
            assert not selection.feasible
            assert selection.candidates == ()
        return
    selection = select(lut, relation, cap, objective)
    assert selection.feasible
    assert selection.chosen.point == OperatingPoint(best[3], best[2])
    assert [c.point.batch_size for c in selection.candidates] == list(
        dict.fromkeys(c.point.batch_size for c in selection.candidates)
    )


def monotone(cap: float) -> Lut:
    time = ((40.0, 20.0, 10.0), (30.0, 15.0, 7.5))
    power = ((2.0, 3.0, 4.0), (3.0, 4.0, 5.0))
    return Lut("nano", "w", 64, (8, 16), (1, 2, 3), time, power, power)


def test_candidates_are_the_highest_feasible_clock_of_each_batch_as_in_equation_4() -> None:
    selection = select(monotone(4.5), cap_w=4.5)
    assert {c.point for c in selection.candidates} == {OperatingPoint(8, 3), OperatingPoint(16, 2)}
    assert selection.chosen.point == OperatingPoint(8, 3)


def test_power_equal_to_the_cap_is_not_feasible() -> None:
    chosen = select(monotone(4.0), cap_w=4.0, batch_sizes=[16]).chosen
    assert chosen.point == OperatingPoint(16, 1)


def test_with_nothing_feasible_the_lowest_power_point_is_named_and_not_called_feasible() -> None:
    selection = select(monotone(1.0), cap_w=1.0)
    assert not selection.feasible
    assert selection.chosen.point == OperatingPoint(8, 1)


def test_the_relation_vector_weighs_time_and_energy() -> None:
    relation = RelationVector("w", (8, 16), (0.5, 1.0))
    selection = select(monotone(9), relation)
    assert selection.chosen.point == OperatingPoint(8, 3)
    assert selection.chosen.time_s == pytest.approx(5.0)
    assert selection.chosen.energy_j == pytest.approx(20.0)


def test_a_batch_size_that_missed_the_target_is_no_candidate() -> None:
    relation = RelationVector("w", (8, 16), (None, 1.0))
    assert [c.point.batch_size for c in select(monotone(9), relation).candidates] == [16]


def test_a_table_without_a_usable_row_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="profile first"):
        select(Lut.empty("nano", "w", 64, (8,), (1, 2)))


def test_predicted_cells_are_left_out_on_demand() -> None:
    table = monotone(9)
    origin = (("measured", "measured", "predicted"), ("predicted", "predicted", "predicted"))
    table = replace(table, origin=origin)
    assert select(table).chosen.point == OperatingPoint(16, 3)
    assert select(table, measured_only=True).chosen.point == OperatingPoint(8, 2)
    with pytest.raises(ValueError, match="profile first"):
        select(replace(table, origin=(("predicted",) * 3,) * 2), measured_only=True)
