"""The staircase measures at most 2B + F − 2 points and finds the full table's candidates on monotone power."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traingov_policies.lut import Cell, Lut
from traingov_policies.plans import FullPlan, Plan, StaircasePlan, thinned
from traingov_policies.select import select
from traingov_policies.values import OperatingPoint

NANO = tuple(76_800_000 * k for k in range(1, 13))


def run(plan: Plan, power: list[list[float]]) -> int:
    measured = 0
    while (point := plan.next_point()) is not None:
        i, j = plan.lut.index(point)
        watts = power[i][j]
        cap = getattr(plan, "cap_w", None)
        if cap is not None and watts >= cap:
            plan.tell(point, Cell(None, watts, None, "infeasible"))
        else:
            plan.tell(point, Cell(100.0 / (j + 1) / (i + 1) ** 0.3, watts, watts, "measured"))
        measured += 1
        assert measured <= 1000
    return measured


@st.composite
def monotone_power(draw: st.DrawFn) -> list[list[float]]:
    b, f = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    rows = [sorted(draw(st.lists(st.floats(0, 5), min_size=f, max_size=f))) for _ in range(b)]
    total: list[list[float]] = []
    for row in rows:
        total.append([p + (total[-1][j] if total else 1.0) for j, p in enumerate(row)])
    return total


def blank(power: list[list[float]]) -> Lut:
    return Lut.empty("nano", "w", 4096, [2**k for k in range(len(power))], NANO[: len(power[0])])


@given(monotone_power(), st.floats(0.5, 25))
def test_on_monotone_power_the_staircase_finds_the_full_tables_candidates(power: list[list[float]], cap: float) -> None:
    full, stairs = FullPlan(blank(power)), StaircasePlan(blank(power), cap)
    run(full, power)
    measured = run(stairs, power)
    assert measured <= 2 * len(power) + len(power[0]) - 2 or len(power) * len(power[0]) == 1
    complete, partial = select(full.lut, cap_w=cap), select(stairs.lut, cap_w=cap)
    assert partial.candidates == complete.candidates
    assert partial.feasible == complete.feasible


@given(
    st.integers(1, 6).flatmap(
        lambda b: st.integers(2, 12).flatmap(
            lambda f: st.lists(st.lists(st.floats(1, 10), min_size=f, max_size=f), min_size=b, max_size=b)
        )
    ),
    st.floats(1, 10),
)
@example([[9.0, 9.0, 9.0], [9.0, 9.0, 9.0], [1.0, 1.0, 1.0]], 5.0)
def test_the_bound_holds_on_any_power_and_what_is_chosen_was_measured_below_the_cap(
    power: list[list[float]], cap: float
) -> None:
    plan = StaircasePlan(blank(power), cap)
    assert run(plan, power) <= 2 * len(power) + len(power[0]) - 2
    selection = select(plan.lut, cap_w=cap)
    if selection.feasible:
        i, j = plan.lut.index(selection.chosen.point)
        assert power[i][j] < cap


@given(monotone_power(), st.floats(0.5, 25), st.integers(0, 20))
def test_a_plan_made_from_a_half_filled_table_goes_on_where_it_stopped(power, cap, stop) -> None:
    whole = StaircasePlan(blank(power), cap)
    run(whole, power)
    first = StaircasePlan(blank(power), cap)
    for _ in range(stop):
        point = first.next_point()
        if point is None:
            break
        first.tell(point, whole.lut.cell(point))
    second = StaircasePlan(first.lut, cap)
    run(second, power)
    assert select(second.lut, cap_w=cap) == select(whole.lut, cap_w=cap)


def test_without_a_cap_only_the_highest_clock_of_each_batch_is_measured() -> None:
    power = [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    plan = StaircasePlan(blank(power), None)
    assert run(plan, power) == 2
    assert [plan.lut.cell(OperatingPoint(b, NANO[2])).origin for b in (1, 2)] == ["measured"] * 2


def test_a_point_given_up_under_a_low_cap_is_measured_again_under_a_higher_one() -> None:
    power = [[1.0, 2.0, 3.0, 4.0]]
    low = StaircasePlan(blank(power), 2.5)
    run(low, power)
    assert low.lut.cell(OperatingPoint(1, NANO[2])).time_s is None
    high = StaircasePlan(low.lut, 3.5)
    assert high.next_point() == OperatingPoint(1, NANO[2])
    run(high, power)
    assert select(high.lut, cap_w=3.5).chosen.point == OperatingPoint(1, NANO[2])


def test_a_batch_that_does_not_fit_leaves_the_plan() -> None:
    plan = StaircasePlan(blank([[1.0, 2.0], [2.0, 3.0]]), 2.5)
    assert plan.next_point() == OperatingPoint(2, NANO[0])
    plan.drop_batch(2)
    assert plan.next_point() == OperatingPoint(1, NANO[0])
    with pytest.raises(ValueError, match="no batch size"):
        plan.drop_batch(1)


def test_thinning_the_nanos_twelve_clocks_gives_the_six_of_the_papers_figures() -> None:
    assert [round(f / 1e6, 1) for f in thinned(NANO, 8)] == [153.6, 307.2, 460.8, 614.4, 768.0, 921.6]
    assert thinned(NANO, 12) == NANO
