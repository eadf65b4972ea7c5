"""The adaptive plan measures few points, chooses only measured ones, and goes on from a half-filled table."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.lut import Cell, Lut
from traingov_policies.plans import AdaptivePlan, AdaptiveSettings, cautious
from traingov_policies.plans.adaptive import averaged
from traingov_policies.relation import RelationVector
from traingov_policies.robust import choose
from traingov_policies.select import select
from traingov_policies.values import Objective, OperatingPoint

NANO = tuple(76_800_000 * k for k in range(1, 13))
SIX = NANO[1::2]
BATCHES = (4, 8, 16, 32, 64, 128)
R = RelationVector("w", BATCHES, tuple((1 + b / 32) / 5 for b in BATCHES))


def time_s(b: int, hz: int) -> float:
    """Host, launch, and a device part that the clock does not speed up wholly: not what the model fits."""
    return 4096 * (0.02 / b + 0.004 + math.hypot(0.003, 5.5e6 / hz * (1 + 3 / b)))


def peak_w(b: int, hz: int) -> float:
    f = hz / NANO[-1]
    volts = max(0.75, 0.55 + 0.45 * f)
    return 2.6 + (2.4 + 0.5 * math.log2(b)) * f * volts**2


def blank(batches: tuple[int, ...] = BATCHES, clocks: tuple[int, ...] = SIX) -> Lut:
    return Lut.empty("nano", "w", 4096, batches, clocks)


def measured(point: OperatingPoint, cap_w: float | None, noise: float = 0.0, rng: random.Random | None = None) -> Cell:
    b, f = point.batch_size, point.gpu_frequency_hz
    wobble = (lambda: 1 + noise * rng.gauss(0, 1)) if rng is not None else (lambda: 1.0)
    watts, seconds = peak_w(b, f) * wobble(), time_s(b, f) * wobble()
    if cap_w is not None and watts >= cap_w * (1 + 2 * noise):
        return Cell(None, watts, None, "infeasible", None, noise * watts or None)
    return Cell(seconds, watts, 0.97 * watts, "measured", noise * seconds or None, noise * watts or None)


def run(plan: AdaptivePlan, noise: float = 0.0, seed: int = 0, stop: int = 99) -> list[OperatingPoint]:
    order, rng = [], random.Random(seed)
    while len(order) < stop and (point := plan.next_point()) is not None:
        assert plan.next_point() == point  # asking changes nothing
        plan.tell(point, measured(point, plan.cap_w, noise, rng))
        order.append(point)
        assert len(order) <= 12
    return order


def complete(lut: Lut) -> Lut:
    for point in lut.points():
        lut = lut.with_cell(point, measured(point, None))
    return lut


@pytest.mark.parametrize("clocks", [SIX, NANO])
@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("relation", [None, R])
def test_few_points_give_the_full_tables_choice(clocks, objective, relation) -> None:
    for cap in (3.6, 4.1, 4.5, 5.2, 6.3, 7.5, None):
        plan = AdaptivePlan(blank(clocks=clocks), cap, relation, objective)
        points = run(plan)
        assert len(points) <= 12
        truth = select(complete(blank(clocks=clocks)), relation, cap, objective).chosen
        found = select(plan.lut, relation, cap, objective, measured_only=True).chosen
        assert found.point == plan.best
        assert found.score(objective) <= truth.score(objective) * 1.002


def test_it_begins_low_in_power_and_never_goes_far_above_the_cap() -> None:
    for cap in (4.0, 4.5, 5.0, 6.0, 7.0):
        points = run(AdaptivePlan(blank(clocks=NANO), cap, R))
        watts = [peak_w(p.batch_size, p.gpu_frequency_hz) for p in points]
        assert watts[0] < cap
        assert max(watts) < 1.15 * cap


def test_without_a_cap_and_for_time_it_stays_at_the_highest_clock() -> None:
    points = run(AdaptivePlan(blank(), None, R))
    assert len(points) <= len(BATCHES) + 1
    assert sum(p.gpu_frequency_hz == SIX[-1] for p in points) >= len(points) - 1


powers = st.integers(1, 5).flatmap(
    lambda b: st.integers(1, 8).flatmap(
        lambda f: st.tuples(
            st.lists(st.lists(st.floats(1, 10), min_size=f, max_size=f), min_size=b, max_size=b),
            st.lists(st.lists(st.floats(1, 1000), min_size=f, max_size=f), min_size=b, max_size=b),
        )
    )
)


@settings(max_examples=60, deadline=None)
@given(powers, st.one_of(st.none(), st.floats(1, 10)), st.sampled_from(list(Objective)), st.floats(0, 0.3))
def test_on_any_surface_the_bound_holds_and_only_what_was_measured_is_chosen(surface, cap, objective, failing) -> None:
    power, time = surface
    batches = tuple(3 * k + 1 for k in range(len(power)))
    plan = AdaptivePlan(
        Lut.empty("b", "w", 100, batches, NANO[: len(power[0])]), cap, None, objective,
        settings=AdaptiveSettings(max_points=7),
    )  # fmt: skip
    rng, told = random.Random(3), {}
    while (point := plan.next_point()) is not None:
        i, j = plan.lut.index(point)
        if rng.random() < failing:
            told[point] = Cell(None, None, None, "failed")
        elif cap is not None and power[i][j] >= cap:
            told[point] = Cell(None, power[i][j], None, "infeasible")
        else:
            told[point] = Cell(time[i][j], power[i][j], power[i][j], "measured")
        plan.tell(point, told[point])
        assert len(told) <= 7
    assert plan.next_point() is None
    assert plan.best is None or told[plan.best].origin == "measured"
    for p in plan.lut.points():
        cell = plan.lut.cell(p)
        assert cell.origin in (None, "predicted") if p not in told else cell == told[p]
        if cell.origin == "predicted":
            assert cell.time_std_s is not None
            assert cell.power_std_w is not None
    if plan.best is not None:
        chosen = select(plan.lut, None, cap, objective, measured_only=True).chosen
        assert chosen.score(objective) == select(plan.lut, None, cap, objective, batch_sizes=batches,
                                                 measured_only=True).chosen.score(objective)  # fmt: skip
        assert told[chosen.point].origin == "measured"


@given(st.integers(0, 12))
@settings(max_examples=13, deadline=None)
def test_a_plan_made_from_a_half_filled_table_goes_on_where_it_stopped(stop: int) -> None:
    whole = AdaptivePlan(blank(), 5.0, R)
    points = run(whole)
    first = AdaptivePlan(blank(), 5.0, R)
    run(first, stop=stop)
    stored = Lut.from_json(first.lut.to_json())
    second = AdaptivePlan(stored, 5.0, R)
    more = run(second)
    assert not set(more) & set(points[:stop])
    assert min(stop, len(points)) + len(more) <= 12
    assert second.best == whole.best
    assert AdaptivePlan(Lut.from_json(second.lut.to_json()), 5.0, R).next_point() is None


def test_a_higher_cap_begins_a_new_count_and_measures_what_is_missing() -> None:
    low = AdaptivePlan(blank(), 4.2, R)
    run(low)
    high = AdaptivePlan(low.lut, 6.5, R)
    assert high.at_most() > 0
    again = run(high)
    assert 1 <= len(again) <= 8  # what the lower cap taught is not measured anew
    assert high.best == select(complete(blank()), R, 6.5).chosen.point


def test_a_batch_size_without_a_relation_value_is_never_measured() -> None:
    r = RelationVector("w", BATCHES, (0.3, 0.35, None, 0.6, 0.8, 1.0))
    assert all(p.batch_size != 16 for p in run(AdaptivePlan(blank(), 5.0, r)))


def test_a_batch_that_does_not_fit_leaves_the_plan_and_the_count_stays() -> None:
    plan = AdaptivePlan(blank(), 5.0)
    run(plan, stop=3)
    plan.drop_batch(128)
    assert 128 not in plan.lut.batch_sizes
    assert plan.told == 3
    run(plan)
    assert plan.best is not None
    lone = AdaptivePlan(blank(batches=(8,)), 5.0)
    with pytest.raises(ValueError, match="no batch size"):
        lone.drop_batch(8)


@pytest.mark.parametrize(
    ("batches", "clocks"), [((8,), SIX), (BATCHES, SIX[-1:]), ((8,), SIX[:1]), ((5, 11, 23), NANO)]
)
def test_one_batch_size_one_clock_or_odd_batch_sizes_are_no_trouble(batches, clocks) -> None:
    for cap in (None, 5.0, 20.0, 1.0):
        plan = AdaptivePlan(blank(batches, clocks), cap)
        run(plan)
        truth = select(complete(blank(batches, clocks)), None, cap)
        assert (plan.best is not None) == truth.feasible
        if truth.feasible:
            assert plan.best == truth.chosen.point


def test_a_cap_that_nothing_keeps_is_given_up_after_a_few_points() -> None:
    plan = AdaptivePlan(blank(), 1.0)
    assert 1 <= len(run(plan)) <= 6
    assert plan.best is None


@pytest.mark.parametrize("position", [0, 1, 2, 3, 4])
def test_a_lone_odd_cell_costs_at_most_itself(position: int) -> None:
    """One measurement that is off by a third (a stall, say) must not spoil the rest of the table."""
    plan, odd, timed = AdaptivePlan(blank(), 5.0, R), None, 0
    while (point := plan.next_point()) is not None:
        cell = measured(point, 5.0)
        if cell.time_s is not None:
            if timed == position:
                odd, cell = point, Cell(1.33 * cell.time_s, cell.peak_power_w, cell.mean_power_w, "measured")
            timed += 1
        plan.tell(point, cell)
    assert odd is not None
    best = min(c.time_s for c in select(complete(blank()), R, 5.0).candidates if c.point != odd)
    found = plan.best
    assert time_s(found.batch_size, found.gpu_frequency_hz) * R.of(found.batch_size) <= 1.05 * best


def test_with_noise_the_choice_stays_below_the_cap_as_often_as_stated() -> None:
    violations = chosen = 0
    losses = []
    for seed in range(60):
        cap = random.Random(seed).uniform(3.6, 7.5)
        plan = AdaptivePlan(blank(), cap, R)
        points = run(plan, noise=0.01, seed=seed)
        assert len(points) <= 12
        choice = choose(plan.lut, R, cap, measured_only=True).selection
        if choice.feasible:
            p = choice.chosen.point
            chosen += 1
            violations += peak_w(p.batch_size, p.gpu_frequency_hz) >= cap
            best = select(complete(blank()), R, cap).chosen
            losses.append(time_s(p.batch_size, p.gpu_frequency_hz) * R.of(p.batch_size) / best.time_s - 1)
    assert chosen >= 57
    assert violations <= 0.05 * chosen
    assert sum(losses) / len(losses) < 0.02


def test_a_prior_table_saves_points_and_a_wrong_one_is_found_out() -> None:
    vendor = complete(blank())
    good = AdaptivePlan(blank(), 5.0, R, prior=vendor)
    with_prior, without = run(good), run(AdaptivePlan(blank(), 5.0, R))
    assert len(with_prior) < len(without)
    truth = select(complete(blank()), R, 5.0).chosen.point
    assert good.best == truth
    wrong = vendor
    for p in vendor.points():  # says that power falls with the clock and large batches are slow
        wrong = wrong.with_cell(
            p, Cell(1000.0 * p.batch_size, 9.0 - peak_w(p.batch_size, p.gpu_frequency_hz), 3.0, "measured")
        )
    misled = AdaptivePlan(blank(), 5.0, R, prior=wrong)
    run(misled)
    found = misled.best
    assert found is not None
    assert peak_w(found.batch_size, found.gpu_frequency_hz) < 5.0
    assert misled.lut.cell(found).origin == "measured"


def test_nothing_of_a_prior_table_enters_the_table_before_something_was_measured() -> None:
    plan = AdaptivePlan(blank(), 5.0, R, prior=complete(blank()))
    assert all(plan.lut.cell(p).origin is None for p in plan.lut.points())


def test_repeated_measurements_are_averaged_by_their_certainty() -> None:
    old, new = Cell(10.0, 5.0, 4.0, "measured", 0.1, 0.04), Cell(11.0, 5.2, 4.2, "measured", 0.1, 0.02)
    both = averaged(old, new)
    assert both.time_s == pytest.approx(10.5)
    assert both.peak_power_w == pytest.approx(5.16)
    assert both.power_std_w == pytest.approx(1 / math.sqrt(1 / 0.04**2 + 1 / 0.02**2))
    assert averaged(Cell(), new) == new
    assert averaged(old, Cell(None, None, None, "failed")) == old
    assert averaged(old, Cell(None, 5.2, None, "infeasible", None, 0.04)).time_s == 10.0


def test_a_safe_clock_is_looked_up_with_the_predictions_uncertainty_added() -> None:
    plan = AdaptivePlan(blank(), 5.0, R)
    run(plan)
    for p in plan.lut.points():
        cell, careful = plan.lut.cell(p), cautious(plan.lut).cell(p)
        if cell.origin == "predicted":
            assert careful.peak_power_w == pytest.approx(cell.peak_power_w + 2 * cell.power_std_w)
        else:
            assert careful == cell
