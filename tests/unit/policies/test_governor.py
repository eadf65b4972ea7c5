"""The governor in pseudo-time: profiling, choice, cap, guard, missing telemetry, refusals, more than one job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import CLOCKS, Bench, power_w, step_s

from traingov_policies.actions import (
    AdviseBatch,
    PersistLut,
    RaiseCondition,
    RestoreGpuBounds,
    SetGpuBounds,
    SetSamplingInterval,
)
from traingov_policies.codec import decode_event, decode_header, encode, encode_action, encode_event
from traingov_policies.events import CapChanged, Event, JobRegistered, KnobReadBack, PolicyChanged
from traingov_policies.governor import Governor
from traingov_policies.plans import thinned
from traingov_policies.relation import RelationVector
from traingov_policies.search.options import SearchSettings
from traingov_policies.settings import ProfileSettings, Settings
from traingov_policies.tree import Tree
from traingov_policies.values import Cap, Features, Objective, PolicyName

PROFILED = thinned(CLOCKS, 16)
TREE = Tree.from_json(json.loads((Path(__file__).parents[3] / "etc/trees/algorithm-1.json").read_text()))


STAIRCASE = Settings(profile=ProfileSettings(plan="staircase"))


def best(cap_w: float | None, r: dict[int, float] | None = None) -> tuple[int, int]:
    points = [
        (step_s(b, f) / b * (r or {}).get(b, 1.0), b, f)
        for b in (8, 16, 32)
        for f in PROFILED
        if cap_w is None or power_w(b, f) < cap_w
    ]
    _, b, f = min(points)
    return b, f


def test_a_job_is_profiled_and_then_runs_at_the_exhaustive_best_point_under_the_cap() -> None:
    bench = Bench(cap=Cap(4.5))
    job = bench.register()
    bench.run(90)
    assert (job.batch, bench.bounds[1]) == best(4.5)
    assert bench.bounds[0] == bench.bounds[1]
    assert bench.of(AdviseBatch)[-1].phase == "train"
    origins = [origin for row in bench.lut.origin for origin in row]
    assert 3 <= sum(origin in ("measured", "infeasible") for origin in origins) <= 12
    assert set(origins) == {"measured", "predicted", "infeasible"}


def test_the_papers_staircase_measures_no_more_points_than_its_bound() -> None:
    bench = Bench(STAIRCASE, cap=Cap(4.5))
    job = bench.register()
    bench.run(90)
    assert (job.batch, bench.bounds[1]) == best(4.5)
    assert bench.bounds[0] == bench.bounds[1]
    assert bench.of(AdviseBatch)[-1].phase == "train"
    measured = sum(origin is not None for row in bench.lut.origin for origin in row)
    assert measured <= 2 * 3 + len(PROFILED) - 2


def test_measured_cells_hold_the_true_time_and_power_of_their_points() -> None:
    bench = Bench(STAIRCASE, cap=Cap(4.5))
    bench.register()
    bench.run(90)
    checked = 0
    for point in bench.lut.points():
        cell = bench.lut.cell(point)
        if cell.time_s is not None:
            b, f = point.batch_size, point.gpu_frequency_hz
            assert cell.time_s == pytest.approx(step_s(b, f) / b * 4096, rel=0.01)
            assert cell.peak_power_w == pytest.approx(power_w(b, f), abs=0.01)
            assert cell.mean_power_w == pytest.approx(power_w(b, f), abs=0.01)
            checked += 1
    assert checked >= 5


def test_the_relation_vector_changes_the_choice() -> None:
    r = {8: 0.3, 16: 0.6, 32: 1.0}
    assert best(4.5, r) != best(4.5)
    bench = Bench(cap=Cap(4.5))
    job = bench.register(relation=RelationVector("w", (8, 16, 32), (0.3, 0.6, 1.0)))
    bench.run(90)
    assert (job.batch, bench.bounds[1]) == best(4.5, r)


def test_a_stored_table_is_used_without_profiling() -> None:
    first = Bench(cap=Cap(4.5))
    first.register()
    first.run(90)
    second = Bench(cap=Cap(4.5))
    job = second.register(lut=first.lut)
    second.run(2)
    assert (job.batch, second.bounds[1]) == best(4.5)
    assert second.of(PersistLut) == []


@pytest.mark.parametrize("plan", ["adaptive", "staircase"])
def test_a_table_cut_short_by_a_crash_is_gone_on_with(plan: str) -> None:
    settings = Settings(profile=ProfileSettings(plan=plan))
    first = Bench(settings, cap=Cap(4.5))
    first.register()
    first.run(6)
    partial = first.lut
    before = {p for p in partial.points() if partial.cell(p).origin in ("measured", "infeasible")}
    assert len(before) >= 2
    second = Bench(settings, cap=Cap(4.5))
    job = second.register(lut=partial)
    second.run(90)
    assert (job.batch, second.bounds[1]) == best(4.5)
    assert all(second.lut.cell(p) == partial.cell(p) for p in before)
    assert len(second.of(PersistLut)) < len(first.run(90).of(PersistLut))


def test_a_raised_cap_measures_what_is_missing_and_takes_the_better_point() -> None:
    bench = Bench(cap=Cap(3.5))
    job = bench.register()
    bench.run(90)
    assert (job.batch, bench.bounds[1]) == best(3.5)
    bench.set_cap(Cap(4.6))
    bench.run(90)
    assert (job.batch, bench.bounds[1]) == best(4.6)
    bench.set_cap(None)
    bench.run(60)
    assert (job.batch, bench.bounds[1]) == best(None)


def test_a_lowered_cap_lowers_the_clock_at_once() -> None:
    bench = Bench(cap=Cap(6.0))
    job = bench.register()
    bench.run(120)
    t = bench.now
    bench.set_cap(Cap(3.5))
    write = next(a for when, a in bench.log if when >= t and isinstance(a, SetGpuBounds))
    assert power_w(job.batch, write.max_hz) < 3.5
    bench.run(60)
    assert bench.watts() < 3.5


def test_a_batch_that_runs_out_of_memory_leaves_the_candidates_without_ending_anything() -> None:
    bench = Bench(cap=Cap(4.5))
    job = bench.register(batch=8, too_large=32)
    bench.run(90)
    assert job.batch in (8, 16)
    assert 32 not in bench.lut.batch_sizes
    assert any("does not fit" in text for text in bench.texts("batch-dropped"))


def test_a_job_that_does_not_follow_advice_is_not_waited_for_for_ever() -> None:
    bench = Bench(Settings(apply_timeout_s=5.0), cap=Cap(4.5))
    bench.register(obeys=False)
    bench.run(120)
    assert any("did not follow" in text for text in bench.texts("batch-dropped"))
    assert bench.governor.snapshot()["state"] == "joint"


def test_the_knob_is_given_back_when_the_last_job_ends_and_sampling_stops() -> None:
    bench = Bench(cap=Cap(4.5))
    bench.register()
    bench.run(30)
    bench.end()
    assert isinstance(bench.log[-1][1], (RestoreGpuBounds, SetSamplingInterval))
    assert len(bench.of(RestoreGpuBounds)) == 1
    assert bench.sampling is None
    assert bench.governor.snapshot()["state"] == "idle"


@pytest.mark.parametrize("policy", [PolicyName.OBSERVE])
def test_observe_decides_and_explains_but_writes_nothing(policy: PolicyName) -> None:
    first = Bench(cap=Cap(4.5))
    first.register()
    first.run(90)
    bench = Bench(Settings(policy=policy), cap=Cap(4.5))
    bench.register(lut=first.lut)
    bench.run(30)
    assert bench.of(SetGpuBounds) == []
    assert {a.phase for a in bench.of(AdviseBatch)} == {"hold"}
    b, f = best(4.5)
    assert any(f"would choose batch {b} at {f / 1e6:.0f} MHz" in text for text in bench.texts("observe"))


def test_observe_without_a_table_says_how_many_points_joint_would_measure() -> None:
    for plan, most in (("staircase", 16), ("adaptive", 12), ("full", 36)):
        bench = Bench(Settings(policy=PolicyName.OBSERVE, profile=ProfileSettings(plan=plan)), cap=Cap(4.5))
        bench.register()
        assert any(f"at most {most} points" in text for text in bench.texts("observe"))


def test_the_guard_corrects_a_table_that_is_too_hopeful_and_never_winds_down_to_the_floor() -> None:
    first = Bench(cap=Cap(4.5))
    first.register()
    first.run(90)
    hungry = Bench(cap=Cap(4.5), power=lambda b, f: 1.12 * power_w(b, f))
    job = hungry.register(lut=first.lut)
    hungry.run(60)
    assert hungry.watts() < 4.5
    # one step more would have been too much: the guard stops at the highest clock that holds
    index = CLOCKS.index(hungry.bounds[1])
    assert 1.12 * power_w(job.batch, CLOCKS[index + 1]) >= 4.5
    assert hungry.governor.snapshot()["guard_steps_down"] >= 1


def test_the_guard_writes_within_two_samples_of_a_violated_window() -> None:
    first = Bench(cap=Cap(4.5))
    first.register()
    first.run(90)
    bench = Bench(cap=Cap(4.5))
    bench.register(lut=first.lut)
    bench.run(10)
    t_jump = bench.now
    bench.power = lambda b, f: power_w(b, f) + 1.0
    bench.run(5)
    violated = write = None
    window: list[float] = []
    for t, entry in bench.log:
        if type(entry).__name__ == "Sample":
            window = [*window, entry.input_power_w][-100:]
            if violated is None and t > t_jump and sum(window) / len(window) >= 4.5:
                violated = t
        elif isinstance(entry, SetGpuBounds) and t > t_jump and write is None:
            write = t
    assert violated is not None
    assert write is not None
    assert write <= violated + 0.021


def test_the_guard_climbs_back_slowly_when_the_load_is_gone() -> None:
    first = Bench(cap=Cap(4.5))
    first.register()
    first.run(90)
    bench = Bench(cap=Cap(4.5))
    bench.register(lut=first.lut)
    bench.run(5)
    bench.power = lambda b, f: power_w(b, f) + 1.0
    bench.run(10)
    low = bench.bounds[1]
    bench.power = power_w
    bench.run(60)
    assert bench.bounds[1] == best(4.5)[1] > low


def test_without_fresh_telemetry_a_capped_board_goes_to_a_safe_clock_and_comes_back() -> None:
    bench = Bench(cap=Cap(4.5))
    bench.register()
    bench.run(90)
    chosen = bench.bounds[1]
    bench.sensor_on = False
    bench.run(0.5 + 0.13)
    safe = max(f for f in PROFILED if power_w(32, f) < 4.5)
    assert bench.bounds[1] == min(safe, chosen)
    assert "telemetry-stale" in bench.governor.snapshot()["conditions"]
    bench.sensor_on = True
    bench.run(1)
    assert bench.bounds[1] == chosen
    assert bench.governor.snapshot()["conditions"] == {}


def test_without_telemetry_and_without_a_table_the_lowest_clock_is_taken() -> None:
    bench = Bench(cap=Cap(4.5), sensor_on=False)
    bench.register()
    bench.run(2)
    assert bench.bounds[1] == CLOCKS[0]


def test_readings_without_input_power_count_as_no_telemetry() -> None:
    bench = Bench(cap=Cap(4.5), rails_on=False)
    bench.register()
    bench.run(2)
    assert bench.bounds[1] == CLOCKS[0]


def test_a_refused_write_is_reported_and_the_governor_gives_up_measuring() -> None:
    bench = Bench(cap=Cap(4.5), refuse="write to max_freq refused (EACCES): join group devfreq")
    bench.register()
    bench.run(60)
    assert any("EACCES" in c.text for c in bench.of(RaiseCondition))
    assert bench.governor.snapshot()["state"] == "fallback"
    assert "not-governed" in bench.governor.snapshot()["conditions"]


def test_a_clock_that_does_not_hold_makes_the_measurement_invalid() -> None:
    bench = Bench(cap=Cap(4.5), switch_delay_s=1e9)
    bench.register()
    bench.run(200)
    assert any("the clock was" in text for text in bench.texts("measurement-invalid"))
    assert bench.governor.snapshot()["state"] == "fallback"


def test_two_jobs_share_under_the_guard_and_the_one_left_is_governed_again() -> None:
    bench = Bench(cap=Cap(4.5))
    bench.register()
    bench.run(90)
    bench.register("j2")
    assert bench.governor.snapshot()["state"] == "sharing"
    bench.run(30)
    assert bench.watts() < 4.5
    bench.end("j2")
    bench.run(60)
    assert bench.governor.snapshot()["state"] == "joint"


def test_a_foreign_writer_is_noticed_and_after_the_stated_tries_respected() -> None:
    bench = Bench(cap=Cap(4.5))
    bench.register()
    bench.run(90)
    pinned = bench.bounds
    for attempt in range(5):
        bench.feed(KnobReadBack(bench.now, None, None, CLOCKS[0], CLOCKS[-1]))
        bench.run(1)
        if attempt < 3:
            assert bench.of(SetGpuBounds)[-1].max_hz == pinned[1]
    writes = len(bench.of(SetGpuBounds))
    bench.run(5)
    assert len(bench.of(SetGpuBounds)) == writes
    assert "left so after 3 tries" in bench.governor.snapshot()["conditions"]["foreign-writer"]


@pytest.mark.parametrize(
    ("layers", "length", "mhz"), [(4, 20.0, 384.0), (24, 80.0, 614.4)]
)  # 510 and 816 of 1300.5 MHz, by ratio on the Nano's table
def test_the_energy_policy_measures_utilization_once_and_pins_the_trees_clock(
    layers: int, length: float, mhz: float
) -> None:
    settings = Settings(policy=PolicyName.ENERGY, tree=TREE, search=SearchSettings(enabled=False))
    bench = Bench(settings)
    bench.register(features=Features(layers=layers, seq_len_avg=length))
    bench.run(2)
    assert bench.of(SetGpuBounds) == []
    bench.run(8)
    assert [a.max_hz / 1e6 for a in bench.of(SetGpuBounds)] == [pytest.approx(mhz, rel=0.15)]
    assert len(bench.texts("tree")) == 1
    assert "gpu_utilization 90 > 22" in bench.texts("tree")[0]
    bench.run(60)
    assert len(bench.of(SetGpuBounds)) == 1


def test_policy_fixed_pins_its_clock_and_leaves_the_batch_alone() -> None:
    bench = Bench(Settings(policy=PolicyName.FIXED, fixed_frequency_hz=320_000_000))
    job = bench.register()
    bench.run(2)
    assert bench.bounds == (307_200_000, 307_200_000)
    assert job.batch == 32


def test_a_changed_policy_applies_to_the_running_job() -> None:
    bench = Bench(Settings(policy=PolicyName.OBSERVE, fixed_frequency_hz=460_800_000))
    bench.register()
    bench.run(1)
    bench.feed(PolicyChanged(bench.now, PolicyName.FIXED, Objective.TIME))
    bench.run(1)
    assert bench.bounds[1] == 460_800_000


def test_a_board_without_a_clock_table_is_observed_not_a_crash() -> None:
    bench = Bench(cap=Cap(4.5), clocks=())
    bench.register()
    bench.run(3)
    assert bench.of(SetGpuBounds) == []
    assert "no clock table" in bench.governor.snapshot()["doing"]


def test_two_governors_fed_the_same_recording_give_the_same_actions() -> None:
    bench = Bench(Settings(tree=TREE), cap=Cap(4.5))
    bench.register(relation=RelationVector("w", (8, 16, 32), (0.3, 0.6, 1.0)), features=Features(layers=4))
    bench.run(60)
    bench.set_cap(Cap(3.9, burst_w=5.0))
    bench.run(20)
    bench.set_cap(None)
    bench.run(20)
    bench.end()
    header = json.loads(json.dumps({"schema": "traingov.recording/1", "board": encode(bench.board),
                                    "settings": encode(bench.settings), "cap": encode(Cap(4.5))}))  # fmt: skip
    board, settings, cap = decode_header(header)
    assert (board, settings, cap) == (bench.board, bench.settings, Cap(4.5))
    fresh = Governor(board, settings, cap)
    events: list[Event] = [entry for _, entry in bench.log if hasattr(entry, "t_s")]
    again = []
    for event in events:
        wire = json.loads(json.dumps(encode_event(event)))
        decoded = decode_event(wire)
        assert decoded == event
        again += [json.dumps(encode_action(a)) for a in fresh.handle(decoded)]
    assert again == [json.dumps(encode_action(entry)) for _, entry in bench.log if not hasattr(entry, "t_s")]
    assert len(again) > 30


def test_a_cap_change_without_a_job_is_kept_for_the_next() -> None:
    bench = Bench()
    bench.feed(CapChanged(bench.now, Cap(3.5), "test"))
    job = bench.register()
    bench.run(90)
    assert (job.batch, bench.bounds[1]) == best(3.5)


def test_an_unknown_event_in_a_recording_is_named() -> None:
    with pytest.raises(ValueError, match="Earthquake"):
        decode_event({"event": "Earthquake", "t_s": 1.0})
    with pytest.raises(ValueError, match="colour"):
        decode_event({"event": "Tick", "t_s": 1.0, "colour": "red"})
    assert isinstance(decode_event(encode_event(JobRegistered(1.0, "j", "w", (8,), 8))), JobRegistered)
