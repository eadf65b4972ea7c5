"""The virtual board's core, in pseudo-time."""

from __future__ import annotations

import itertools
import math
import random
import re
import statistics
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_sim.board.boardspec import BoardSpec, board_names, load_board, noiseless
from traingov_sim.board.physics import Contention, OutOfMemory, VirtualBoard
from traingov_sim.board.sensor import PowerSensor, ou_for_second_means, quantised
from traingov_sim.board.tegrastats_text import TegrastatsText
from traingov_sim.board.thermal import Thermal
from traingov_sim.surface import Phase, mean_power_w, step_time_s

TOP = 921_600_000
LOW = 307_200_000


@dataclass(frozen=True)
class Linear:
    """A host phase, then a GPU phase that scales with batch size and clock."""

    board: str = "nano"
    workload: str = "linear"
    host_s: float = 0.01
    scale: float = 1.0

    def phases(self, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        share, much = gpu_frequency_hz / TOP, self.scale
        return (
            Phase(self.host_s, 2.5 * much, 0.3 * much, 0.9 * much, False),
            Phase(0.001 * batch_size / share, (2 + 4 * share) * much, 3.2 * share * much, 0.5 * much, True),
        )

    def memory_bytes(self, batch_size: int) -> int:
        return 10_000_000 * batch_size


def nano(**power: float) -> BoardSpec:
    spec = noiseless(load_board("nano"))
    return replace(spec, power=replace(spec.power, **power))


def pinned(hz: int, spec: BoardSpec | None = None, delay_s: float = 0.0) -> VirtualBoard:
    board = VirtualBoard(spec or nano(), switch_delay_s=delay_s)
    board.set_bounds(hz, hz, 0.0)
    return board


def run_steadily(board: VirtualBoard, surface: Linear, batch_size: int, until_s: float) -> list[float]:
    """Keep two steps queued until ``until_s``; when they ended."""
    ends: list[float] = []
    for _ in range(2):
        board.submit(surface, batch_size, board.t_s)
    while board.t_s < until_s:
        board.advance(min(board.next_event_s(), until_s))
        while board.finished:
            ends.append(board.finished.popleft()[1])
            board.submit(surface, batch_size, board.t_s)
    return ends


@given(st.integers(1, 200), st.sampled_from(load_board("nano").gpu.frequencies_hz), st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_queued_steps_take_the_surfaces_time_and_energy_one_after_another(batch_size: int, hz: int, steps: int) -> None:
    board, surface = pinned(hz), Linear()
    tickets = [board.submit(surface, batch_size, 0.0) for _ in range(steps)]
    done = board.run_until(tickets[-1])
    one = step_time_s(surface, batch_size, hz)
    assert done == pytest.approx(steps * one)
    assert [board.completion(t) for t in tickets] == [pytest.approx((i + 1) * one) for i in range(steps)]
    assert board.truth(done).input_j == pytest.approx(done * mean_power_w(surface, batch_size, hz))


def test_a_step_submitted_to_a_free_device_begins_when_it_was_submitted() -> None:
    board, surface = pinned(TOP), Linear()
    first = board.run_until(board.submit(surface, 10, 0.0))
    second = board.run_until(board.submit(surface, 10, 1.0))
    assert first == pytest.approx(0.02)
    assert second == pytest.approx(1.02)


def test_a_clock_change_in_the_middle_of_a_step_rescales_only_what_is_left() -> None:
    board, surface = pinned(TOP), Linear()
    ticket = board.submit(surface, 100, 0.0)  # 10 ms host, then 100 ms at the top clock
    board.set_bounds(LOW, LOW, 0.06)  # half of the GPU's phase is done; the rest runs at a third of the clock
    assert board.run_until(ticket) == pytest.approx(0.06 + 0.05 * 3)


def test_a_written_bound_reaches_the_clock_after_the_boards_switch_delay() -> None:
    board = VirtualBoard(nano())
    board.set_bounds(LOW, LOW, 1.0)
    assert board.clock.bounds() == (LOW, LOW)
    board.advance(1.0 + 0.65 - 1e-6)
    assert board.clock.hz < LOW
    board.advance(1.0 + 0.65)
    assert board.clock.hz == LOW
    assert board.clock_history[-1] == (pytest.approx(1.65), LOW)


def test_without_a_pin_the_clock_rises_under_load_and_falls_to_the_floor_when_idle() -> None:
    board = VirtualBoard(nano())
    run_steadily(board, Linear(host_s=0.001), 50, 2.0)
    assert board.clock.hz == TOP
    assert board.sensors(2.0).gpu_utilization > 0.8
    board.advance(10.0)
    assert board.clock.hz == 76_800_000
    assert board.sensors(10.0).gpu_utilization < 0.01


def test_two_clients_take_turns_and_each_slows_the_other() -> None:
    board, surface = pinned(TOP, nano(sharing_penalty=0.1)), Linear()
    order = {board.submit(surface, 10, 0.0, client): client for _ in range(3) for client in ("a", "b")}
    board.advance(1.0)
    ended = [order[ticket] for ticket, _ in board.finished]
    assert ended == ["a", "b", "a", "b", "a", "b"]
    # The first step began before there was company.
    assert board.finished[-1][1] == pytest.approx(0.02 + 5 * 0.022)


def test_a_client_that_leaves_takes_its_waiting_steps_and_memory_along() -> None:
    board, surface = pinned(TOP), Linear()
    running, waiting = (board.submit(surface, 10, 0.0, "a") for _ in range(2))
    board.release("a")
    assert board.run_until(running) == pytest.approx(0.02)
    with pytest.raises(KeyError):
        board.completion(waiting)
    assert board.queue.memory_used_bytes == board.spec.memory_used_bytes


def test_a_batch_that_does_not_fit_is_out_of_memory_and_the_job_keeps_what_it_had() -> None:
    board, surface = pinned(TOP), Linear()
    board.submit(surface, 100, 0.0, "a")
    with pytest.raises(OutOfMemory, match="batch 400 needs 4000 MB"):
        board.submit(surface, 400, 0.0, "a")
    with pytest.raises(OutOfMemory):
        board.submit(surface, 300, 0.0, "b")  # a's thousand megabytes are taken
    assert board.queue.memory_used_bytes == board.spec.memory_used_bytes + 1_000_000_000


def test_contention_slows_and_heats_only_the_batch_sizes_it_names() -> None:
    board, surface = pinned(TOP), Linear()
    board.contention = Contention(time_factor=2.0, power_factor=1.5, from_batch_size=20)
    assert board.run_until(board.submit(surface, 10, 0.0)) == pytest.approx(0.02)
    before = board.truth(board.t_s)
    assert board.run_until(board.submit(surface, 20, 1.0)) == pytest.approx(1.0 + 2 * 0.03)
    after = board.truth(board.t_s)
    idle_j = (1.0 - before.t_s) * 1.37
    expected = 0.02 * (2.5 + 0.5 * 1.25) + 0.04 * (6.0 + 0.5 * 4.75)
    assert after.input_j - before.input_j - idle_j == pytest.approx(expected)


def test_a_change_of_batch_size_costs_time_once() -> None:
    board, surface = pinned(TOP, nano(batch_change_s=0.5)), Linear()
    first, second = (board.submit(surface, 10, 0.0) for _ in range(2))
    assert board.run_until(first) == pytest.approx(0.52)
    assert board.run_until(second) == pytest.approx(0.54)


def test_a_hot_board_clamps_its_clock_and_gives_it_back_when_cool() -> None:
    board = pinned(TOP)
    board.thermal.ambient_celsius = 90.0
    run_steadily(board, Linear(), 100, 400.0)
    assert board.clock.bounds() == (TOP, TOP)
    assert board.clock.hz < TOP
    assert board.thermal.die_celsius < board.spec.thermal.trip_celsius + 4
    board.thermal.ambient_celsius = 20.0
    board.advance(1500.0)
    assert board.clock.hz == TOP


def test_a_power_mode_limits_the_clock_to_the_next_lower_step() -> None:
    board = VirtualBoard(nano())
    board.set_power_mode(1, 1.0)  # 640 MHz is no step of the table
    assert board.clock.bounds() == (76_800_000, 614_400_000)
    run_steadily(board, Linear(), 100, 3.0)
    assert board.clock.hz == 614_400_000
    assert board.sensors(3.0).cpu_utilization[2:] == (None, None)
    with pytest.raises(ValueError, match="no power mode 7; it has 0 "):
        board.set_power_mode(7, 3.0)


def test_a_value_off_the_table_snaps_up_on_a_nano_and_a_minimum_above_the_maximum_is_refused() -> None:
    board = VirtualBoard(nano())
    board.write_devfreq("max_freq", "300000000", 0.0)
    assert board.clock.bounds() == (76_800_000, LOW)
    with pytest.raises(OSError, match="Invalid"):
        board.write_devfreq("min_freq", str(TOP), 0.0)
    assert board.clock.bounds() == (76_800_000, LOW)


@pytest.mark.parametrize("name", board_names())
def test_energy_from_noisy_printed_lines_agrees_with_the_true_counter(name: str) -> None:
    board = VirtualBoard(load_board(name), 3)
    names = [rail.name for rail in board.spec.rails if rail.gpu == rail.cpu == rail.rest == 1]
    rails = "|".join(names or [rail.name for rail in board.spec.rails if rail.behind is None])
    surface = Linear(board=name, scale=4.0 if name == "agx-orin" else 1.0)
    text = TegrastatsText(board.spec)
    run_steadily(board, surface, 100, 20.0)
    before, energy_j = board.truth(20.0).input_j, 0.0
    for i in range(6000):
        line = text.line(board.sensors(20.0 + i * 0.01))
        energy_j += sum(int(mw) for mw in re.findall(rf"(?:{rails}) (\d+)(?:mW)?/", line)) / 1000 * 0.01
        while board.finished:
            board.finished.popleft()
            board.submit(surface, 100, board.t_s)
    assert energy_j == pytest.approx(board.truth(80.0).input_j - before, rel=0.02)


def test_time_never_runs_backwards() -> None:
    board = VirtualBoard(nano(), start_s=10.0)
    with pytest.raises(ValueError, match="time runs forwards"):
        board.advance(9.0)


@pytest.mark.parametrize("name", board_names())
def test_one_seed_gives_one_history_however_time_is_cut(name: str) -> None:
    def history(seed: int, pieces: int) -> tuple[float, tuple[object, ...]]:
        board = VirtualBoard(load_board(name), seed)
        surface = Linear(board=name)
        last = [board.submit(surface, 20, 0.0) for _ in range(100)][-1]
        for i in range(pieces):
            board.advance(8.0 * (i + 1) / pieces)
        assert board.completion(last) is not None
        return board.truth(8.0).input_j, board.sensors(8.0).readings

    coarse, fine = history(1, 1), history(1, 977)
    assert coarse[0] == pytest.approx(fine[0])
    assert coarse[1] == fine[1]
    assert history(2, 1)[0] != pytest.approx(coarse[0], rel=1e-6)


def test_one_second_means_of_the_reading_have_the_noise_asked_for() -> None:
    spec = load_board("nano")
    spec = replace(noiseless(spec), sensor=replace(spec.sensor, noise_sd=0.01, noise_autocorrelation=0.7))
    board = pinned(TOP, spec)
    means = []
    for second in range(3000):
        seen = []
        for tick in range(50):
            reading = board.sensors(second + (tick + 1) * 0.02).readings[0]
            assert reading is not None
            seen.append(reading.milliwatts)
        means.append(statistics.fmean(seen))
    centre = statistics.fmean(means)
    sd = statistics.pstdev(means)
    lagged = statistics.fmean((a - centre) * (b - centre) for a, b in itertools.pairwise(means)) / sd**2
    assert centre == pytest.approx(1370, rel=0.005)
    assert sd / centre == pytest.approx(0.01, rel=0.2)
    assert lagged == pytest.approx(0.7, abs=0.08)


@given(st.floats(0.05, 0.95))
def test_the_noise_process_is_solved_for_any_autocorrelation(wanted: float) -> None:
    tau_s, sd = ou_for_second_means(0.01, wanted)
    a = 1 / tau_s
    shape = 2 * (a - 1 + math.exp(-a)) / a**2
    assert (1 - math.exp(-a)) ** 2 / a**2 / shape == pytest.approx(wanted, rel=1e-3)
    assert sd * math.sqrt(shape) == pytest.approx(0.01)


def test_stalls_come_at_their_rate_and_draw_idle_power() -> None:
    board = pinned(TOP, nano(stalls_per_s=0.05))
    run_steadily(board, Linear(), 100, 2000.0)
    stalls = board.truth(board.t_s).stalls
    # 0.05 a second of computing, which is 2000 s less the stalls' 0.7 s each.
    assert stalls == pytest.approx(0.05 * (2000 - 0.7 * stalls), rel=0.25)


def test_warmth_raises_power_by_the_leakage() -> None:
    board = pinned(TOP, nano(leakage_per_kelvin=0.01))
    board.thermal.board_celsius = 65.0
    board.advance(0.02)
    assert board.truth(0.02).input_w == pytest.approx(1.37 * 1.2, rel=0.01)


def test_a_faulty_sensor_sticks_misses_or_spikes_on_the_rails_named_only() -> None:
    board = pinned(TOP)
    board.advance(1.0)
    before = board.sensors(1.0).readings
    board.sensor.set_fault("stuck", ["POM_5V_IN"])
    run_steadily(board, Linear(), 100, 3.0)
    stuck = board.sensors(3.0).readings
    assert stuck[0] == before[0]
    assert stuck[1] != before[1]
    board.sensor.set_fault("missing", ["POM_5V_IN"])
    board.advance(3.1)
    assert board.sensors(3.1).readings[0] is None
    assert board.sensors(3.1).readings[1] is not None
    board.sensor.set_fault("spikes")
    seen = []
    for i in range(500):
        reading = board.sensors(3.2 + i * 0.02).readings[0]
        assert reading is not None
        seen.append(reading.milliwatts)
    assert max(seen) > 3 * statistics.median(seen)
    with pytest.raises(ValueError, match="use one of stuck, missing, spikes"):
        board.sensor.set_fault("melted")
    with pytest.raises(ValueError, match="no rail VDD_NONE"):
        board.sensor.set_fault("stuck", ["VDD_NONE"])


def test_power_is_read_in_the_registers_steps() -> None:
    rail = load_board("agx-orin").rails[0]
    assert quantised(rail, 2.9).milliamperes in {140, 160}
    assert quantised(rail, 2.9).milliwatts == pytest.approx(2800, abs=20)
    assert quantised(rail, 0.0).milliwatts == 0


def test_a_reading_lags_a_step_in_power_by_the_sensors_time_constant() -> None:
    spec = noiseless(load_board("nano"))
    sensor = PowerSensor(spec.rails, spec.sensor, random.Random(0))
    sensor.update([1.0, 0.0, 0.0])
    shown = []
    for _ in range(20):
        sensor.update([5.0, 0.0, 0.0])
        reading = sensor.readings[0]
        assert reading is not None
        shown.append(reading.milliwatts / 1000)
    # One lag (two updates) after the step 1 − 1/e of it shows, to the register's 41 mW.
    assert shown[1] == pytest.approx(1 + 4 * (1 - math.exp(-1)), abs=0.05)
    assert shown[-1] == pytest.approx(5.0, abs=0.05)


def test_temperature_settles_at_ambient_plus_resistance_times_power() -> None:
    spec = load_board("nano").thermal
    thermal = Thermal(spec)
    for _ in range(2000):
        thermal.advance(1.0, 5.0, 3.0, 11)
    assert thermal.board_celsius == pytest.approx(25 + 5 * spec.board_kelvin_per_w)
    assert thermal.die_celsius == pytest.approx(25 + 5 * spec.board_kelvin_per_w + 3 * spec.die_kelvin_per_w)


@pytest.mark.parametrize("name", board_names())
def test_the_rails_of_a_board_add_up_to_its_input_power(name: str) -> None:
    spec = load_board(name)
    inputs = [rail for rail in spec.rails if rail.gpu == rail.cpu == rail.rest == 1]
    if inputs:
        assert len(inputs) == 1
    else:
        for part in ("gpu", "cpu", "rest"):
            assert sum(getattr(rail, part) for rail in spec.rails if rail.behind is None) == pytest.approx(1)


def test_an_unknown_board_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="choose one of agx-orin, .*nano, .*tx2-nx"):
        load_board("vega")
