"""Partial re-profiling and rivals: what is measured again, what becomes of the table, when it fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from bench import CLOCKS, power_w, step_s

from traingov_policies.drift.partial import CONFIRMED, FAILED, PARTIAL, RESCALED, Outcome, PartialPlan
from traingov_policies.drift.rivals import Rivals
from traingov_policies.drift.settings import DriftSettings
from traingov_policies.lut import Cell, Lut
from traingov_policies.robust import choose
from traingov_policies.values import OperatingPoint

BATCHES = (4, 8, 16, 32, 64, 128)
SETTINGS = DriftSettings()
PRESENT = OperatingPoint(32, CLOCKS[-1])
Change = Callable[[OperatingPoint], float]


def cell(point: OperatingPoint, time: float = 1.0, power: float = 1.0) -> Cell:
    t = time * step_s(point.batch_size, point.gpu_frequency_hz) * 4096 / point.batch_size
    p = power * power_w(point.batch_size, point.gpu_frequency_hz)
    return Cell(t, p, 0.95 * p, "measured", 0.003 * t, 0.003 * p)


def a_table() -> Lut:
    lut = Lut.empty("nano", "w", 4096, BATCHES, CLOCKS)
    for point in lut.points():
        lut = lut.with_cell(point, cell(point))
    return lut


def best(lut: Lut) -> OperatingPoint | None:
    return choose(lut).selection.chosen.point


def run(
    time: Change, power: Change = lambda p: 1.0, cap_w: float | None = None, lut: Lut | None = None
) -> tuple[PartialPlan, Outcome, list[OperatingPoint]]:
    plan = PartialPlan(lut or a_table(), cap_w, [PRESENT], SETTINGS, best)
    asked = []
    while (point := plan.next_point()) is not None:
        asked.append(point)
        plan.tell(point, cell(point, time(point), power(point)))
    return plan, plan.outcome(), asked


def test_nothing_changed_is_confirmed_after_three_points_and_leaves_the_table() -> None:
    _, outcome, asked = run(lambda p: 1.0)
    assert (outcome.result, len(asked)) == (CONFIRMED, 3)
    assert outcome.lut == a_table()
    assert asked[0] == PRESENT
    assert outcome.text == "the table holds: time +0.0 %, power +0.0 % at 3 points alike"


def test_a_common_factor_scales_every_value_exactly() -> None:
    _, outcome, asked = run(lambda p: 1.12, lambda p: 1.05)
    assert (outcome.result, len(asked)) == (RESCALED, 3)
    for point in outcome.lut.points():
        new, old = outcome.lut.cell(point), a_table().cell(point)
        assert new.time_s == pytest.approx(1.12 * (old.time_s or 0))
        assert new.peak_power_w == pytest.approx(1.05 * (old.peak_power_w or 0))
        assert new.mean_power_w == pytest.approx(1.05 * (old.mean_power_w or 0))
    assert outcome.lut.conditions["drifts"] == 1


def test_three_points_are_spread_over_both_batch_sizes_and_clocks() -> None:
    _, _, asked = run(lambda p: 1.0)
    assert {p.gpu_frequency_hz for p in asked} >= {CLOCKS[0], CLOCKS[-1]}
    assert len({p.batch_size for p in asked}) >= 2


def test_a_change_with_clock_and_batch_size_is_interpolated_within_three_percent_from_ten_of_72_points() -> None:
    def change(p: OperatingPoint) -> float:
        return 1 + 0.3 * (p.gpu_frequency_hz / CLOCKS[-1]) * p.batch_size / (p.batch_size + 32)

    _, outcome, asked = run(change)
    assert outcome.result == PARTIAL
    assert len(asked) == 10
    errors = [
        abs((outcome.lut.cell(p).time_s or 0) / (cell(p, change(p)).time_s or 1) - 1) for p in outcome.lut.points()
    ]
    assert sum(errors) / len(errors) < 0.01
    assert max(errors) < 0.03
    for point in asked:
        assert outcome.lut.cell(point).time_s == pytest.approx(cell(point, change(point)).time_s)


def test_what_does_not_follow_from_its_neighbours_is_found_out_by_verifying() -> None:
    _, outcome, _ = run(lambda p: 1.5 if (CLOCKS.index(p.gpu_frequency_hz) + BATCHES.index(p.batch_size)) % 2 else 0.9)
    assert outcome.result == FAILED
    assert "off what was expected after" in outcome.text


def test_no_point_above_the_cap_is_measured_again() -> None:
    _, _, asked = run(lambda p: 1.0 + 0.2 * (p.gpu_frequency_hz / CLOCKS[-1]), cap_w=4.0)
    assert asked
    assert all(power_w(p.batch_size, p.gpu_frequency_hz) < 4.0 for p in asked)


def test_where_nothing_can_be_measured_it_fails_and_says_so() -> None:
    plan = PartialPlan(a_table(), None, [PRESENT], SETTINGS, best)
    while (point := plan.next_point()) is not None:
        plan.leave_out(point)
    assert plan.outcome().result == FAILED
    assert plan.outcome().text == "no point of the table could be measured again"


def test_a_dropped_batch_size_is_not_asked_for() -> None:
    plan = PartialPlan(a_table(), None, [PRESENT], SETTINGS, best)
    plan.drop_batch(128)
    asked = []
    while (point := plan.next_point()) is not None:
        asked.append(point)
        plan.tell(point, cell(point, 1 + 0.004 * point.batch_size))
    assert all(p.batch_size != 128 for p in asked)


def test_predicted_and_given_up_cells_follow_but_are_never_measured_again() -> None:
    lut, top = a_table(), OperatingPoint(128, CLOCKS[-1])
    lut = lut.with_cell(top, Cell(None, 9.0, None, "infeasible", None, 0.05))
    low = OperatingPoint(4, CLOCKS[0])
    lut = lut.with_cell(low, replace(cell(low), origin="predicted"))
    _, outcome, asked = run(lambda p: 1.2, lambda p: 1.1, lut=lut)
    assert top not in asked
    assert low not in asked
    assert outcome.lut.cell(top).peak_power_w == pytest.approx(9.9)
    assert outcome.lut.cell(top).time_s is None
    assert outcome.lut.cell(low).origin == "predicted"


# -- rivals ----------------------------------------------------------------------------------------------------------


def test_the_nearest_rival_is_probed_first_and_others_have_their_turn() -> None:
    choice = choose(a_table())
    rivals, points = Rivals(SETTINGS), [j.point for j in choice.ranked]
    asked = []
    for k in range(12):
        point = rivals.next(choice.ranked, choice.chosen, points, 400.0 * (k + 1), 0.0)
        assert point is not None
        assert point != choice.chosen.point
        rivals.tell(point, 400.0 * (k + 1), 0.0, 0.01, power=0.0, power_sd=0.01)
        asked.append(point)
    assert asked[0] == OperatingPoint(128, CLOCKS[-2])
    assert len(set(asked)) >= 3


def test_one_probe_never_decides_and_two_that_agree_do() -> None:
    rivals = Rivals(SETTINGS)
    assert not rivals.tell(PRESENT, 1.0, -0.5, 0.005, power=None, power_sd=1.0)
    assert rivals.suspect()
    assert rivals.tell(PRESENT, 2.0, -0.5, 0.005, power=None, power_sd=1.0)


def test_probes_within_two_percent_of_the_table_never_add_up() -> None:
    rivals = Rivals(SETTINGS)
    for k in range(1000):
        assert not rivals.tell(PRESENT, float(k), 0.02 * math.sin(k), 0.01, power=0.02 * math.cos(k), power_sd=0.01)


def test_a_point_whose_steps_take_long_is_not_measured_again_where_others_are_enough() -> None:
    slow = OperatingPoint(128, CLOCKS[0])
    table = a_table()
    crawling = replace(table.cell(slow), time_s=11 * 4096 / 128)  # 11 s a step: two take longer than probe_most_s
    assert slow in run(lambda p: 1.0)[2]
    assert slow not in run(lambda p: 1.0, lut=table.with_cell(slow, crawling))[2]


def test_the_present_point_is_measured_again_however_long_its_steps_take() -> None:
    table = a_table()
    for point in table.points():
        old = table.cell(point)
        table = table.with_cell(point, replace(old, time_s=1000 * (old.time_s or 0.0)))
    plan = PartialPlan(table, None, [PRESENT], SETTINGS, best)
    assert plan.next_point() == PRESENT
