"""Jobs that idle: the pin is released and taken again, nothing of a pause is measured, and nothing thrashes."""

from __future__ import annotations

import dataclasses

import pytest
from bench import CLOCKS, Bench, power_w, step_s

from traingov_policies.actions import AdviseBatch, JobIdle, RestoreGpuBounds, SetGpuBounds
from traingov_policies.events import JobPaused, JobResumed, StepsReported
from traingov_policies.idling import Activity, IdleSettings
from traingov_policies.ledger import Ledger
from traingov_policies.settings import ProfileSettings, Settings
from traingov_policies.values import Cap, PolicyName

HZ = CLOCKS[5]
FIXED = Settings(policy=PolicyName.FIXED, fixed_frequency_hz=HZ)
OPEN = (CLOCKS[0], CLOCKS[-1])


def governed(settings: Settings = FIXED, **more: object) -> Bench:
    bench = Bench(settings, **more)  # type: ignore[arg-type]
    bench.register()
    bench.run(3)
    return bench


def pins(bench: Bench) -> int:
    return len([a for a in bench.of(SetGpuBounds) if a.min_hz == a.max_hz])


def test_a_pause_that_is_told_releases_the_pin_within_two_seconds_and_steps_take_it_again_at_once() -> None:
    bench = governed()
    assert bench.bounds == (HZ, HZ)
    bench.stop()
    bench.feed(JobPaused(bench.now, "j1", "evaluation"))
    bench.run(2)
    assert bench.bounds == OPEN
    (said,) = bench.texts("idle")
    assert said == "paused (evaluation) and the GPU has no load: the pin is given back"
    assert bench.governor.snapshot()["jobs"][0]["paused"] == "evaluation"
    bench.feed(JobResumed(bench.now, "j1"))
    bench.run(0.1)
    assert bench.bounds == (HZ, HZ)
    assert bench.texts("idle-over") == ["steps are reported again: governed again"]


def test_a_job_that_says_nothing_is_found_idle_after_five_seconds_without_steps_and_load() -> None:
    bench = governed()
    bench.stop()
    bench.run(4.5)
    assert bench.bounds == (HZ, HZ)
    bench.run(1)
    assert bench.bounds == OPEN
    bench.go_on()
    bench.run(0.2)
    assert bench.bounds == (HZ, HZ)


def test_gpu_load_without_steps_keeps_the_pin_and_load_that_comes_back_takes_it() -> None:
    bench = governed()
    bench.stop(load=0.8)
    bench.feed(JobPaused(bench.now, "j1", "evaluation"))
    bench.run(30)
    assert bench.bounds == (HZ, HZ)
    bench.load_without_steps = 0.0
    bench.run(2)
    assert bench.bounds == OPEN
    bench.load_without_steps = 0.8
    bench.run(0.5)
    assert bench.bounds == (HZ, HZ)
    assert bench.texts("idle-over") == ["the GPU has load again: governed again"]


def test_where_no_utilization_is_shown_only_what_the_job_says_releases_the_pin() -> None:
    bench = governed()
    bench.stop()
    bench.load_without_steps = None
    bench.run(30)
    assert bench.bounds == (HZ, HZ)
    bench.feed(JobPaused(bench.now, "j1", "checkpoint"))
    bench.run(3)
    assert bench.bounds == OPEN


def test_with_a_cap_the_safe_upper_bound_stays_and_an_idle_board_teaches_the_guard_nothing() -> None:
    bench = governed(dataclasses.replace(FIXED, fixed_frequency_hz=CLOCKS[-1]), cap=Cap(4.5))
    bench.run(60)
    bench.stop()
    bench.run(1)
    low, high = bench.bounds
    assert low == high < CLOCKS[-1]
    bench.run(6)
    assert bench.bounds == (CLOCKS[0], high)
    bench.run(600)
    assert bench.bounds == (CLOCKS[0], high)
    bench.go_on()
    bench.run(1)
    assert bench.bounds == (high, high)
    bench.run(600)  # and it climbs again where there is room: the target is what it was
    assert bench.governor.snapshot()["gpu_target_hz"] == CLOCKS[-1]


