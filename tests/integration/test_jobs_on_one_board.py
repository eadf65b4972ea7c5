"""Several jobs, a job that idles, a program that writes the bounds and a power mode that changes, end to end."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
from rig import FAST, Lab, board_set, state_of, traingov, training, wait_for

HZ = 460_800_000
TOP = 921_600_000
FIXED = {"policy": "fixed", "fixed": {"gpu_frequency_hz": HZ}}


def test_two_jobs_share_the_energy_and_one_that_pauses_alone_gets_its_pin_back(lab: Lab) -> None:
    board = lab.board("nano", "a", 21)
    original = board.bounds_hz()
    record = lab.directory / "rec.jsonl"
    service = lab.service(board, "a", FIXED, record)
    with training(service, [32]) as trainer:
        wait_for(lambda: board.bounds_hz() == (HZ, HZ), 10, "the clock is pinned")
        with training(service, [8], workload="mobilenetv2"):
            wait_for(lambda: state_of(service) == "sharing", 5, "both run")
            time.sleep(3)
        wait_for(lambda: state_of(service) == "holding", 5, "one is left")
        (other,) = service.ask("jobs")["ended"]
        assert other["shared"]
        assert other["attributed_by"] in ("steps", "equal")
        assert other["input_energy_j"] > 0

        trainer.paused.set()
        wait_for(lambda: board.bounds_hz() == original, 6, "the pin is given back while the job idles")
        assert service.ask("status")["pin_released"]
        time.sleep(1)
        trainer.paused.clear()
        wait_for(lambda: board.bounds_hz() == (HZ, HZ), 3, "and taken again")
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
    one, two = service.ask("jobs")["ended"]
    (mine,) = (s for s in (one, two) if s["idle_s"] > 0)
    assert 1 < mine["idle_s"] < 10
    assert 0 < mine["idle_input_energy_j"] < mine["input_energy_j"]
    assert math.fsum((one["input_energy_j"], two["input_energy_j"])) < board.truth()["input_j"]
    lab.stop(service)
    answer = json.loads(traingov("replay", str(record), "--json").stdout)
    assert (answer["difference"], answer["violations"], answer["good"]) == (None, [], True)


def test_a_program_that_keeps_writing_the_bounds_is_respected_told_of_and_left_again(lab: Lab) -> None:
    board = lab.board("nano", "a", 22)
    service = lab.service(board, "a", FIXED)
    node = next((Path(board.root) / "sys/class/devfreq").glob("*/max_freq")).parent

    def conditions() -> str:
        return str(service.ask("status")["conditions"].get("foreign-writer", ""))

    with training(service, [32]):
        wait_for(lambda: board.bounds_hz() == (HZ, HZ), 10, "the clock is pinned")
        until = time.monotonic() + 15
        while "left so after 3 tries" not in conditions():
            assert time.monotonic() < until, conditions()
            (node / "max_freq").write_text(f"{TOP}\n")
            (node / "min_freq").write_text(f"{TOP}\n")
            time.sleep(0.1)
        assert "921.6 to 921.6 MHz (as jetson_clocks does)" in conditions()
        time.sleep(1.2)
        assert board.bounds_hz() == (TOP, TOP)
        (node / "min_freq").write_text("76800000\n")  # jetson_clocks --restore
        wait_for(lambda: board.bounds_hz() == (HZ, HZ), 4, "it is governed again")
        assert not conditions()


def test_a_power_mode_set_in_mid_job_is_noticed_and_never_exceeded(lab: Lab) -> None:
    board = lab.board("nano", "a", 23)
    original = board.bounds_hz()
    record = lab.directory / "rec.jsonl"
    service = lab.service(board, "a", {"cap": {"power_w": 9}, "profile": {**FAST, "max_frequencies": 3}}, record)
    with training(service, [32]):
        wait_for(lambda: list((service.state_dir / "lut").rglob("*.json")), 15, "a first point is kept")
        (first,) = (service.state_dir / "lut").rglob("*.json")
        before = json.loads(first.read_text())
        board_set(board, power_mode=1)
        wait_for(lambda: service.ask("status")["power_mode"] == "5W", 3, "the mode is noticed")
        limit = service.ask("status")["clocks_hz"][-1]
        assert limit < TOP
        wait_for(lambda: board.bounds_hz()[1] <= limit, 2, "the clock keeps to the mode")
        wait_for(lambda: len(list((service.state_dir / "lut").rglob("*.json"))) == 2, 15, "the new mode has its table")
        (second,) = (p for p in (service.state_dir / "lut").rglob("*.json") if p != first)
        assert json.loads(second.read_text())["power_mode"] == "5W"
        assert json.loads(first.read_text())["power_mode"] == before["power_mode"] == "MAXN"
        assert board.bounds_hz()[1] <= limit
    wait_for(lambda: state_of(service) == "idle", 5, "it ends")
    wait_for(lambda: board.bounds_hz()[1] == pytest.approx(limit, rel=0.01), 5, "never above what the mode allows")
    assert original[1] == TOP
    lab.stop(service)
    answer = json.loads(traingov("replay", str(record), "--json").stdout)
    assert (answer["difference"], answer["violations"], answer["good"]) == (None, [], True)
