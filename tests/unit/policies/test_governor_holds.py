"""The cap holds and the clock comes back when everything around the governor goes wrong, and goes on going wrong."""

from __future__ import annotations

import pytest
from bench import CLOCKS, Bench, FakeJob, power_w
from test_governor import TREE

from traingov_policies.actions import AdviseBatch, RestoreGpuBounds, SetGpuBounds
from traingov_policies.events import BatchFailed, JobRegistered, KnobReadBack, PolicyChanged, Sample, StepsReported
from traingov_policies.governor import Governor
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap, Features, Objective, PolicyName

TOP = CLOCKS[-1]
FIXED = Settings(policy=PolicyName.FIXED, fixed_frequency_hz=TOP)


def run_with_looks(bench: Bench, seconds: int) -> Bench:
    """As the service: the bounds are looked at once a second."""
    for _ in range(seconds):
        bench.run(1.0)
        bench.feed(KnobReadBack(bench.now, None, None, *bench.bounds))
    return bench


def seconds_above(bench: Bench, since: float, cap_w: float) -> float:
    samples = [(t, e.input_power_w) for t, e in bench.log if isinstance(e, Sample) and t >= since]
    return sum(0.01 for _, watts in samples if watts is not None and watts >= cap_w)


def test_writes_refused_for_some_seconds_cost_no_workload_its_governing() -> None:
    bench = Bench(cap=Cap(4.5), refuse="EBUSY")
    bench.register()
    run_with_looks(bench, 4)
    bench.refuse = None
    run_with_looks(bench, 150)
    assert bench.governor.snapshot()["state"] == "joint"
    assert bench.watts() < 4.5
    # and the table that was kept does not bind the next job to what failed then
    again = Bench(cap=Cap(4.5))
    again.register(lut=bench.lut)
    run_with_looks(again, 60)
    assert again.governor.snapshot()["state"] == "joint"


def test_a_write_refused_once_is_written_again_when_it_can_be() -> None:
    bench = Bench(FIXED, cap=Cap(20), refuse="EBUSY")
    bench.register()
    run_with_looks(bench, 5)
    bench.refuse = None
    run_with_looks(bench, 20)
    assert bench.bounds == (TOP, TOP)


def test_a_job_that_can_use_no_batch_size_is_still_kept_under_the_cap() -> None:
    bench = Bench(cap=Cap(4.5))
    bench.register()
    bench.run(3)
    since = bench.now
    for batch in (32, 16, 8):
        bench.feed(BatchFailed(bench.now, "j1", batch))
    run_with_looks(bench, 60)
    assert bench.governor.snapshot()["state"] == "fallback"
    assert bench.watts() < 4.5
    assert seconds_above(bench, since + 3, 4.5) < 6
    bench.feed(PolicyChanged(bench.now, PolicyName.JOINT, Objective.TIME))
    bench.feed(PolicyChanged(bench.now, PolicyName.ENERGY, Objective.TIME))
    bench.end()
    assert bench.governor.snapshot()["state"] == "idle"


def test_a_size_that_failed_is_not_advised_again_in_any_state() -> None:
    for settings in (Settings(), FIXED, Settings(policy=PolicyName.OBSERVE), Settings(policy=PolicyName.ENERGY)):
        bench = Bench(settings, cap=Cap(4.5))
        bench.register()
        bench.run(2)
        bench.feed(BatchFailed(bench.now, "j1", 32))
        since = bench.now
        bench.set_cap(Cap(5.0))
        bench.feed(PolicyChanged(bench.now, PolicyName.FIXED, Objective.TIME))
        bench.register("j2")
        bench.run(5)
        bench.end("j2")
        bench.feed(PolicyChanged(bench.now, PolicyName.JOINT, Objective.TIME))
        bench.run(30)
        later = [a for t, a in bench.log if isinstance(a, AdviseBatch) and t >= since and a.job == "j1"]
        assert 32 not in {a.batch_size for a in later}, settings.policy


def test_a_second_job_that_comes_and_goes_all_the_time_does_not_switch_the_guard_off() -> None:
    bench = Bench(FIXED, cap=Cap(4.5))
    bench.register()
    bench.run(10)
    since = bench.now
    for k in range(60):
        bench.register(f"k{k}")
        bench.run(0.35)
        bench.end(f"k{k}")
        bench.run(0.35)
    assert seconds_above(bench, since, 4.5) < 5
    assert bench.watts() < 4.5


def test_a_cap_that_flickers_does_not_switch_the_guard_off() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(2)
    since = bench.now
    for k in range(400):
        bench.set_cap(Cap(4.5 + 0.01 * (k % 2)))
        bench.run(0.05)
    assert bench.watts() < 4.5
    assert seconds_above(bench, since, 4.51) < 6  # two large steps, a dead time and a part of a window each
    assert bench.governor.snapshot()["guard_steps_down"] >= 2


