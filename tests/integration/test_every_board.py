"""Every virtual board is governed by the real service: found, pinned, told about, given back."""

from __future__ import annotations

import pytest
from rig import Board, Lab, Service, training, wait_for

from traingov_sim.board.boardspec import board_names, load_board

TRIED_ELSEWHERE = {"nano", "tx2-nx", "agx-orin"}  # by the demonstration and test_governed_run.py


def _reads_the_power(service: Service, board: Board) -> bool:
    """Of a moment: the two are asked one after the other."""
    told_w = service.ask("status")["input_power_w"]
    return told_w is not None and abs(told_w / board.truth()["input_w"] - 1) < 0.25


@pytest.mark.parametrize("name", sorted(set(board_names()) - TRIED_ELSEWHERE))
def test_a_job_on_the_board_is_governed_at_a_fixed_clock_and_the_clock_is_given_back(lab: Lab, name: str) -> None:
    spec = load_board(name)
    hz = spec.gpu.frequencies_hz[len(spec.gpu.frequencies_hz) // 2]
    board = lab.board(name, "a", 1)
    original = board.bounds_hz()
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": hz}})
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz() == (hz, hz), 10, "the clock is pinned")
        wait_for(lambda: abs((service.ask("status")["gpu_frequency_hz"] or 0) - hz) <= 1_000_000, 10, "it is seen")
        status = service.ask("status")
        assert status["board"] == spec.model
        wait_for(lambda: _reads_the_power(service, board), 10, "the power that is told is the board's")
        assert (status["gpu_utilization"] is None) == name.startswith("thor")
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
