"""More than one job: tables are void, the guard keeps the board's cap, and afterwards everything goes on."""

from __future__ import annotations

import dataclasses

import pytest
from bench import CLOCKS, Bench
from test_governor_energy import TREE

from traingov_policies.actions import AdviseBatch, PersistCurve, PersistLut, SetGpuBounds
from traingov_policies.events import JobPaused, SweepRequested
from traingov_policies.settings import ProfileSettings, Settings
from traingov_policies.values import Cap, PolicyName

QUICK = Settings(profile=ProfileSettings(max_frequencies=4))
FIXED = Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[5])
OPEN = (CLOCKS[0], CLOCKS[-1])


def tables(bench: Bench) -> int:
    return len(bench.of(PersistLut))


def test_the_second_jobs_end_brings_the_first_back_to_its_point_without_measuring_anything() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(60)
    point, measured = bench.bounds, tables(bench)
    bench.register("j2")
    bench.run(20)
    assert bench.governor.snapshot()["state"] == "sharing"
    assert bench.bounds == OPEN
    bench.end("j2")
    bench.run(1)
    assert (bench.governor.snapshot()["state"], bench.bounds) == ("joint", point)
    assert tables(bench) == measured


def test_a_second_job_in_mid_profile_costs_no_point_that_was_measured_and_adds_none() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(6)
    before = [p for p in bench.lut.points() if bench.lut.cell(p).origin == "measured"]
    texts = len(bench.texts("measured"))
    assert len(before) == texts >= 1
    bench.register("j2")
    bench.run(30)
    assert len(bench.texts("measured")) == texts
    bench.end("j2")
    bench.run(90)
    assert bench.governor.snapshot()["state"] == "joint"
    again = [text.partition(":")[0] for text in bench.texts("measured")[texts:]]
    assert not set(again) & {str(point) for point in before}


def test_three_jobs_of_one_workload_and_the_last_one_left_is_governed() -> None:
    bench = Bench(QUICK, cap=Cap(4.5))
    for name in ("w", "w-2", "w-3"):
        bench.register(name)
        bench.run(5)
    assert bench.governor.snapshot()["doing"].startswith("3 jobs share the GPU: tables are void")
    bench.run(30)
    assert bench.watts() < 4.5
    bench.end("w")
    bench.run(2)
    assert bench.governor.snapshot()["state"] == "sharing"
    bench.end("w-3")
    bench.run(90)
    assert bench.governor.snapshot()["state"] == "joint"
    assert bench.watts() < 4.5


def test_a_cap_that_changes_while_jobs_share_holds_for_the_board() -> None:
    bench = Bench(QUICK, cap=Cap(6.0))
    bench.register()
    bench.register("j2")
    bench.run(60)
    bench.set_cap(Cap(3.5))
    bench.run(60)
    assert bench.watts() < 3.5
    bench.set_cap(None)
    bench.run(1)
    assert bench.bounds == OPEN


def test_jobs_that_share_keep_their_batch_sizes() -> None:
    bench = Bench(QUICK)
    bench.register(batch=8)
    bench.run(0.005)
    bench.register("j2", batch=16)
    last = {advice.job: advice for advice in bench.of(AdviseBatch)}
    assert [(last[j].batch_size, last[j].phase) for j in ("j1", "j2")] == [(8, "hold"), (16, "hold")]


def test_policy_fixed_holds_its_clock_for_several_jobs_and_observe_writes_nothing_under_a_cap() -> None:
    fixed = Bench(FIXED)
    fixed.register()
    fixed.register("j2")
    fixed.run(2)
    assert fixed.bounds == (CLOCKS[5], CLOCKS[5])
    observed = Bench(Settings(policy=PolicyName.OBSERVE), cap=Cap(4.5))
    observed.register()
    observed.register("j2")
    observed.run(30)
    assert not observed.of(SetGpuBounds)
    assert observed.governor.snapshot()["state"] == "observing"


def test_a_second_job_in_mid_search_does_not_make_the_energy_policy_measure_its_reference_again() -> None:
    bench = Bench(dataclasses.replace(Settings(policy=PolicyName.ENERGY), tree=TREE))
    bench.register()
    bench.run(60)
    assert bench.of(PersistCurve)
    bench.register("j2")
    bench.run(10)
    bench.end("j2")
    bench.run(1)
    assert bench.governor.snapshot()["state"] == "searching"


def test_a_second_job_in_mid_sweep_makes_it_wait_and_then_go_on() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(2)
    bench.feed(SweepRequested(bench.now, "j1", CLOCKS[:3], duration_s=5.0))
    bench.run(12)
    done = len(bench.governor.sweep.rows)
    assert done >= 1
    bench.register("j2")
    bench.run(20)
    assert bench.governor.sweep.state == "waiting"
    assert len(bench.governor.sweep.rows) == done
    bench.end("j2")
    bench.run(60)
    assert bench.governor.sweep.state == "finished"
    assert len(bench.governor.sweep.rows) == 4


@pytest.mark.parametrize("told", [True, False])
def test_one_paused_job_of_two_keeps_the_board_shared_and_both_paused_release_it(told: bool) -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.register("j2")
    bench.run(2)
    for name in ("j1", "j2"):
        bench.stop(name)
        if told:
            bench.feed(JobPaused(bench.now, name, "evaluation"))
        if name == "j1":
            bench.run(10)
            assert bench.bounds == (CLOCKS[5], CLOCKS[5])
    bench.run(7)
    assert bench.bounds == OPEN
    bench.go_on("j2")
    bench.run(0.5)
    assert bench.bounds == (CLOCKS[5], CLOCKS[5])
