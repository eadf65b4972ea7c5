"""The real service on a virtual Nano: a cap that another program writes to a file, and a battery, are followed."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

from rig import Board, Lab, traingov, training, wait_for


def write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def true_power_w(board: Board, seconds: float = 1.0) -> float:
    """The mean of what the board really draws, which no sensor shows."""
    before, begun = board.truth(), time.monotonic()
    time.sleep(seconds)
    after, ended = board.truth(), time.monotonic()
    return float(after["input_j"] - before["input_j"]) / (ended - begun)


def test_a_cap_in_a_file_that_falls_and_rises_is_followed_and_true_power_stays_below(lab: Lab) -> None:
    board = lab.board("nano", "a", 31)
    file = lab.directory / "cap"
    write(file, "9\n")
    config = {
        "policy": "fixed",
        "fixed": {"gpu_frequency_hz": 921_600_000},
        "cap": {"power_w": 8.0},
        "guard": {"climb_after_s": 1},
        "cap_sources": {"file": {"path": str(file), "stale_after_s": 1, "fallback": {"power_w": 4.8}}},
    }
    service = lab.service(board, "a", config)
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz()[1] == 921_600_000, 10, "the clock is pinned: 8 W are the lowest cap")
        wait_for(lambda: true_power_w(board) > 5.5, 10, "the board draws more than it may soon")
        write(file, "5\n")
        wait_for(lambda: service.ask("status")["cap_w"] == 5.0, 5, "the new cap is noticed")
        wait_for(lambda: true_power_w(board) < 5.0, 15, "true power comes below the cap")
        assert true_power_w(board, 2.0) < 5.0, "and stays there"
        low = board.bounds_hz()[1]
        assert low < 921_600_000
        shown = traingov("cap", "get", "--socket", str(service.socket)).stdout.splitlines()
        assert shown[0].startswith(f"5 W over 1 s (file {file}, since ")
        assert shown[1].split(", since")[0] == "  8 W over 1 s       configuration"
        file.unlink()
        wait_for(lambda: "cap-file" in service.ask("status")["conditions"], 5, "the lost file is told")
        wait_for(lambda: service.ask("status")["cap_w"] == 4.8, 5, "the fallback holds")
        write(file, "null\n")
        wait_for(lambda: service.ask("status")["cap_w"] == 8.0, 5, "the file asks for nothing any more")
        wait_for(lambda: board.bounds_hz()[1] > low, 15, "the clock rises again")
        assert "cap-file" not in service.ask("status")["conditions"]


def test_a_battery_that_discharges_caps_the_board_and_a_command_with_a_time_to_live_lapses(lab: Lab) -> None:
    board = lab.board("nano", "a", 32)
    battery = Path(board.root) / "sys/class/power_supply/TESTBAT"
    battery.mkdir(parents=True)
    for name, text in (("type", "Battery"), ("capacity", "80"), ("status", "Discharging")):
        (battery / name).write_text(f"{text}\n")
    rules = [{"when": "discharging", "below_percent": 30, "cap": {"power_w": 5}}]
    config = {"policy": "observe", "cap_sources": {"battery": {"rules": rules, "interval_s": 0.5}}}
    service = lab.service(board, "a", config)
    assert service.ask("status")["cap_w"] is None
    (battery / "capacity").write_text("20\n")
    wait_for(lambda: service.ask("status")["cap_w"] == 5.0, 5, "the rule holds")
    agent = ("cap", "set", "4.5", "--source", "solar", "--ttl", "4", "--socket", str(service.socket))
    assert traingov(*agent).stdout.startswith(f"4.5 W over 1 s (command solar by {_me()}, since ")
    assert service.ask("status")["cap_w"] == 4.5
    wait_for(lambda: service.ask("status")["cap_w"] == 5.0, 10, "the agent's cap lapses")
    (battery / "status").write_text("Charging\n")
    wait_for(lambda: service.ask("status")["cap_w"] is None, 5, "on the charger nothing is asked for")


def _me() -> str:
    return f"{pwd.getpwuid(os.getuid()).pw_name} (uid {os.getuid()})"
