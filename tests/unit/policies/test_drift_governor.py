"""The governor with a table that ages: on the pseudo-time bench, where times and powers are exact."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench import Bench, power_w, step_s

from traingov_policies.actions import ClearCondition, PersistLut, RaiseCondition
from traingov_policies.drift.settings import DriftSettings
from traingov_policies.events import OverCurrentCounted
from traingov_policies.lut import Cell, Lut
from traingov_policies.relation import RelationVector
from traingov_policies.settings import Settings
from traingov_policies.tree import Tree
from traingov_policies.values import Cap, Features, OperatingPoint, PolicyName

BATCHES = (8, 16, 32)


def table(bench: Bench, measured_at: str = "2026-01-01T00:00:00Z") -> Lut:
    """The bench's own table: exact times and powers, with the errors that a measurement states."""
    lut = Lut.empty("nano", "w", 4096, BATCHES, bench.clocks)
    for point in lut.points():
        t = step_s(point.batch_size, point.gpu_frequency_hz) * 4096 / point.batch_size
        p = power_w(point.batch_size, point.gpu_frequency_hz)
        lut = lut.with_cell(point, Cell(t, p, p, "measured", 0.002 * t, 0.002 * p))
    return replace(lut, measured_at=measured_at)


def trained(
    cap: Cap | None = None, drift: DriftSettings | None = None, seconds: float = 200.0, **more: object
) -> Bench:
    """A bench whose job has trained at its chosen point for a while."""
    bench = Bench(Settings(sampling_interval_s=0.05, drift=drift or DriftSettings(probe_budget=0.0)), cap=cap, **more)  # type: ignore[arg-type]
    bench.register(lut=table(bench))
    return bench.run(seconds)


def last_table(bench: Bench) -> Lut:
    return [a for a in bench.of(PersistLut) if a.replaces][-1].lut


def test_a_table_that_holds_is_confirmed_once_and_at_no_cost() -> None:
    bench = trained()
    assert bench.texts("drift") == []
    assert len(bench.texts("table-confirmed")) == 1
    assert "the table of 2026-01-01T00:00:00Z holds: time +0.0 %" in bench.texts("table-confirmed")[0]
    assert bench.governor.drift.probes == 0


def test_a_uniform_slowdown_scales_the_table_and_leaves_the_choice() -> None:
    bench = trained()
    before = bench.governor.snapshot()["doing"]
    bench.step_s = lambda b, hz: 1.10 * step_s(b, hz)
    bench.run(120)
    assert bench.governor.snapshot()["doing"] == before
    assert bench.governor.drift.revalidations["rescaled"] == 1
    assert bench.governor.drift.reprofiles == 0
    new, old = last_table(bench), table(bench)
    for point in old.points():
        assert new.cell(point).time_s == pytest.approx(1.10 * (old.cell(point).time_s or 0), rel=0.01)
        assert new.cell(point).peak_power_w == pytest.approx(old.cell(point).peak_power_w, rel=0.01)


def test_a_slowdown_is_noticed_within_a_minute_and_told_as_a_condition_while_it_is_looked_into() -> None:
    bench = trained()
    begun = bench.now
    bench.step_s = lambda b, hz: 1.05 * step_s(b, hz)
    bench.run(120)
    raised = [t for t, a in bench.log if isinstance(a, RaiseCondition) and a.name == "drift"]
    cleared = [t for t, a in bench.log if isinstance(a, ClearCondition) and a.name == "drift"]
    assert len(raised) == len(cleared) == 1
    assert 5 <= raised[0] - begun <= 60
    assert "step time is 5.0 % above the table's" in bench.texts("drift")[0]


def test_a_change_of_one_percent_is_none() -> None:
    bench = trained()
    bench.step_s = lambda b, hz: 1.01 * step_s(b, hz)
    bench.run(600)
    assert bench.texts("drift") == []


def test_large_batches_that_became_slow_are_found_by_measuring_a_few_points_and_left() -> None:
    def contended(b: int, hz: int) -> float:
        return step_s(b, hz) * (1.6 if b == 32 else 1.0)

    bench = trained()
    assert "batch 32" in bench.governor.snapshot()["doing"]
    bench.step_s = contended
    bench.run(200)
    assert bench.governor.drift.revalidations["partial"] + bench.governor.drift.reprofiles == 1
    assert "batch 16" in bench.governor.snapshot()["doing"]


def test_power_that_rose_scales_power_and_leads_to_a_point_that_is_below_the_cap_again() -> None:
    hotter = 1.08
    bench = trained(cap=Cap(5.0))
    chosen = bench.governor.snapshot()["doing"]
    bench.power = lambda b, hz: hotter * power_w(b, hz)
    bench.run(200)
    assert bench.governor.drift.revalidations["rescaled"] == 1
    assert bench.governor.snapshot()["doing"] != chosen
    new, old = last_table(bench), table(bench)
    top = OperatingPoint(8, bench.clocks[-1])
    assert new.cell(top).peak_power_w == pytest.approx(hotter * (old.cell(top).peak_power_w or 0), rel=0.01)
    assert bench.watts() < 5.0


