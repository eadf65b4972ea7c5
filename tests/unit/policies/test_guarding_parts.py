"""The guard's parts: which readings are believed, how large a step is, what learned ceilings do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.events import Zone
from traingov_policies.guard import Guard
from traingov_policies.guarding.ceilings import LearnedCeiling, OverCurrent, Temperature
from traingov_policies.guarding.options import GuardSettings
from traingov_policies.guarding.readings import HOLD_S, LOOKED_AT, MOST, ReadingFilter, StuckWatch
from traingov_policies.guarding.slope import PowerSlope
from traingov_policies.values import Cap

MHZ = tuple(k * 100_000_000 for k in range(1, 11))


def believed(values: list[float | None], step_s: float = 0.02) -> list[float]:
    found = ReadingFilter()
    out: list[float] = []
    for k, value in enumerate(values):
        out += [w for _, w in found.take(10 + step_s * k, value)]
    return out


def wiggling(n: int, level: float = 5.0) -> list[float]:
    return [level + 0.01 * (k % 7) for k in range(n)]


@pytest.mark.parametrize("glitch", [0.01, 0.5, 15.0, 50.0])
def test_a_single_absurd_reading_is_left_out(glitch: float) -> None:
    assert believed([*wiggling(20), glitch, *wiggling(20)]) == [*wiggling(20), *wiggling(20)]


def test_a_step_up_counts_in_full_one_reading_late() -> None:
    values = [*wiggling(20), 15.0, 15.1, 15.2]
    found = ReadingFilter()
    taken = [found.take(10 + 0.02 * k, v) for k, v in enumerate(values)]
    assert taken[20] == ()
    assert taken[21] == ((pytest.approx(10.40), 15.0), (pytest.approx(10.42), 15.1))


def test_a_doubtful_value_that_the_sensor_goes_on_showing_counts_from_its_own_time() -> None:
    found = ReadingFilter()
    for k, value in enumerate(wiggling(20)):
        found.take(10 + 0.02 * k, value)
    late = [found.take(10.4 + 0.01 * k, 15.0) for k in range(20)]
    first = next(k for k, pairs in enumerate(late) if pairs)
    assert 0.01 * first == pytest.approx(HOLD_S, abs=0.011)
    assert late[first][0] == (10.4, 15.0)


def test_a_power_that_jumps_to_and_fro_all_the_time_is_no_glitch() -> None:
    values = [15.0 + 0.01 * k if k % 3 == 0 else 5.0 + 0.01 * k for k in range(300)]
    kept = believed(values)
    high = sum(1 for v in values if v > 14)
    assert sum(1 for v in kept if v > 14) >= high - 2 * MOST


@given(st.lists(st.sampled_from([1.0, 4.0, 5.0, 6.0, 12.0, 60.0]), min_size=50, max_size=400))
def test_no_more_than_the_stated_number_of_readings_is_hidden(values: list[float]) -> None:
    distinct = [v + 1e-6 * k for k, v in enumerate(values)]
    for begin in range(0, len(distinct) - LOOKED_AT, LOOKED_AT):
        stretch = set(distinct[begin : begin + LOOKED_AT])
        kept = set(believed(distinct)) | {distinct[-1]}  # the last may still be held back
        assert len(stretch - kept) <= 2 * MOST


def test_missing_readings_are_missing() -> None:
    assert believed([None, 5.0, None, 5.1]) == [5.0, 5.1]


def test_a_sensor_that_stands_still_while_the_clock_changes_is_stuck_and_the_next_value_ends_it() -> None:
    watch = StuckWatch(2.0)
    stuck = [watch.see(0.01 * k, 5.0, 900 if k < 100 else 500, 0.9) for k in range(400)]
    assert stuck.index(True) == 300
    assert not watch.see(4.01, 5.04, 500, 0.9)


def test_a_steady_reading_of_a_steady_load_is_no_stuck_sensor() -> None:
    watch = StuckWatch(2.0)
    assert not any(watch.see(0.01 * k, 5.0, 900, 0.9 + 0.05 * (k % 2)) for k in range(100_000))


def test_few_slow_samples_are_no_stuck_sensor() -> None:
    watch = StuckWatch(2.0)
    assert not any(watch.see(float(k), 5.0, 900 if k < 2 else 500, 0.9) for k in range(15))


def test_without_any_knowledge_the_cube_of_the_clock_bounds_the_step() -> None:
    slope = PowerSlope(MHZ)
    assert slope.enough(9, 1.01) == 8
    assert slope.enough(9, 1.5) == 7  # 800 MHz would be 0.512; 900 MHz 0.729 > 1/1.5
    assert slope.enough(9, 1.3) == 8
    assert slope.enough(9, 100.0) == 4  # never more than half the way at once


def test_a_measured_table_says_how_far_to_step() -> None:
    slope = PowerSlope(MHZ)
    slope.table = lambda: [2.0 + 0.5 * k for k in range(10)]  # 6.5 W at the top
    assert slope.enough(9, 1.2) == 6  # 5.0/6.5 < 1/1.2 < 5.5/6.5
    assert slope.rise(6) == pytest.approx(5.5 / 5.0)


def feed(guard: Guard, t_s: float, seconds: float, power: float) -> tuple[float, list]:
    steps = []
    for _ in range(round(seconds * 100)):
        t_s += 0.01
        step = guard.sample(t_s, power)
        if step is not None:
            steps.append((t_s, step))
    return t_s, steps


def test_a_large_excess_is_answered_by_one_large_step() -> None:
    guard = Guard(GuardSettings(dead_time_s=0.5), MHZ)
    guard.set_cap(Cap(5.0))
    guard.aim(9)
    _, steps = feed(guard, 0.0, 1.0, 9.0)
    assert [s.index for _, s in steps] == [7]  # (8/10)**3 * 9 W is 4.6 W


def test_a_step_that_was_not_enough_is_followed_by_another_soon_after_the_dead_time() -> None:
    guard = Guard(GuardSettings(dead_time_s=0.5), MHZ)
    guard.set_cap(Cap(5.0))
    guard.aim(9)
    _, steps = feed(guard, 0.0, 3.0, 5.5)
    times = [t for t, _ in steps]
    assert times[1] - times[0] == pytest.approx(0.5 + 0.2, abs=0.03)


def test_a_climb_that_failed_is_not_tried_again_while_power_says_it_would_fail() -> None:
    guard = Guard(GuardSettings(dead_time_s=0.5), MHZ)
    guard.set_cap(Cap(5.0))
    guard.aim(9)
    t_s, ups = 0.0, 0
    for _ in range(4000):  # 4.6 W at 800 MHz, 5.2 W at 900 MHz
        index = min(guard.limit, guard.target)
        guard.running = index
        t_s, steps = feed(guard, t_s, 0.1, {9: 6.0, 8: 5.2, 7: 4.6}.get(index, 4.0))
        ups += sum(step.up for _, step in steps)
    assert guard.limit == 7
    assert ups == 1


def test_it_climbs_once_the_load_has_become_lighter() -> None:
    guard = Guard(GuardSettings(dead_time_s=0.5), MHZ)
    guard.set_cap(Cap(5.0))
    guard.aim(9)
    t_s = 0.0
    for k in range(900):
        index = min(guard.limit, guard.target)
        guard.running = index
        lighter = 0.7 if k > 300 else 1.0
        t_s, _ = feed(guard, t_s, 0.1, lighter * {9: 6.0, 8: 5.2, 7: 4.6}.get(index, 4.0))
    assert guard.limit == 9


def test_a_learned_ceiling_doubles_its_patience_each_time_a_try_fails() -> None:
    ceiling = LearnedCeiling(9, first_s=60, most_s=200, dead_s=1)
    assert ceiling.trouble(0, 9)
    assert ceiling.index == 8
    assert not ceiling.quiet(59, 9)
    assert ceiling.quiet(60, 9)
    assert ceiling.trouble(62, 9)
    assert ceiling.patience_s == 120
    assert not ceiling.quiet(180, 9)
    assert ceiling.quiet(182, 9)
    assert ceiling.trouble(183, 9)
    assert ceiling.patience_s == 200


def test_a_ceiling_that_holds_nothing_back_is_not_tried_higher() -> None:
    ceiling = LearnedCeiling(9, first_s=60, most_s=200, dead_s=1)
    ceiling.trouble(0, 9)
    assert not ceiling.quiet(1000, 8)
    assert ceiling.index == 8


def test_counters_that_rise_within_the_dead_time_are_the_old_clocks() -> None:
    over = OverCurrent(GuardSettings(dead_time_s=1.0), 9)
    assert over.counted(10.0, [("oc3", 40)], 9)
    assert not over.counted(10.2, [("oc3", 3)], 8)
    assert over.index == 8
    assert over.counted(11.5, [("oc3", 1)], 8)
    assert over.index == 7
    assert over.events == {"oc3": 44}


def test_each_batch_size_has_its_own_over_current_limit() -> None:
    over = OverCurrent(GuardSettings(dead_time_s=1.0), 9)
    over.batch(32)
    over.counted(10.0, [("oc3", 1)], 9)
    over.counted(20.0, [("oc3", 1)], 8)
    assert over.index == 7
    over.batch(64)
    assert over.index == 7  # unknown: what is known of another batch size is the better guess
    over.counted(30.0, [("oc3", 1)], 7)
    over.batch(32)
    assert over.index == 7
    over.batch(64)
    assert over.index == 6


def test_over_current_is_only_counted_where_it_is_not_to_be_avoided() -> None:
    over = OverCurrent(GuardSettings(avoid_over_current=False), 9)
    assert not over.counted(10.0, [("oc2", 5)], 9)
    assert over.index == 9
    assert over.events == {"oc2": 5}
    assert over.recent(12.0)


def heating(temperature: Temperature, seconds: int, steady_of: dict[int, float], start: float) -> tuple[float, float]:
    """A first-order heat sink of 40 s; the largest temperature and the last one."""
    celsius = largest = start
    for t in range(seconds):
        celsius += (steady_of[temperature.index] - celsius) / 40
        largest = max(largest, celsius)
        zones = (Zone("gpu-thermal", celsius), Zone("cpu-thermal", None))
        temperature.see(float(t), temperature.margin(zones, None), temperature.index, 9)
    return largest, celsius


def test_the_clock_is_lowered_in_time_to_stay_below_the_ceiling() -> None:
    temperature = Temperature(GuardSettings(temperature_ceiling_celsius=75), 9)
    largest, last = heating(temperature, 600, {k: 45 + 4.5 * k for k in range(10)}, 40)
    assert largest < 75.2
    assert last > 66  # and not by running cold
    assert temperature.steps_down >= 3


def test_a_ceiling_of_a_zone_counts_for_that_zone() -> None:
    temperature = Temperature(GuardSettings(zone_ceilings_celsius=(("gpu-thermal", 60.0),)), 9)
    zones = (Zone("gpu-thermal", 55.0), Zone("cpu-thermal", 90.0))
    assert temperature.margin(zones, 90.0) == 5.0
    assert temperature.margin((), 90.0) is None


def test_an_unreadable_temperature_moves_nothing() -> None:
    temperature = Temperature(GuardSettings(temperature_ceiling_celsius=75), 9)
    for t in range(100):
        assert temperature.see(float(t), None, 9, 9) is None
    assert temperature.index == 9
