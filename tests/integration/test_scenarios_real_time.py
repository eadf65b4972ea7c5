"""The evaluation's scenarios end to end at real time: the real service on virtual boards whose surroundings change.

One short run always; the long ones (a few minutes each) with TRAINGOV_SCENARIOS=1 in the environment.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rig import FAST, Board, Lab, board_set, state_of, traingov, training, wait_for

from traingov_sim.evaluate.caps_over_time import SERIES, CapSeries

WANTED = os.environ.get("TRAINGOV_SCENARIOS") == "1"
ON_DEMAND = pytest.mark.skipif(not WANTED, reason="takes minutes: set TRAINGOV_SCENARIOS=1 to run it")
SIZES = [8, 32, 128]


class Power(threading.Thread):
    """True energy of a board, read about ten times a second: (time, joules)."""

    def __init__(self, board: Board) -> None:
        super().__init__(daemon=True)
        self.board, self.readings, self.stopping = board, list[tuple[float, float]](), threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(0.1):
            truth = self.board.truth()
            self.readings.append((truth["t_s"], truth["input_j"]))

    def windows(self, since_s: float, until_s: float) -> list[float]:
        """Means of about one second that lie within these times."""
        found = []
        for i, (t, joules) in enumerate(self.readings):
            later = next(((u, j) for u, j in self.readings[i:] if u >= t + 1.0), None)
            if t >= since_s and later is not None and later[0] <= until_s:
                found.append((later[1] - joules) / (later[0] - t))
        return found


@contextmanager
def metered(board: Board) -> Iterator[Power]:
    power = Power(board)
    power.start()
    try:
        yield power
    finally:
        power.stopping.set()
        power.join(5)


def below(power: Power, cap_w: float) -> bool:
    """Whether the windows of the last three seconds lie below the cap."""
    now = time.monotonic()
    windows = power.windows(now - 3, now)
    return len(windows) > 5 and max(windows) < cap_w


def test_a_battery_that_the_board_itself_empties_brings_its_cap_and_true_power_follows(lab: Lab) -> None:
    board = lab.board("nano", "a", 61)
    board_set(board, battery={"capacity_wh": 0.05, "charge": 0.6, "solar": {"peak_w": 0.0}})
    rules = [{"when": "discharging", "below_percent": 30, "cap": {"power_w": 4.6}}]
    config = {
        "policy": "fixed",
        "fixed": {"gpu_frequency_hz": 921_600_000},
        "cap_sources": {"battery": {"rules": rules, "interval_s": 0.5}},
    }
    service = lab.service(board, "a", config)
    with training(service, [32]), metered(board) as power:
        wait_for(lambda: board.bounds_hz()[1] == 921_600_000, 10, "the clock is pinned")
        wait_for(lambda: service.ask("status")["cap_w"] == 4.6, 25, "the battery falls below 30 %")
        wait_for(lambda: below(power, 4.6), 15, "true power follows")
        assert board.bounds_hz()[1] < 921_600_000


@ON_DEMAND
def test_a_cap_that_walks_is_followed_by_the_guard_and_steady_windows_of_true_power_stay_below_it(lab: Lab) -> None:
    board = lab.board("nano", "a", 62)
    walk: CapSeries = SERIES["random-walk"](4.2, 6.5, random.Random(5))
    steps = [(k * 10.0, watts) for k, (_, watts) in enumerate(walk.steps[:18])]
    # The guard alone: a policy that measures points goes above a cap for as long as it takes to give one up.
    config = {"policy": "fixed", "fixed": {"gpu_frequency_hz": 921_600_000}, "cap": {"power_w": 7.0}}
    service = lab.service(board, "a", config)
    with training(service, [32]), metered(board) as power:
        begun = time.monotonic()
        above = total = 0
        for k, (at_s, watts) in enumerate(steps):
            time.sleep(max(0.0, begun + at_s - time.monotonic()))
            assert traingov("cap", "set", f"{watts:.3f}", "--socket", str(service.socket)).returncode == 0
            since = time.monotonic() + 5.0
            until = begun + (steps[k + 1][0] if k + 1 < len(steps) else at_s + 10.0)
            time.sleep(max(0.0, until - 0.5 - time.monotonic()))
            windows = power.windows(since, until - 0.5)
            total += len(windows)
            above += sum(w > watts for w in windows)
        assert total > 300
        assert above / total < 0.05


@ON_DEMAND
def test_memory_contention_is_found_and_the_table_corrected(lab: Lab) -> None:
    board = lab.board("nano", "a", 63)
    service = lab.service(board, "a", {"profile": FAST})
    with training(service, SIZES):
        wait_for(lambda: state_of(service) == "joint", 90, "profiling ends")
        time.sleep(60)
        assert not [d for d in service.ask("explain") if d["kind"] == "drift"]
        board_set(board, surroundings={"memory_taken": 0.8, "other_cpu_w": 0.3})
        wait_for(lambda: [d for d in service.ask("explain") if d["kind"] == "drift"], 120, "drift is found")
        wait_for(lambda: [d for d in service.ask("explain") if d["kind"] == "revalidated"], 120, "and looked into")
        wait_for(lambda: state_of(service) == "joint", 120, "and the job goes on")


@ON_DEMAND
def test_heat_that_lowers_the_clock_is_told_apart_from_a_table_that_no_longer_holds(lab: Lab) -> None:
    board = lab.board("nano", "a", 64)
    service = lab.service(board, "a", {"profile": FAST})
    with training(service, SIZES):
        wait_for(lambda: state_of(service) == "joint", 90, "profiling ends")
        board_set(board, ambient_celsius=150.0)
        wait_for(lambda: board.truth()["throttle_steps"] > 0, 180, "the board throttles")
        wait_for(lambda: "thermal-throttling" in service.ask("status")["conditions"], 30, "the service says so")
        assert "table-off" not in service.ask("status")["conditions"]
        board_set(board, ambient_celsius=-100.0)
        wait_for(lambda: board.truth()["throttle_steps"] == 0, 180, "the board cools down")
        wait_for(lambda: "thermal-throttling" not in service.ask("status")["conditions"], 30, "and the service says so")


@ON_DEMAND
def test_another_power_mode_in_mid_run_is_governed_within_its_limits(lab: Lab) -> None:
    board = lab.board("nano", "a", 65)
    service = lab.service(board, "a", {"profile": FAST})
    with training(service, SIZES):
        wait_for(lambda: state_of(service) == "joint", 90, "profiling ends")
        board_set(board, power_mode=1)
        wait_for(lambda: board.bounds_hz()[1] <= 640_000_000, 10, "the bounds follow the mode")
        time.sleep(60)
        assert board.bounds_hz()[1] <= 640_000_000
        board_set(board, power_mode=0)
        wait_for(lambda: board.bounds_hz()[1] > 640_000_000, 60, "the first mode's table holds again")