def test_a_partial_table_measures_no_more_than_its_share_of_the_points() -> None:
    bench = trained()
    bench.step_s = lambda b, hz: step_s(b, hz) + 0.1e-3 * b
    bench.run(200)
    done = bench.texts("measured")
    assert bench.governor.drift.revalidations["partial"] == 1
    assert len(done) <= 5  # of 36
    new = last_table(bench)
    errors = [
        abs((new.cell(p).time_s or 0) * p.batch_size / 4096 / bench.step_s(p.batch_size, p.gpu_frequency_hz) - 1)
        for p in new.points()
    ]
    assert sum(errors) / len(errors) < 0.03


def test_a_change_that_a_few_points_do_not_explain_is_followed_by_a_full_profile() -> None:
    def wild(b: int, hz: int) -> float:
        k = round(hz / 76.8e6)
        return step_s(b, hz) * (1.4 if (k + b.bit_length()) % 2 else 0.9)

    bench = trained()
    bench.step_s = wild
    bench.run(60)
    assert bench.governor.drift.revalidations["failed"] == 1
    assert bench.governor.drift.reprofiles == 1
    replaced = [a for a in bench.of(PersistLut) if a.replaces]
    assert replaced[-1].lut.cell(OperatingPoint(8, bench.clocks[0])) == Cell()
    bench.run(200)
    assert bench.governor.snapshot()["state"] == "joint"


def test_a_drift_that_hits_other_points_only_is_found_by_probes_within_their_budget() -> None:
    relation = RelationVector("w", BATCHES, (0.85, 0.9, 1.0))
    bench = Bench(Settings(sampling_interval_s=0.05, drift=DriftSettings(probe_budget=0.02)))
    bench.register(lut=table(bench), relation=relation)
    bench.run(300)
    at = bench.governor.snapshot()["doing"]
    chosen_hz = bench.hz
    assert bench.texts("drift") == []
    bench.step_s = lambda b, hz: step_s(b, hz) * (1.0 if hz == chosen_hz else 0.8)
    bench.run(3000)
    counts = bench.governor.drift
    assert counts.alarms == {"point": 0, "probe": 1}, (at, counts)
    assert counts.probe_s <= 0.02 * 3300 + 12
    assert "is no longer as in the table: time -2" in bench.texts("drift")[0]


def test_without_drift_nothing_is_probed_watched_or_measured_again() -> None:
    bench = trained(drift=DriftSettings(enabled=False))
    bench.step_s = lambda b, hz: 1.3 * step_s(b, hz)
    bench.run(900)
    assert bench.texts("drift") == []
    assert bench.governor.drift.probes == 0


def test_a_probe_never_goes_above_a_cap() -> None:
    bench = Bench(Settings(sampling_interval_s=0.05, drift=DriftSettings(probe_budget=0.05)), cap=Cap(4.5))
    bench.register(lut=table(bench))
    worst = 0.0
    for _ in range(300):
        bench.run(2)
        worst = max(worst, bench.watts())
    assert bench.governor.drift.probes > 5
    assert worst < 4.5


def test_a_cap_that_changes_while_points_are_measured_again_holds_and_the_work_goes_on() -> None:
    bench = trained()
    bench.step_s = lambda b, hz: step_s(b, hz) + 0.25e-3 * b
    while bench.governor.snapshot()["state"] != "revalidating":
        bench.run(1)
    bench.set_cap(Cap(4.0))
    bench.run(120)
    assert bench.governor.snapshot()["state"] == "joint"
    assert bench.watts() < 4.0


def test_a_cap_that_changes_faster_than_a_step_ends_does_not_keep_points_from_being_measured_again() -> None:
    bench = trained(cap=Cap(20.0))
    bench.step_s = lambda b, hz: 40 * step_s(b, hz)  # the present point's steps take 1.6 s, those at low clocks 9 s
    for number in range(120):
        bench.set_cap(Cap(20.0 - 0.01 * (number % 2)))
        bench.run(1.0)
    assert len(bench.texts("measured")) >= 3
    assert bench.governor.snapshot()["state"] == "joint"


def test_stopping_the_job_in_the_middle_leaves_nothing_half_done() -> None:
    bench = trained()
    bench.step_s = lambda b, hz: 1.2 * step_s(b, hz)
    while bench.governor.snapshot()["state"] != "revalidating":
        bench.run(1)
    bench.end()
    bench.run(5)
    assert bench.governor.snapshot()["state"] == "idle"
    assert [a for a in bench.of(PersistLut) if a.replaces] == []
    assert bench.governor.snapshot()["conditions"] == {}