def test_pauses_that_follow_each_other_release_the_pin_at_most_every_ten_seconds() -> None:
    bench = governed()
    begin = bench.now
    while bench.now < begin + 100:
        bench.stop()
        bench.feed(JobPaused(bench.now, "j1", "p"))
        bench.run(1.6)
        bench.go_on()
        bench.feed(JobResumed(bench.now, "j1"))
        bench.run(0.4)
    assert 5 <= len(bench.of(RestoreGpuBounds)) <= 10
    assert bench.bounds == (HZ, HZ)


def test_a_job_of_twenty_second_steps_is_not_idle_after_five_seconds_and_a_larger_batch_may_take_longer() -> None:
    activity, settings = Activity(), IdleSettings()
    assert activity.due_s(settings, 8, HZ) == 60
    activity.steps(StepsReported(0.0, "j", 8, 1, 8, 20.0), HZ)
    assert activity.due_s(settings, 8, HZ) == pytest.approx(80)
    assert activity.due_s(settings, 32, HZ // 2) == pytest.approx(4 * 20 * 4 * 2)
    activity.steps(StepsReported(0.0, "j", 8, 1, 8, 0.1), HZ)
    assert activity.due_s(settings, 8, HZ) == 5


def test_the_window_that_a_pause_lies_in_is_no_usual_step() -> None:
    activity, settings = Activity(), IdleSettings()
    activity.steps(StepsReported(0.0, "j", 8, 1, 8, 0.1), HZ)
    activity.quiet = True
    activity.steps(StepsReported(100.0, "j", 8, 1, 8, 100.0), HZ)
    assert activity.due_s(settings, 8, HZ) == 5


def test_a_window_that_a_change_of_the_clock_lies_in_is_no_usual_step() -> None:
    activity, settings = Activity(), IdleSettings()
    activity.steps(StepsReported(10.0, "j", 8, 1, 8, 2.0), HZ)
    activity.steps(StepsReported(12.0, "j", 8, 1, 8, 0.5), CLOCKS[0], since_s=11.8)  # most of it at the old clock
    assert activity.due_s(settings, 8, CLOCKS[0]) == pytest.approx(4 * 2.0 * HZ / CLOCKS[0])
    activity.steps(StepsReported(24.0, "j", 8, 1, 8, 12.0), CLOCKS[0], since_s=11.8)
    assert activity.due_s(settings, 8, CLOCKS[0]) == pytest.approx(4 * 12.0)


def test_a_clock_so_low_that_each_step_takes_longer_than_a_pause_is_no_stall() -> None:
    policy = Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[-1])
    bench = governed(policy, step_s=lambda batch, hz: 0.5 * (CLOCKS[-1] / hz) ** 1.0)
    bench.run(10.1)
    governor = bench.governor
    for low in (CLOCKS[0], CLOCKS[-1], CLOCKS[0]):  # 6 s a step at the lowest clock
        governor._ctx.target_hz = low  # as a state that measures points has it
        bench.run(40)
    assert bench.hz == CLOCKS[0]
    assert not bench.of(JobIdle)
    assert not governor._ctx.idling.stalled


def test_switched_off_nothing_is_released() -> None:
    bench = governed(dataclasses.replace(FIXED, idle=IdleSettings(enabled=False)))
    bench.stop()
    bench.feed(JobPaused(bench.now, "j1", "evaluation"))
    bench.run(60)
    assert bench.bounds == (HZ, HZ)
    assert not bench.of(JobIdle)


@pytest.mark.parametrize("load", [0.0, 0.9])
@pytest.mark.parametrize("told", [True, False])
def test_a_pause_in_mid_profile_leaves_the_same_table_as_none(load: float, told: bool) -> None:
    quick = Settings(profile=ProfileSettings(max_frequencies=4))
    whole, paused = Bench(quick), Bench(quick)
    for bench in (whole, paused):
        bench.register()
        bench.run(5.4)  # in the middle of a point
    paused.stop(load=load)
    if told:
        paused.feed(JobPaused(paused.now, "j1", "evaluation"))
    paused.run(90)
    paused.go_on()
    for bench in (whole, paused):
        bench.run(120)
        assert bench.governor.snapshot()["state"] == "joint"
    assert not paused.texts("measurement-invalid")
    for point in whole.lut.points():
        ours, without = paused.lut.cell(point), whole.lut.cell(point)
        assert ours.origin == without.origin
        assert ours.time_s == pytest.approx(without.time_s, rel=0.02)
        assert ours.peak_power_w == pytest.approx(without.peak_power_w, rel=0.02)


