from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from traingov_policies.actions import AdviseBatch, PersistLut, SetGpuBounds
from traingov_policies.events import StepsReported
from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.settings import Settings
from traingov_policies.values import Cap, Objective, PolicyName
from traingov_sim.board.boardspec import board_names, load_board, noiseless
from traingov_sim.board.observed import Contention
from traingov_sim.board.overcurrent import CurrentLimits
from traingov_sim.surface import mean_power_w, peak_power_w, step_time_s
from traingov_sim.surfaces import NANO_TICKED_HZ, load, names
from traingov_sim.twin import SamplesToAccuracy, Steps, Twin, coarse, settings_for
from traingov_sim.twin.telemetry import RAILS

NANO = load_board("nano")
DIGITS = load("nano", "digits-mlp")
SIZES = (8, 32, 128)
QUIET = noiseless(NANO)
# Without noise the sensor repeats itself; a real one does not, which is why the governor asks for five readings.
QUIET_SETTINGS = replace(settings_for(QUIET), profile=replace(settings_for(QUIET).profile, min_readings=1))


def exact_table(sizes: tuple[int, ...] = SIZES) -> Lut:
    points = [[(b, hz) for hz in NANO_TICKED_HZ] for b in sizes]

    def grid(of):
        return tuple(tuple(of(b, hz) for b, hz in row) for row in points)

    return Lut(
        "nano", DIGITS.workload, 4096, sizes, NANO_TICKED_HZ,
        grid(lambda b, hz: step_time_s(DIGITS, b, hz) * 4096 / b),
        grid(lambda b, hz: peak_power_w(DIGITS, b, hz)),
        grid(lambda b, hz: mean_power_w(DIGITS, b, hz)),
        origin=grid(lambda b, hz: "measured"),
    )  # fmt: skip


def reports(twin: Twin) -> list[StepsReported]:
    """Every report of a job that was recorded."""
    assert twin.recording is not None
    found = [e for e in twin.recording.entries if e.get("event") == "StepsReported"]
    return [StepsReported(**{k: v for k, v in e.items() if k != "event"}) for e in found]


def test_a_job_is_profiled_and_chosen_for_and_the_table_is_close_to_the_truth() -> None:
    twin = Twin(QUIET, QUIET_SETTINGS, cap=Cap(4.5), seed=1)
    twin.add_job(DIGITS, SIZES)
    twin.run(300, until=lambda t: t.settled)
    assert twin.state == "joint", twin.decisions[-3:]
    table = twin.lut
    assert table is not None
    measured = [p for p in table.points() if table.cell(p).origin == "measured"]
    assert len(measured) >= 3
    for point in measured:
        cell, b, hz = table.cell(point), point.batch_size, point.gpu_frequency_hz
        assert cell.time_s == pytest.approx(step_time_s(DIGITS, b, hz) * 4096 / b, rel=0.05)
        assert cell.peak_power_w == pytest.approx(peak_power_w(DIGITS, b, hz), abs=0.06)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def run(seed: int) -> tuple[object, ...]:
        twin = Twin(NANO, cap=Cap(4.5), seed=seed)
        twin.add_job(DIGITS, SIZES)
        twin.run(40)
        return twin.actions, twin.board.truth(twin.t_s)

    first, again, other = run(3), run(3), run(4)
    assert first == again
    assert first != other


def test_energy_by_telemetry_agrees_with_the_true_energy() -> None:
    twin = Twin(NANO, seed=2)
    job = twin.add_job(DIGITS, (32,), lut=exact_table((32,)), progress=Steps(3000))
    twin.run()
    (account,) = twin.ledger.ended
    assert account.ended == "end"
    assert account.input_energy_j == pytest.approx(job.input_j, rel=0.03)
    assert account.samples == pytest.approx(job.samples, rel=0.02)  # first steps of a batch size are not reported