def test_a_respected_foreign_writer_does_not_break_a_lowered_cap_and_is_forgotten_in_time() -> None:
    bench = Bench(Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[5]), cap=Cap(20))
    bench.register()
    bench.run(3)
    for _ in range(4):
        bench.bounds, bench.hz = (CLOCKS[0], TOP), TOP
        bench.feed(KnobReadBack(bench.now, None, None, *bench.bounds))
        bench.run(1)
    assert "left so" in bench.governor.snapshot()["conditions"]["foreign-writer"]
    bench.set_cap(Cap(3.5))
    run_with_looks(bench, 30)
    assert bench.watts() < 3.5
    run_with_looks(bench, 70)
    assert "foreign-writer" not in bench.governor.snapshot()["conditions"]
    bench.set_cap(None)
    run_with_looks(bench, 5)
    assert bench.bounds[1] == CLOCKS[5]


def test_after_foreign_writes_and_an_invalid_point_the_clock_is_still_given_back() -> None:
    bench = Bench(cap=Cap(4.5), switch_delay_s=1e9)
    bench.register()
    for _ in range(6):
        bench.run(1.0)
        bench.feed(KnobReadBack(bench.now, None, None, CLOCKS[0], TOP))
    bench.run(20)
    assert bench.of(SetGpuBounds)
    bench.end()
    writes = [entry for _, entry in bench.log if isinstance(entry, (SetGpuBounds, RestoreGpuBounds))]
    assert isinstance(writes[-1], RestoreGpuBounds)


def test_the_energy_policy_keeps_the_cap_while_it_waits_for_a_first_step() -> None:
    bench = Bench(Settings(policy=PolicyName.ENERGY, tree=TREE), cap=Cap(4.5))
    bench.jobs["idle"] = FakeJob("idle", 32)  # draws power, reports nothing
    bench.feed(JobRegistered(bench.now, "idle", "w", (32,), 32, features=Features(layers=12)))
    since = bench.now
    run_with_looks(bench, 40)
    assert bench.watts() < 4.5
    assert seconds_above(bench, since, 4.5) < 16


@pytest.mark.parametrize("cap", [None, Cap(20)])
def test_a_lower_clock_of_one_policy_does_not_bind_the_next(cap: Cap | None) -> None:
    bench = Bench(Settings(policy=PolicyName.OBSERVE, fixed_frequency_hz=CLOCKS[7]), cap=cap)
    bench.register()
    low = Bench(Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[2]), cap=cap)
    low.register()
    low.run(3)
    assert low.bounds[1] == CLOCKS[2]
    low.governor._ctx.guard.aim(7)  # as a search does when it tries a higher clock
    assert low.governor._ctx.guard.limit >= 7
    bench.feed(PolicyChanged(bench.now, PolicyName.FIXED, Objective.TIME))
    bench.run(1)
    assert bench.bounds[1] == CLOCKS[7]


def test_a_second_job_under_a_cap_begins_at_the_present_clock() -> None:
    bench = Bench(Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[3]), cap=Cap(4.5))
    bench.register()
    bench.run(5)
    bench.register("j2")
    bench.run(5)
    assert bench.bounds[1] == CLOCKS[3]


def test_a_node_that_cannot_be_read_is_told_and_its_return_too() -> None:
    bench = Bench(FIXED, cap=Cap(20))
    bench.register()
    bench.run(2)
    bench.feed(KnobReadBack(bench.now, None, None, None, None))
    assert "gpu-node-unreadable" in bench.governor.snapshot()["conditions"]
    run_with_looks(bench, 1)
    assert "gpu-node-unreadable" not in bench.governor.snapshot()["conditions"]


def test_two_jobs_on_a_board_without_clocks_are_no_crash() -> None:
    governor = Governor(Board("x", "y", "z", ()), Settings(), Cap(1.0))
    for name in ("a", "b"):
        governor.handle(JobRegistered(1.0, name, "w", (8,), 8))
    for k in range(300):
        governor.handle(Sample(1.0 + k / 100, 9.0))
    assert governor.snapshot()["state"] == "sharing"


def test_an_event_from_the_past_does_not_set_the_governors_clock_back() -> None:
    bench = Bench(Settings(policy=PolicyName.ENERGY, tree=TREE))
    bench.register(features=Features(layers=12))
    bench.feed(StepsReported(0.001, "j1", 32, 1, 32, 0.001))
    bench.run(1)
    assert bench.texts("tree") == []


def test_a_clock_that_does_not_hold_outside_profiling_is_told() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(6)
    assert bench.governor.snapshot()["conditions"] == {}
    bench.hz = CLOCKS[3]  # throttled: the bounds still say otherwise
    bench.run(3)
    assert "clock-not-following" in bench.governor.snapshot()["conditions"]
    bench.hz = TOP
    bench.run(1)
    assert bench.governor.snapshot()["conditions"] == {}


@pytest.mark.parametrize("cap", [None, Cap(20)])
def test_failing_without_a_cap_gives_the_knob_back(cap: Cap | None) -> None:
    bench = Bench(Settings(policy=PolicyName.ENERGY), cap=cap)  # no tree: the policy cannot govern
    bench.register()
    bench.run(20)
    assert bench.governor.snapshot()["state"] == "fallback"
    assert power_w(32, TOP) < 20
    assert (bench.of(SetGpuBounds) == []) == (cap is None)
