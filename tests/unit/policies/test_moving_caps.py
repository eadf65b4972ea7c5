"""Under a cap that moves: points between measured ones are lived at, and what training shows there is learned."""

from __future__ import annotations

import math

import pytest
from bench import CLOCKS, Bench, step_s

from traingov_policies.actions import AdviseBatch, PersistLut, SetGpuBounds
from traingov_policies.events import Sample, StepsReported
from traingov_policies.following import CapPace, Follower, FollowSettings, Worth
from traingov_policies.lut import Cell, Lut
from traingov_policies.plans import AdaptivePlan, AdaptiveSettings
from traingov_policies.plans.between import between, in_table_terms
from traingov_policies.relation import RelationVector
from traingov_policies.settings import Settings
from traingov_policies.states.living import Living
from traingov_policies.values import Cap, OperatingPoint

TOP = CLOCKS[-1]
BATCHES = (8, 32)
RELATION = RelationVector("w", BATCHES, (0.9, 1.0))
KNOWN = (CLOCKS[1], CLOCKS[5], TOP)


def power_w(batch: int, hz: int) -> float:
    return 1.6 + (7.0 if batch == 32 else 2.4) * (hz / TOP) ** 1.7


def table(known: tuple[int, ...] = KNOWN, factor: float = 1.0) -> Lut:
    """Measured at ``known`` only, its powers ``factor`` times the true ones."""
    lut = Lut.empty("nano", "w", 4096, BATCHES, CLOCKS)
    for point in lut.points():
        if point.gpu_frequency_hz in known:
            time_s = step_s(point.batch_size, point.gpu_frequency_hz) / point.batch_size * 4096
            watts = factor * power_w(point.batch_size, point.gpu_frequency_hz)
            lut = lut.with_cell(point, Cell(time_s, watts, watts, "measured", 0.002 * time_s, 0.005 * watts))
    return lut


def governed(lut: Lut, cap: Cap | None, seconds: float = 30, batches: tuple[int, ...] = (32,)) -> Bench:
    bench = Bench(Settings(sampling_interval_s=0.05), cap=cap, power=power_w)
    bench.register(batches=batches, batch=32, lut=lut, relation=RELATION)
    return bench.run(seconds)


# -- between ---------------------------------------------------------------------------------------------------------


def test_points_between_two_known_powers_are_filled_in_and_others_are_unknown() -> None:
    usable = between(table(known=(CLOCKS[2], CLOCKS[8])))
    for batch in BATCHES:
        origins = [usable.cell(OperatingPoint(batch, hz)).origin for hz in CLOCKS]
        assert origins == [None] * 2 + ["measured"] + ["predicted"] * 5 + ["measured"] + [None] * 3
    for hz in CLOCKS[3:8]:
        cell = usable.cell(OperatingPoint(32, hz))
        assert cell.peak_power_w == pytest.approx(power_w(32, hz), abs=3 * cell.power_std_w)
        assert 0.01 * cell.peak_power_w < cell.power_std_w < 0.25 * cell.peak_power_w
        assert cell.time_s == pytest.approx(step_s(32, hz) / 32 * 4096, abs=3 * cell.time_std_s)


def test_a_point_given_up_above_a_lower_cap_bounds_what_lies_below_it_and_is_usable_below_another() -> None:
    given_up = OperatingPoint(32, CLOCKS[6])
    watts = power_w(32, CLOCKS[6])
    lut = table(known=(CLOCKS[2],)).with_cell(given_up, Cell(None, watts, None, "infeasible", None, 0.01))
    usable = between(lut)
    assert usable.cell(OperatingPoint(32, CLOCKS[5])).origin == "predicted"
    assert usable.cell(given_up).time_s is None
    higher = OperatingPoint(32, CLOCKS[9])
    above = lut.with_cell(higher, Cell(None, power_w(32, CLOCKS[9]), None, "infeasible", None, 0.01))
    cell = between(above).cell(given_up)
    assert cell.origin == "predicted"
    assert cell.time_s is not None
    assert cell.peak_power_w == pytest.approx(watts, rel=0.02)


def test_a_point_that_failed_is_not_filled_in() -> None:
    failed = OperatingPoint(32, CLOCKS[4])
    usable = between(table().with_cell(failed, Cell(None, None, None, "failed")))
    assert usable.cell(failed) == Cell()


def test_a_table_without_any_measurement_stays_empty() -> None:
    blank = Lut.empty("nano", "w", 4096, BATCHES, CLOCKS)
    assert all(between(blank).cell(p) == Cell() for p in blank.points())


def test_what_training_differs_by_is_taken_out_of_what_was_seen_while_training() -> None:
    seen = Cell(100.0, 5.0, 4.0, "measured", 1.0, 0.025)
    cell = in_table_terms(seen, 2.0, (math.log(0.9), math.log(1.1)))
    assert cell.time_s == pytest.approx(200 / 0.9)
    assert cell.time_std_s == pytest.approx(2 / 0.9)
    assert cell.mean_power_w == pytest.approx(4 / 1.1)
    assert (cell.peak_power_w, cell.power_std_w) == (5.0, 0.025)