@pytest.mark.parametrize("interval_s", [0.05, 0.1, 0.2])
def test_a_coarser_interval_gives_the_same_choice_and_nearly_the_same_energy(interval_s: float) -> None:
    relation = RelationVector("digits-mlp", SIZES, (0.6, 0.7, 1.0))

    def run(interval: float) -> tuple[object, float]:
        twin = Twin(NANO, cap=Cap(5.0), seed=5, interval_s=interval)
        job = twin.add_job(DIGITS, SIZES, lut=exact_table(), relation=relation, progress=Steps(2000))
        twin.run()
        decision = twin.decided("joint")
        assert decision is not None
        return decision.point, job.input_j

    (fine, fine_j), (rough, rough_j) = run(0.01), run(interval_s)
    assert rough == fine
    assert rough_j == pytest.approx(fine_j, rel=0.03)


def test_windows_hold_one_batch_size_and_never_the_first_step_after_a_change() -> None:
    twin = Twin(QUIET, QUIET_SETTINGS, cap=Cap(4.5), seed=1, record=True)
    twin.add_job(DIGITS, SIZES)
    twin.run(300, until=lambda t: t.settled)
    seen = reports(twin)
    assert {r.batch_size for r in seen} == set(SIZES)
    for r in seen:
        assert r.samples == r.steps * r.batch_size
        if r.synced:
            assert r.elapsed_s >= r.steps * step_time_s(DIGITS, r.batch_size, NANO.gpu.frequencies_hz[-1])
    ends = [r.t_s for r in seen]
    assert ends == sorted(ends)
    assert all(b.t_s - b.elapsed_s >= a.t_s - 1e-9 for a, b in pairwise(seen))


def test_while_profiling_windows_are_synchronised_and_measure_device_time_exactly() -> None:
    twin = Twin(QUIET, QUIET_SETTINGS, cap=Cap(4.5), seed=1, record=True)
    twin.add_job(DIGITS, (128,))
    twin.run(300, until=lambda t: t.settled)
    table = twin.lut
    assert table is not None
    synced = [r for r in reports(twin) if r.synced]
    assert len(synced) >= 2
    for point in table.points():
        cell = table.cell(point)
        if cell.origin == "measured":  # each synchronised window costs one host turn, half a millisecond
            true = step_time_s(DIGITS, 128, point.gpu_frequency_hz) * 4096 / 128
            assert cell.time_s is not None
            assert true <= cell.time_s <= true * 1.02


def test_a_job_that_does_not_obey_loses_its_other_batch_sizes_and_is_governed_on() -> None:
    settings = Settings(apply_timeout_s=3.0)
    twin = Twin(NANO, replace(settings, profile=replace(settings.profile, settle_s=1.0)), Cap(4.5), seed=1)
    job = twin.add_job(DIGITS, SIZES, obeys=False)
    twin.run(200, until=lambda t: t.settled)
    assert job.batch_size == 128
    dropped = [d.text for d in twin.decisions if d.kind == "batch-dropped"]
    assert any("did not follow" in text for text in dropped)


def test_a_batch_size_that_does_not_fit_in_memory_is_dropped_and_training_goes_on() -> None:
    big = replace(DIGITS, memory_sample_bytes=30_000_000)
    twin = Twin(NANO, cap=Cap(4.5), seed=1)
    job = twin.add_job(big, SIZES, batch_size=32)
    twin.run(300, until=lambda t: t.settled)
    assert [d.text for d in twin.decisions if d.kind == "batch-dropped"]
    assert 128 not in job.samples_by_batch
    assert job.running
    assert twin.state == "joint"


def test_two_jobs_share_the_board_and_the_one_left_is_governed_again() -> None:
    twin = Twin(NANO, cap=Cap(5.0), seed=1)
    twin.add_job(DIGITS, SIZES, name="a", lut=exact_table())
    twin.run(5)
    other = twin.add_job(DIGITS, (32,), name="b")
    twin.run(5)
    assert twin.state == "sharing"
    assert other.samples > 0
    twin.end("b")
    twin.run(5)
    assert twin.state == "joint"
    with pytest.raises(ValueError, match="running already"):
        twin.add_job(DIGITS, SIZES, name="a")


def test_a_changed_cap_changes_clock_and_batch_size() -> None:
    relation = RelationVector("digits-mlp", SIZES, (0.6, 0.8, 1.0))
    twin = Twin(NANO, cap=Cap(4.5), seed=1, trace=True)
    job = twin.add_job(DIGITS, SIZES, lut=exact_table(), relation=relation)
    twin.at(10.0, lambda t: t.set_cap(None))
    twin.run(9.9)
    low = (job.batch_size, twin.board.clock.hz)
    twin.run(5)
    high = (job.batch_size, twin.board.clock.hz)
    assert low[1] < high[1] == 921_600_000
    assert twin.trace is not None
    before = [m.input_power_w for m in twin.trace if 5 < m.t_s < 9.9 and m.input_power_w is not None]
    assert sum(before) / len(before) < 4.5