def test_what_training_differs_by_from_measuring_is_noted_with_the_new_table_and_is_no_drift() -> None:
    """Steps overlap with the host's work while a job trains; while it is measured they do not."""
    bench = Bench(Settings(sampling_interval_s=0.05))
    bench.register()
    while bench.governor.snapshot()["state"] != "joint":
        bench.run(1)
    bench.step_s = lambda b, hz: 0.93 * step_s(b, hz)
    bench.run(600)
    assert bench.texts("drift") == []
    assert bench.lut.conditions["training"] == {"32 @ 921600000": [pytest.approx(-0.0726, abs=0.02), 0.0]}
    bench.step_s = lambda b, hz: 0.93 * 1.06 * step_s(b, hz)
    bench.run(60)
    assert "step time is 6.0 % above the table's" in bench.texts("drift")[0]


def test_a_noted_difference_is_used_with_the_stored_table() -> None:
    bench = Bench(Settings(sampling_interval_s=0.05))
    stored = table(bench)
    bench.step_s = lambda b, hz: 0.93 * step_s(b, hz)
    bench.register(lut=replace(stored, conditions={"training": {"32 @ 921600000": [-0.0726, 0.0]}}))
    bench.run(300)
    assert bench.texts("drift") == []
    assert bench.of(PersistLut) == []


def test_a_job_that_trains_slower_than_it_is_measured_is_looked_into_once_and_the_difference_noted() -> None:
    bench = trained(seconds=0.0)
    phases: list[str] = []

    def disturbed_by_its_own(b: int, hz: int) -> float:
        advised = bench.governor.snapshot()["state"]
        phases.append(advised)
        return step_s(b, hz) * (1.0 if advised == "revalidating" else 1.07)

    bench.step_s = disturbed_by_its_own
    bench.run(400)
    assert len(bench.texts("drift")) == 1
    assert bench.governor.drift.revalidations["confirmed"] == 1
    assert bench.lut.conditions["training"]["32 @ 921600000"][0] == pytest.approx(0.0677, abs=0.002)


# -- the energy policy -----------------------------------------------------------------------------------------------


def test_an_energy_search_begins_anew_when_steps_at_its_clock_become_slower_and_not_otherwise() -> None:
    tree = Tree.from_json(json.loads((Path(__file__).parents[3] / "etc/trees/algorithm-1.json").read_text()))
    bench = Bench(Settings(policy=PolicyName.ENERGY, tree=tree, sampling_interval_s=0.05))
    bench.register(features=Features(layers=24, seq_len_avg=80.0))
    bench.run(600)
    assert bench.texts("drift") == []
    searches = len(bench.texts("searched"))
    bench.step_s = lambda b, hz: 1.1 * step_s(b, hz)
    bench.run(300)
    assert len(bench.texts("drift")) == 1
    assert "step time is 10.0 % above what it was: readings begin anew" in bench.texts("drift")[0]
    assert len(bench.texts("searched")) > searches


def test_while_the_board_throttles_itself_nothing_is_taken_for_drift_and_afterwards_it_is() -> None:
    bench = trained()
    bench.step_s = lambda b, hz: 1.3 * step_s(b, hz)
    for _ in range(120):
        bench.feed(OverCurrentCounted(bench.now, (("oc3_event_cnt", 1),)))
        bench.run(0.5)
    assert bench.texts("drift") == []
    bench.run(300)
    assert len(bench.texts("drift")) == 1


def test_a_doubt_that_cannot_be_looked_into_waits_and_is_given_up_after_a_while() -> None:
    bench = trained(drift=DriftSettings(probe_budget=0.0, wait_most_s=30.0))
    bench.step_s = lambda b, hz: 1.3 * step_s(b, hz)
    while bench.governor.snapshot()["state"] != "revalidating":
        bench.run(1)
    for _ in range(100):
        bench.feed(OverCurrentCounted(bench.now, (("oc3_event_cnt", 1),)))
        bench.run(0.5)
    assert bench.governor.drift.revalidations["given-up"] == 1
    assert bench.governor.snapshot()["state"] == "joint"
    assert bench.texts("revalidated") == ["nothing could be measured for 30 s"]


def test_a_stored_table_that_no_job_has_trained_by_takes_a_little_faster_for_overlap() -> None:
    bench = Bench(Settings(sampling_interval_s=0.05))
    bench.step_s = lambda b, hz: 0.93 * step_s(b, hz)
    bench.register(lut=table(bench))
    bench.run(300)
    assert bench.texts("drift") == []
    assert bench.lut.conditions["training"]["32 @ 921600000"][0] == pytest.approx(-0.0726, abs=0.002)


def test_a_stored_table_that_was_already_wrong_when_the_job_began_is_found_out() -> None:
    bench = Bench(Settings(sampling_interval_s=0.05))
    bench.step_s = lambda b, hz: 1.07 * step_s(b, hz)
    bench.register(lut=table(bench))
    bench.run(120)
    assert bench.governor.drift.revalidations["rescaled"] == 1