# -- living there ----------------------------------------------------------------------------------------------------


def test_a_cap_between_two_measured_clocks_is_followed_to_a_clock_between_them_at_once() -> None:
    bench = governed(table(), None)
    assert bench.bounds[1] == TOP
    t = bench.now
    bench.set_cap(Cap(6.5))  # 768 MHz draws 6.73 W, 691 MHz 5.89 W, and 461 MHz, which was measured, 3.77 W
    (first,) = [(when, e.max_hz) for when, e in bench.log if when >= t and isinstance(e, SetGpuBounds)]
    assert first == (t, CLOCKS[8])


def test_what_is_learned_there_leads_on_to_the_best_clock_below_the_cap() -> None:
    bench = governed(table(), None)
    bench.set_cap(Cap(6.0))
    bench.run(0.1)
    assert bench.bounds[1] == CLOCKS[7]  # 691 MHz is not surely below the cap, as far as the model knows
    bench.run(20)
    assert bench.bounds[1] == CLOCKS[8]
    assert bench.governor.snapshot()["guard_steps_down"] == 0


def test_a_point_is_measured_while_the_job_trains_at_it_and_no_time_is_spent_on_it() -> None:
    bench = governed(table(), None)
    measured, t = bench.texts("measured"), bench.now
    bench.set_cap(Cap(6.5))
    bench.run(8)
    text = bench.texts("learned")[0]
    assert text.startswith("batch 32 at 691 MHz: 5.9")
    assert text.endswith("measured while training")
    cell = bench.lut.cell(OperatingPoint(32, CLOCKS[8]))
    assert cell.origin == "measured"
    assert cell.peak_power_w == pytest.approx(power_w(32, CLOCKS[8]), rel=0.01)
    assert cell.time_s == pytest.approx(step_s(32, CLOCKS[8]) / 32 * 4096, rel=0.01)
    assert bench.texts("measured") == measured
    assert not [advice for when, advice in bench.log if when >= t and isinstance(advice, AdviseBatch)]


def test_under_a_cap_that_never_changes_only_measured_points_are_chosen() -> None:
    bench = governed(table(), Cap(6.5), seconds=60)
    assert bench.texts("learned") == []
    assert bench.lut.cell(OperatingPoint(32, bench.bounds[1])).origin == "measured"


def test_a_power_that_the_guard_finds_above_the_tables_is_noted_and_the_next_such_cap_finds_a_lower_clock() -> None:
    bench = governed(table(known=CLOCKS, factor=0.97), None)
    cap = Cap(0.985 * power_w(32, CLOCKS[8]))
    bench.set_cap(cap)
    assert bench.texts("joint")[-1].startswith("batch 32 at 691 MHz")
    bench.run(10)
    assert bench.governor.snapshot()["guard_steps_down"] == 1
    assert bench.texts("learned")[0].startswith(f"batch 32 at 691 MHz: it reached {cap.power_w:g} W, 5.7")
    assert bench.bounds[1] == CLOCKS[7]
    bench.set_cap(None)
    bench.run(10)
    t = bench.now
    bench.set_cap(cap)
    bench.run(10)
    clocks = [e.max_hz for when, e in bench.log if when >= t and isinstance(e, SetGpuBounds)]
    assert clocks == [CLOCKS[7]]
    assert bench.governor.snapshot()["guard_steps_down"] == 1


def test_a_probe_elsewhere_teaches_nothing_of_the_point_that_it_leaves() -> None:
    bench = governed(table(known=CLOCKS), None)
    bench.set_cap(Cap(7.0))
    bench.run(1500)
    assert bench.governor.drift.probes > 0
    assert bench.texts("learned") == []


def test_the_peak_of_a_measured_point_follows_what_training_shows_where_that_is_clearly_lower() -> None:
    bench = governed(table(known=CLOCKS, factor=1.05), None)
    bench.set_cap(Cap(6.5))
    bench.run(50)
    assert bench.texts("learned") == [], "a short look sees less of the largest window than there is"
    bench.run(20)
    point = OperatingPoint(32, CLOCKS[8])
    assert bench.bounds[1] == CLOCKS[8]
    assert bench.texts("learned")[0].startswith("batch 32 at 691 MHz: peak 5.89 W now, 6.19 W in the table")
    assert bench.lut.cell(point).peak_power_w == pytest.approx(1.025 * power_w(32, CLOCKS[8]), rel=0.002)


def test_a_peak_that_is_as_the_table_has_it_is_left_alone() -> None:
    bench = governed(table(known=CLOCKS), None)
    written = len(bench.of(PersistLut))
    for watts in (6.5, 5.5, 6.5):
        bench.set_cap(Cap(watts))
        bench.run(70)
    assert bench.texts("learned") == []
    assert len(bench.of(PersistLut)) == written