def test_a_pause_before_the_job_follows_an_advice_does_not_cost_it_the_batch_size() -> None:
    bench = Bench(Settings(profile=ProfileSettings(max_frequencies=3)))
    bench.register(batch=8)
    bench.run(1)
    bench.stop()
    bench.feed(JobPaused(bench.now, "j1", "compiling"))
    bench.run(300)
    assert not bench.texts("batch-dropped")
    bench.go_on()
    bench.run(120)
    assert bench.of(AdviseBatch)
    assert bench.governor.snapshot()["state"] == "joint"


def test_a_job_that_never_reports_a_step_is_found_out_in_the_end() -> None:
    bench = Bench(Settings(profile=ProfileSettings(max_frequencies=3), sampling_interval_s=0.1))
    bench.register()
    bench.stop(load=0.9)
    bench.run(3000)
    assert "not-governed" in bench.governor.snapshot()["conditions"]


def test_a_pin_released_when_the_last_job_ends_does_not_bind_the_next() -> None:
    bench = governed()
    bench.stop()
    bench.run(10)
    assert bench.bounds == OPEN
    bench.end()
    bench.run(2)
    bench.register("j2")
    bench.run(1)
    assert bench.bounds == (HZ, HZ)


def test_the_idle_span_is_kept_apart_in_the_account_from_the_last_step_on() -> None:
    bench = Bench(FIXED)
    ledger = Ledger(0.01, None)
    handle = bench.governor.handle

    def both(event):  # type: ignore[no-untyped-def]
        ledger.see(event)
        answer = handle(event)
        for action in answer:
            ledger.act(action)
        return answer

    bench.governor.handle = both  # type: ignore[method-assign]
    bench.register()
    bench.run(20)
    bench.stop()
    bench.run(40)
    bench.go_on()
    bench.run(20)
    summary = ledger.summary("j1", bench.now)
    assert summary.idle_s == pytest.approx(40, abs=0.3)
    assert summary.idle_input_energy_j == pytest.approx(1.5 * 40, rel=0.02)
    assert summary.idle_compute_energy_j == pytest.approx(0.75 * 40, rel=0.02)
    assert summary.input_energy_j == pytest.approx(ledger.input.energy_j, rel=1e-12)
    assert summary.elapsed_s == pytest.approx(80)


def evaluating(settings: Settings, *, every_s: float, for_s: float, seconds: float) -> Bench:
    """A job that stops and says so for ``for_s`` after each ``every_s`` of training; the GPU is loaded meanwhile."""
    bench = Bench(settings)
    bench.register()
    end_s = bench.now + seconds
    while bench.now < end_s:
        bench.run(every_s)
        bench.stop(load=0.8)
        bench.feed(JobPaused(bench.now, "j1", "evaluation"))
        bench.run(for_s)
        bench.go_on()
        bench.feed(JobResumed(bench.now, "j1"))
    return bench


@pytest.mark.parametrize(("every_s", "for_s"), [(1.2, 0.02), (1.2, 0.3), (3.0, 1.0)])
def test_a_job_that_evaluates_every_second_is_profiled_and_what_it_draws_meanwhile_is_left_out(
    every_s: float, for_s: float
) -> None:
    bench = evaluating(Settings(profile=ProfileSettings(max_points=6)), every_s=every_s, for_s=for_s, seconds=60)
    assert bench.texts("joint")
    table = bench.lut
    measured = [p for p in table.points() if table.cell(p).origin == "measured"]
    assert len(measured) >= 3
    for point in measured:
        cell = table.cell(point)
        batch, hz = point.batch_size, point.gpu_frequency_hz
        assert cell.time_s == pytest.approx(step_s(batch, hz) / batch * table.samples, rel=0.01)
        assert cell.mean_power_w == pytest.approx(power_w(batch, hz), rel=0.01)
        assert cell.peak_power_w == pytest.approx(power_w(batch, hz), rel=0.01)


def test_a_single_long_pause_begins_the_point_anew() -> None:
    bench = Bench(Settings())
    bench.register()
    bench.run(1.5)
    assert bench.texts("measured") == []
    bench.stop(load=0.8)
    bench.feed(JobPaused(bench.now, "j1", "evaluation"))
    bench.run(3)
    bench.go_on()
    bench.feed(JobResumed(bench.now, "j1"))
    bench.run(1.5)
    assert bench.texts("measured") == []
    bench.run(2)
    assert len(bench.texts("measured")) == 1
