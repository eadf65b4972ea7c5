"""Over-current counters and throttle pulses, and thermal throttling below the bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traingov_sim.board.boardspec import load_board, noiseless
from traingov_sim.board.overcurrent import CurrentLimits
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.board.surroundings import Surroundings
from traingov_sim.surfaces import load

ORIN = noiseless(load_board("agx-orin"))
BERT = load("agx-orin", "bert-base/mnli")
TOP = ORIN.gpu.frequencies_hz[-1]


def training(board: VirtualBoard, until_s: float, hz: int = TOP, batch_size: int = 16) -> int:
    """Train at ``hz`` from the board's present until ``until_s``; steps that ended."""
    board.set_bounds(hz, hz, board.t_s)
    steps = board.truth(board.t_s).steps
    for _ in range(2):
        board.submit(BERT, batch_size, board.t_s)
    while board.t_s < until_s:
        board.advance(min(until_s, board.next_event_s()))
        while board.finished:
            board.finished.popleft()
            board.submit(BERT, batch_size, board.t_s)
    return board.truth(until_s).steps - steps


def test_without_limits_no_event_is_ever_counted() -> None:
    board = VirtualBoard(ORIN, switch_delay_s=0.0)
    training(board, 20.0)
    assert board.sensors(20.0).oc_events == (0, 0, 0)


def test_a_gpu_above_the_instantaneous_limit_counts_about_eight_events_a_second_and_works_at_half_the_pace() -> None:
    free = VirtualBoard(ORIN, switch_delay_s=0.0)
    free_steps = training(free, 20.0)
    board = VirtualBoard(ORIN, switch_delay_s=0.0)
    board.over_current.set_limits({"VDD_GPU_SOC": CurrentLimits(crit_a=0.3)})
    steps = training(board, 20.0)
    _, average, instantaneous = board.sensors(20.0).oc_events
    assert average == 0
    assert 7 <= instantaneous / 20 <= 8.5
    assert 0.45 < steps / free_steps < 0.8
    assert board.truth(20.0).input_j < 0.9 * free.truth(20.0).input_j
    assert board.clock.hz == TOP  # pulses are skipped: no devfreq file shows it


def test_the_average_limit_is_slower_than_the_instantaneous_one() -> None:
    board = VirtualBoard(ORIN, switch_delay_s=0.0)
    board.advance(2.0)
    board.over_current.set_limits({"VDD_GPU_SOC": CurrentLimits(max_a=0.5)})
    training(board, 2.1)
    assert board.over_current.counts == (0, 0, 0)
    training(board, 6.0)
    assert board.over_current.counts[1] > 0
    assert board.over_current.counts[2] == 0


def test_at_a_lower_clock_the_counters_stay_flat() -> None:
    board = VirtualBoard(ORIN, switch_delay_s=0.0)
    training(board, 5.0)
    amperes = board.sensors(5.0).readings[0].milliamperes / 1000
    board.over_current.set_limits({"VDD_GPU_SOC": CurrentLimits(crit_a=0.9 * amperes)})
    training(board, 10.0)
    raised = board.over_current.counts
    assert raised[2] > 0
    training(board, 11.0, hz=612_000_000)
    settled = board.over_current.counts
    training(board, 20.0, hz=612_000_000)
    assert board.over_current.counts == settled


def test_a_weak_supply_counts_under_voltage() -> None:
    board = VirtualBoard(ORIN, switch_delay_s=0.0)
    board.over_current.set_supply(10.0)
    training(board, 5.0)
    assert board.over_current.counts[0] > 0
    assert board.over_current.counts[1:] == (0, 0)


def test_a_board_without_counters_has_no_limits_to_set() -> None:
    board = VirtualBoard(noiseless(load_board("nano")))
    with pytest.raises(ValueError, match="soctherm_oc"):
        board.over_current.set_limits({"POM_5V_IN": CurrentLimits(crit_a=1.0)})
    with pytest.raises(ValueError, match="no rail VDD_X"):
        VirtualBoard(ORIN).over_current.set_limits({"VDD_X": CurrentLimits()})
    with pytest.raises(ValueError, match="max_a and crit_a"):
        CurrentLimits(max_a=0.0)


def test_heat_lowers_the_clock_below_the_bounds_and_the_cooling_device_says_so() -> None:
    spec = replace(ORIN, thermal=replace(ORIN.thermal, board_tau_s=5.0))
    board = VirtualBoard(spec, switch_delay_s=0.0)
    board.thermal.ambient_celsius = 90.0
    training(board, 40.0)
    seen = board.sensors(40.0)
    assert board.clock.bounds() == (TOP, TOP)
    assert seen.gpu_frequency_hz < TOP
    assert seen.throttle_steps > 0
    board.thermal.ambient_celsius = 20.0
    board.release("")
    board.advance(140.0)
    assert board.sensors(140.0).throttle_steps == 0


def test_a_clock_that_does_not_follow_reads_back_what_was_written() -> None:
    board = VirtualBoard(ORIN, switch_delay_s=0.1)
    board.set_bounds(TOP, TOP, 0.0)
    board.advance(1.0)
    board.set_follows(False, 1.0)
    board.set_bounds(306_000_000, 306_000_000, 1.0)
    board.advance(3.0)
    assert board.clock.bounds() == (306_000_000, 306_000_000)
    assert board.clock.hz == TOP
    board.set_follows(True, 3.0)
    assert board.clock.hz == 306_000_000


def test_disturbances_cost_nothing_when_there_are_none() -> None:
    calm, told = VirtualBoard(ORIN, switch_delay_s=0.0), VirtualBoard(ORIN, switch_delay_s=0.0)
    told.set_surroundings(Surroundings(), 0.0)
    told.over_current.set_limits({})
    training(calm, 10.0)
    training(told, 10.0)
    assert calm.truth(10.0) == told.truth(10.0)