def test_contention_shows_in_the_reports_from_the_moment_it_begins() -> None:
    twin = Twin(noiseless(NANO), seed=1, record=True)
    twin.add_job(DIGITS, (32,), lut=exact_table((32,)))
    twin.at(10.0, lambda t: setattr(t.board, "contention", Contention(time_factor=1.5)))
    twin.run(20)
    speeds = {
        late: [(r.elapsed_s, r.samples) for r in reports(twin) if (11 if late else 3) < r.t_s < (20 if late else 10)]
        for late in (False, True)
    }
    before, after = (sum(e for e, _ in speeds[x]) / sum(n for _, n in speeds[x]) for x in (False, True))
    assert after / before == pytest.approx(1.5, rel=0.02)


def test_telemetry_that_stops_makes_the_governor_go_to_a_safe_clock() -> None:
    twin = Twin(NANO, cap=Cap(7.0), seed=1)
    twin.add_job(DIGITS, (32,), lut=exact_table((32,)))
    twin.run(5)
    clock = twin.board.clock.hz

    def stop(t: Twin) -> None:
        t.telemetry_on = False

    twin.at(6.0, stop)
    twin.run(4)
    assert "telemetry-stale" in twin.governor.snapshot()["conditions"]
    assert twin.board.clock.hz <= clock


def test_a_missing_rail_is_a_missing_reading_and_never_a_smaller_sum() -> None:
    twin = Twin(NANO, seed=1, trace=True)
    twin.add_job(DIGITS, (32,), lut=exact_table((32,)))
    twin.at(2.0, lambda t: t.board.sensor.set_fault("missing", ["POM_5V_IN"]))
    twin.run(4)
    assert twin.trace is not None
    assert all(m.input_power_w is None for m in twin.trace if m.t_s > 2.1)
    assert all(m.input_power_w is not None for m in twin.trace if m.t_s < 1.9)


def test_another_writer_is_noticed_and_the_clock_written_again() -> None:
    twin = Twin(NANO, cap=Cap(4.5), seed=1)
    twin.add_job(DIGITS, (32,), lut=exact_table((32,)))
    twin.at(5.0, lambda t: t.board.set_bounds(921_600_000, 921_600_000, t.t_s))
    twin.run(10)
    assert "foreign-writer" in twin.governor.snapshot()["conditions"]
    assert twin.board.clock.bounds()[1] < 921_600_000


def test_a_lower_power_mode_is_found_within_a_second_or_so_and_its_clocks_are_governed() -> None:
    twin = Twin(NANO, seed=1)
    twin.add_job(DIGITS, (32,), lut=exact_table((32,)))
    twin.at(5.0, lambda t: t.board.set_power_mode(1, t.t_s))
    twin.run(7)
    assert twin.identity.power_mode == "5W"
    assert twin.identity.gpu_frequencies_hz[-1] == 614_400_000
    assert twin.board.clock.hz <= 640_000_000
    twin.run(60)
    assert twin.lut is not None
    assert twin.lut.power_mode == "5W"


def test_the_twin_tells_heat_and_over_current_as_the_service_does() -> None:
    twin = Twin(load_board("agx-orin"), seed=1, record=True)
    twin.add_job(load("agx-orin", "bert-base/mnli"), (32,))
    twin.at(20.0, lambda t: t.board.over_current.set_limits({"VDD_GPU_SOC": CurrentLimits(crit_a=0.3)}))
    twin.run(22)
    assert twin.recording is not None
    entries = [e for e in twin.recording.entries if e.get("event") in {"Thermals", "OverCurrentCounted"}]
    assert 20 <= sum(e["event"] == "Thermals" for e in entries) <= 24
    counted = [e for e in entries if e["event"] == "OverCurrentCounted"]
    assert counted
    assert counted[0]["t_s"] == pytest.approx(20.2, abs=0.3)
    assert sum(dict(e["counts"])["oc3"] for e in counted) <= twin.board.over_current.counts[2]


