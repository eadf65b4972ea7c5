"""The real service without tegrastats: it reads the kernel's own files, and everything else is as with it."""

from __future__ import annotations

import json

import pytest
from rig import FAST, Lab, board_set, state_of, traingov, training, wait_for

WITHOUT = {"tegrastats": "no-such-tegrastats"}


def test_without_tegrastats_a_capped_job_is_profiled_and_chosen_for_and_the_recording_replays(lab: Lab) -> None:
    board = lab.board("nano", "a", 1)
    record = lab.directory / "rec.jsonl"
    service = lab.service(board, "a", {**WITHOUT, "cap": {"power_w": 4.5}, "profile": FAST}, record)
    with training(service, [8, 32]) as trainer:
        wait_for(lambda: state_of(service) == "joint", 60, "profiling ends")
        chosen = [d for d in service.ask("explain") if d["kind"] == "joint"][-1]["point"]
        wait_for(lambda: trainer.batch == chosen["batch_size"], 5, "the job follows to the chosen batch")
        wait_for(lambda: (service.ask("status")["input_power_w"] or 9) < 4.5, 5, "power is below the cap")
        telemetry = service.ask("status")["telemetry"]
        assert (telemetry["state"], telemetry["text"]) == ("running", "sysfs gives readings")
        assert telemetry["readings"] > 500
    (ended,) = service.ask("jobs")["ended"]
    truth = board.truth()
    assert 0.9 * truth["input_j"] < ended["input_energy_j"] < 1.03 * truth["input_j"]
    lab.stop(service)
    assert "telemetry: sysfs: rails POM_5V_IN, POM_5V_GPU, POM_5V_CPU; not tegrastats" in service.log.read_text()
    answer = json.loads(traingov("replay", str(record), "--json").stdout)
    assert (answer["difference"], answer["violations"]) == (None, [])


def test_power_files_that_show_nothing_are_no_telemetry_and_the_clock_becomes_a_safe_one(lab: Lab) -> None:
    board = lab.board("nano", "a", 2)
    config = {**WITHOUT, "cap": {"power_w": 6.0}, "policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}}
    service = lab.service(board, "a", config)
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 10, "the clock is pinned")
        board_set(board, sensor_fault={"fault": "missing"})
        wait_for(lambda: board.bounds_hz() == (76_800_000,) * 2, 5, "without power readings the lowest clock is set")
        board_set(board, sensor_fault=None)
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 20, "readings are back, and so is the clock")


@pytest.mark.parametrize("source", ["sysfs", "tegrastats"])
def test_the_configured_source_is_taken(lab: Lab, source: str) -> None:
    board = lab.board("orin-nano", "a", 3)
    service = lab.service(board, "a", {"telemetry": source, "policy": "observe"})
    with training(service, [32]):
        wait_for(lambda: service.ask("status")["telemetry"]["state"] == "running", 10, "telemetry runs")
    assert f"telemetry: {source}: configured; " in service.log.read_text()
