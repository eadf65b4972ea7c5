"""The governor on a board that throttles itself, runs hot, or whose sensor lies; in pseudo-time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench import CLOCKS, Bench, power_w, step_s

from traingov_policies.actions import ClearCondition, PersistLut, RaiseCondition, SetGpuBounds
from traingov_policies.events import GuardChanged, OverCurrentCounted, Sample, Thermals, Zone
from traingov_policies.guarding.options import GuardSettings
from traingov_policies.settings import Settings
from traingov_policies.values import Cap, PolicyName

TOP = CLOCKS[-1]
FIXED = Settings(policy=PolicyName.FIXED, fixed_frequency_hz=TOP)


def run_with_counters(bench: Bench, seconds: float, limit_hz: int) -> Bench:
    """Counters rise whenever the clock is above ``limit_hz``, and are looked at five times a second."""
    for _ in range(round(seconds * 5)):
        bench.run(0.2)
        if bench.hz > limit_hz and bench.jobs:
            bench.feed(OverCurrentCounted(bench.now, (("oc3", 7),)))
    return bench


def conditions(bench: Bench) -> dict[str, str]:
    return bench.governor.snapshot()["conditions"]


def profiled(cap: Cap | None = None) -> Bench:
    first = Bench(cap=cap)
    first.register()
    first.run(90)
    return first


@pytest.mark.parametrize("cap", [None, Cap(20)])
@pytest.mark.parametrize("policy", [PolicyName.JOINT, PolicyName.FIXED])
def test_the_highest_clock_without_over_current_is_found_and_told(policy: PolicyName, cap: Cap | None) -> None:
    lut = profiled().lut
    bench = Bench(replace(FIXED, policy=policy), cap=cap)
    bench.register(lut=lut)
    run_with_counters(bench, 30, CLOCKS[8])
    assert bench.bounds == (CLOCKS[8], CLOCKS[8])
    text = conditions(bench)["over-current-limit"]
    assert text == "the clock is held at 691 MHz at most: above it the over-current counters rose"
    assert "over-current" not in conditions(bench)  # they are flat now
    assert any("counters rose (oc3 by 7)" in said for said in bench.texts("over-current"))


def test_a_higher_clock_is_tried_again_ever_more_rarely() -> None:
    bench = Bench(FIXED)
    bench.register()
    run_with_counters(bench, 600, CLOCKS[8])
    tries = sum("tried again" in said for said in bench.texts("over-current"))
    assert tries == 3  # after 60, 120 and 240 s
    assert bench.bounds[1] == CLOCKS[8]


def test_the_clock_comes_back_when_the_supply_is_better() -> None:
    bench = Bench(FIXED)
    bench.register()
    run_with_counters(bench, 20, CLOCKS[9])
    assert bench.bounds[1] == CLOCKS[9]
    run_with_counters(bench, 200, TOP)
    assert bench.bounds[1] == TOP
    assert conditions(bench) == {}


def test_avoid_over_current_false_leaves_the_clock_and_tells_all_the_same() -> None:
    bench = Bench(replace(FIXED, guard=GuardSettings(avoid_over_current=False)))
    bench.register()
    run_with_counters(bench, 20, CLOCKS[8])
    assert bench.bounds[1] == TOP
    assert "over-current" in conditions(bench)


def test_observe_writes_nothing_for_over_current_either() -> None:
    bench = Bench(Settings(policy=PolicyName.OBSERVE))
    bench.register()
    run_with_counters(bench, 20, CLOCKS[3])
    assert bench.of(SetGpuBounds) == []
    assert set(conditions(bench)) == {"over-current"}


def test_points_that_raise_the_counters_are_not_recorded_and_those_measured_meanwhile_are_measured_anew() -> None:
    bench = Bench()
    bench.register()
    run_with_counters(bench, 200, CLOCKS[8])
    assert bench.governor.snapshot()["state"] == "joint"
    for lut in [a.lut for a in bench.of(PersistLut)]:
        for point in lut.points():
            cell = lut.cell(point)
            if cell.origin == "measured":
                assert point.gpu_frequency_hz <= CLOCKS[8]
                assert cell.time_s == pytest.approx(
                    lut.samples / point.batch_size * step_s(point.batch_size, point.gpu_frequency_hz), rel=0.02
                )
    assert bench.bounds[1] <= CLOCKS[8]


def throttle(bench: Bench, hz: int | None) -> None:
    """Heat takes the clock down to ``hz`` under the bounds, or gives it back."""
    bench.hz = bench.bounds[1] if hz is None else hz
    cooling = () if hz is None else (("gpu-throttle-alert", 1),)
    bench.feed(Thermals(bench.now, (Zone("gpu-thermal", 97.0 if hz else 60.0, 95.0),), cooling))


def run_throttled(bench: Bench, seconds: int, hz: int | None) -> None:
    for _ in range(seconds):
        throttle(bench, hz)
        bench.run(1)


def test_thermal_throttling_is_told_from_a_clock_that_does_not_follow() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(6)
    run_throttled(bench, 5, CLOCKS[3])
    assert set(conditions(bench)) == {"thermal-throttling"}
    run_throttled(bench, 3, None)
    assert conditions(bench) == {}
    bench.hz = CLOCKS[3]
    bench.run(3)
    assert set(conditions(bench)) == {"clock-not-following"}


def test_profiling_waits_while_the_board_throttles_itself_and_gives_up_in_the_end() -> None:
    bench = Bench(Settings(apply_timeout_s=20))
    bench.register()
    bench.run(4)
    cells = len(bench.of(PersistLut))
    for _ in range(40):
        throttle(bench, CLOCKS[1])
        bench.run(1)
    assert len(bench.of(PersistLut)) <= cells + 1
    assert bench.governor.snapshot()["state"] == "fallback"
    assert "throttled itself" in conditions(bench)["not-governed"]


def test_a_clock_that_reads_back_right_is_found_out_by_time_and_power() -> None:
    lut = profiled(Cap(4.5)).lut
    bench = Bench(cap=Cap(4.5))
    bench.register(lut=lut)
    bench.run(15)
    assert conditions(bench) == {}
    chosen = bench.bounds[1]
    low = CLOCKS[CLOCKS.index(chosen) - 1]  # a column that was measured too
    bench.hz = low  # what runs; telemetry goes on showing what was set
    sample = bench._sample

    def lying() -> None:
        bench.power, bench.hz = (lambda b, f: power_w(b, low)), chosen
        sample()
        bench.power, bench.hz = power_w, low

    bench._sample = lying  # type: ignore[method-assign]
    bench.run(10)
    assert "it no longer fits" not in str(conditions(bench))
    assert "both fit 538 MHz" in conditions(bench)["clock-not-following"]


def test_glitches_of_the_sensor_move_nothing() -> None:
    bench = Bench(Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[5]), cap=Cap(4.5))
    bench.register()
    bench.run(5)
    plain, count = bench.power, [0]

    def spiky(batch: int, hz: int) -> float:
        count[0] += 1
        return plain(batch, hz) * (10.0 if count[0] % 50 == 0 else 1.0)

    bench.power = spiky
    bench.run(60)
    assert bench.governor.snapshot()["guard_steps_down"] == 0
    assert bench.bounds[1] == CLOCKS[5]


def test_a_stuck_sensor_is_no_telemetry() -> None:
    bench = Bench(FIXED, cap=Cap(4.5))
    bench.register()
    bench.run(10)
    held = bench.bounds[1]
    assert held > CLOCKS[0]
    bench.watts = lambda: 4.4  # type: ignore[method-assign]
    bench.run(3)
    assert "sensor-stuck" not in conditions(bench)  # nothing has changed: a steady load may read so
    bench.hz = CLOCKS[1]
    bench.run(3)
    assert "sensor-stuck" in conditions(bench)
    bench.run(1)
    assert "telemetry-stale" in conditions(bench)
    assert bench.bounds[1] == CLOCKS[0]  # no table: the lowest clock
    del bench.watts
    bench.run(2)
    assert "sensor-stuck" not in conditions(bench)
    assert bench.bounds[1] > CLOCKS[0]


def hot_run(bench: Bench, seconds: int, steady: dict[int, float], start: float) -> float:
    celsius = largest = start
    for _ in range(seconds):
        bench.feed(Thermals(bench.now, (Zone("gpu-thermal", celsius, 99.0),)))
        bench.run(1.0)
        celsius += (steady[CLOCKS.index(bench.hz)] - celsius) / 40
        largest = max(largest, celsius)
    return largest


@pytest.mark.parametrize("cap", [None, Cap(20)])
def test_a_temperature_ceiling_lowers_the_clock_in_time_and_says_so(cap: Cap | None) -> None:
    settings = replace(FIXED, guard=GuardSettings(temperature_ceiling_celsius=70))
    bench = Bench(settings, cap=cap)
    bench.register()
    largest = hot_run(bench, 400, {k: 40 + 4.0 * k for k in range(12)}, 45)
    assert largest < 70.3
    assert bench.bounds[1] < TOP
    assert "by a temperature ceiling" in conditions(bench)["temperature-ceiling"]


def test_a_ceiling_without_any_temperature_is_told() -> None:
    settings = replace(FIXED, guard=GuardSettings(zone_ceilings_celsius=(("no-such-zone", 70.0),)))
    bench = Bench(settings)
    bench.register()
    bench.run(8)
    assert "none can be read" in conditions(bench)["temperature-unreadable"]


def test_other_settings_of_the_guard_hold_at_once() -> None:
    bench = Bench(FIXED)
    bench.register()
    run_with_counters(bench, 20, CLOCKS[8])
    assert bench.bounds[1] == CLOCKS[8]
    bench.feed(GuardChanged(bench.now, GuardSettings(avoid_over_current=False)))
    bench.run(1)
    assert bench.bounds[1] == TOP
    assert "over-current-limit" not in conditions(bench)


def test_a_condition_is_raised_and_cleared_once() -> None:
    bench = Bench(FIXED)
    bench.register()
    run_with_counters(bench, 30, CLOCKS[8])
    raised = [a.name for a in bench.of(RaiseCondition)]
    cleared = [a.name for a in bench.of(ClearCondition)]
    assert raised.count("over-current") == cleared.count("over-current") == 1


def test_the_guard_and_over_current_together_keep_the_lower_of_both() -> None:
    bench = Bench(FIXED, cap=Cap(4.5))
    bench.register()
    run_with_counters(bench, 60, CLOCKS[3])
    assert bench.bounds[1] == CLOCKS[3]
    assert power_w(32, CLOCKS[3]) < 4.5
    assert all(e.input_power_w is not None for e in bench.of(Sample))


def test_the_status_says_what_holds_the_clock_below_the_target() -> None:
    bench = Bench(FIXED, cap=Cap(5.0))
    bench.register()
    assert bench.governor.snapshot()["gpu_held_by"] is None
    bench.run(30)
    held = bench.governor.snapshot()
    assert held["gpu_limit_hz"] == bench.bounds[1] < TOP == held["gpu_target_hz"]
    assert held["gpu_held_by"] == "the guard"
    hot = run_with_counters(Bench(FIXED), 30, CLOCKS[8])
    assert hot.governor.snapshot()["gpu_held_by"] is None  # no job
    hot.register()
    run_with_counters(hot, 30, CLOCKS[8])
    assert hot.governor.snapshot()["gpu_held_by"] == "a learned ceiling"