def test_when_the_last_job_ends_the_bounds_come_back() -> None:
    twin = Twin(NANO, cap=Cap(4.5), seed=1)
    found = twin.board.clock.bounds()
    twin.add_job(DIGITS, (32,), lut=exact_table((32,)), progress=Steps(200))
    twin.run()
    assert any(isinstance(a, SetGpuBounds) for _, a in twin.actions)
    twin.run(1)
    assert twin.board.clock.bounds() == found
    assert twin.state == "idle"


def test_samples_to_accuracy_by_batch_size_end_the_training() -> None:
    progress = SamplesToAccuracy({8: 800.0, 32: 3200.0})
    assert not any(progress.step(8) for _ in range(50))
    assert not any(progress.step(32) for _ in range(49))
    assert progress.step(32)
    with pytest.raises(KeyError):
        progress.step(64)


def test_a_run_that_could_not_end_is_refused() -> None:
    twin = Twin(NANO)
    twin.add_job(DIGITS, (32,))
    with pytest.raises(ValueError, match="no end"):
        twin.run()
    with pytest.raises(ValueError, match="interval_s"):
        Twin(NANO, interval_s=0.5)


def test_without_a_job_nothing_is_sampled_and_nothing_is_written() -> None:
    twin = Twin(NANO, trace=True)
    twin.run(5)
    assert twin.trace == []
    assert twin.actions == []


def test_a_coarser_monitor_keeps_the_noise_with_a_memory_and_averages_the_rest() -> None:
    rough = coarse(NANO, 0.08)
    assert rough.sensor.update_s == 0.08
    assert rough.sensor.white_sd == pytest.approx(NANO.sensor.white_sd / 2)
    assert rough.sensor.noise_sd == NANO.sensor.noise_sd
    assert coarse(NANO, 0.01) is NANO


@pytest.mark.parametrize("board", board_names())
def test_the_rails_are_those_of_the_service_s_board_files(board: str) -> None:
    file = board.removesuffix("-r35").removesuffix("-r39")
    path = Path(__file__).parents[3] / "etc" / "boards" / f"{file}.yaml"
    rails = yaml.safe_load(path.read_text(encoding="utf-8"))["rails"]
    assert (list(RAILS[board][0]), list(RAILS[board][1])) == (rails[0]["input"], rails[0]["compute"])
    twin = Twin(load_board(board), seed=1, trace=True)
    twin.add_job(load(board, names(board)[0]), (8,))
    twin.run(3.0)
    assert twin.trace is not None
    watts = [m.input_power_w for m in twin.trace if m.input_power_w is not None]
    assert sum(watts) / len(watts) == pytest.approx(twin.board.truth(twin.t_s).input_j / twin.t_s, rel=0.05)


def test_the_energy_policy_runs_in_the_twin_as_well() -> None:
    orin, surface = load_board("agx-orin"), load("agx-orin", "bert-base/qqp")
    settings = Settings(policy=PolicyName.FIXED, objective=Objective.ENERGY, fixed_frequency_hz=714_000_000)
    twin = Twin(orin, settings, seed=1)
    job = twin.add_job(surface, (32,), progress=Steps(40))
    twin.run()
    assert twin.board.clock.bounds() == (714_000_000, 714_000_000)
    assert twin.ledger.ended[0].compute_energy_j < job.input_j
    assert not [a for _, a in twin.actions if isinstance(a, PersistLut)]


def test_advice_is_followed_at_the_next_step_and_not_before_the_message_is_there() -> None:
    twin = Twin(NANO, cap=Cap(4.5), seed=1, record=True)
    twin.add_job(DIGITS, SIZES, lut=exact_table(), relation=RelationVector("digits-mlp", SIZES, (0.3, 0.9, 1.0)))
    twin.run(5)
    assert twin.recording is not None
    entries = twin.recording.entries
    advised = next(a for _, a in twin.actions if isinstance(a, AdviseBatch))
    applied = next(e for e in entries if e.get("event") == "BatchApplied")
    assert applied["batch_size"] == advised.batch_size == 8
    assert applied["t_s"] > 0.0