@pytest.mark.parametrize(("steps", "learned"), [(2, False), (3, True)])
def test_power_seen_while_steps_of_another_batch_size_may_be_under_way_teaches_nothing(
    steps: int, learned: bool
) -> None:
    bench = governed(table(known=CLOCKS), Cap(20.0))
    ctx, point = bench.governor._ctx, OperatingPoint(32, bench.bounds[1])
    lut, living = table(known=CLOCKS), Living(ctx.jobs["j1"])
    living.at(point)

    def see(after_s: float) -> object:
        ctx.now_s = bench.now + after_s
        return living.see(Sample(ctx.now_s, 21.0, None, TOP, 0.9, 40.0), lut, ctx)

    see(0.0)
    living.see(StepsReported(ctx.now_s, "j1", 32, steps, 32 * steps, 0.1, True), lut, ctx)
    assert [see(0.05 * k) for k in range(1, 60)] == [None] * 59
    ctx.guard.steps_down += 1
    ctx.guard.limit = ctx.index_at_most(TOP) - 1
    found = see(3.0)
    assert (found is not None) is learned
    if learned:
        assert found[0] == point
        assert found[1].peak_power_w == 20.0


# -- how long a cap holds --------------------------------------------------------------------------------------------


def test_a_cap_is_expected_to_hold_as_long_as_caps_did_or_as_it_has() -> None:
    pace = CapPace()
    assert not pace.moves
    assert pace.expected_s(1e6) == math.inf
    pace.changed(1000.0)
    assert pace.moves
    assert pace.expected_s(1001.0) == math.inf, "one change says nothing of the next"
    for t in (1060.0, 1120.0, 1121.0, 1180.0):
        pace.changed(t)
    assert pace.expected_s(1180.0) == 59.5
    assert pace.expected_s(1180.0 + 500) == 500


def test_missing_points_are_looked_at_after_the_wait_and_again_when_asked_to() -> None:
    follower = Follower(FollowSettings(hold_s=5))
    follower.missing(10.0, True)
    assert follower.due_s == 15.0
    follower.missing(12.0, True)
    assert follower.due_s == 15.0, "it goes on"
    follower.looked(30.0)
    assert follower.due_s == 30.0
    follower.missing(20.0, False)
    assert follower.due_s == math.inf


def test_missing_points_that_come_and_go_do_not_lengthen_the_wait_for_another_batch_size() -> None:
    follower = Follower(FollowSettings(hold_s=5))
    for t in range(0, 60, 10):
        follower.missing(t, True)
        follower.wish(t, None)
        follower.missing(t + 5, False)
    follower.wish(60.0, 8)
    assert follower.due_s == 65.0


def test_a_gain_that_is_small_for_a_while_does_not_withdraw_a_wish() -> None:
    follower = Follower(FollowSettings(hold_s=5))
    assert not follower.wishes
    follower.wish(0.0, 8, Worth(True, 0.1, 3.0, ""))
    assert follower.wishes
    follower.wish(10.0, 8, Worth(False, 0.01, 3.0, ""))
    follower.wish(20.0, 8, Worth(True, 0.1, 3.0, ""))
    assert follower.due_s == pytest.approx(20 + (3.0 - 1.0 - 0.1) / 0.1)


def test_a_cap_told_again_unchanged_is_no_change() -> None:
    bench = governed(table(), Cap(6.5))
    for _ in range(5):
        bench.set_cap(Cap(6.5))
        bench.run(2)
    assert bench.texts("learned") == []
    assert bench.lut.cell(OperatingPoint(32, bench.bounds[1])).origin == "measured"


def test_a_point_worth_measuring_for_an_hour_is_not_for_a_cap_that_holds_a_second() -> None:
    lut = table(known=(CLOCKS[5],))
    assert AdaptivePlan(lut, 6.5, RELATION).next_point() is not None
    assert (
        AdaptivePlan(lut, 6.5, RELATION, settings=AdaptiveSettings(horizon_s=1.0, neighbour_chance=1.0)).next_point()
        is None
    )


def test_the_table_remembers_how_much_was_measured_of_the_last_caps_only() -> None:
    lut = table(known=(CLOCKS[5],))
    for k in range(100):
        plan = AdaptivePlan(lut, 6.5 + 0.001 * k, RELATION)
        plan.tell(OperatingPoint(32, CLOCKS[5]), lut.cell(OperatingPoint(32, CLOCKS[5])))
        lut = plan.lut
    assert len(lut.conditions["adaptive"]) == 32
    assert AdaptivePlan(lut, 6.5 + 0.001 * 99, RELATION).told == 1
    assert AdaptivePlan(lut, 6.5, RELATION).told == 0
