"""What other processes, the memory's clock and libraries do to a step's cost, on the calibrated surfaces."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from traingov_sim.board.boardspec import board_names, load_board, noiseless
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.board.surroundings import StepCosts, Surroundings
from traingov_sim.surface import Phase, Scales, Surface, mean_power_w, step_time_s
from traingov_sim.surfaces import load

LOW, TOP = 307_200_000, 921_600_000
RESNET = load("nano", "resnet18")


def within(surroundings: Surroundings, board: str = "nano", surface: Surface = RESNET) -> Surface:
    costs = StepCosts(load_board(board))
    costs.surround(surroundings, [], TOP)
    return costs.of(surface)


def slowdown(surroundings: Surroundings, batch_size: int, hz: int) -> float:
    return step_time_s(within(surroundings), batch_size, hz) / step_time_s(RESNET, batch_size, hz)


def test_memory_contention_hits_points_that_wait_for_memory_more_than_others() -> None:
    busy = Surroundings(memory_taken=0.4)
    low, high = slowdown(busy, 32, LOW), slowdown(busy, 32, TOP)
    assert 1.02 < low < high
    assert high / low > 1.05


def test_memory_contention_takes_exactly_its_share_of_what_waits_for_memory() -> None:
    p = RESNET.parameters
    gpu = within(Surroundings(memory_taken=0.5)).phases(8, LOW)[1].duration_s
    share = LOW / TOP
    padded = (1 - p["wave_share"]) * 8 + p["wave_share"] * -(-8 // p["wave_size"]) * p["wave_size"]
    compute = p["compute_s"] * (padded + p["half_batch"]) / share
    memory = 2 * (8 * p["memory_s"] + p["memory_step_s"])
    n = p["norm"]
    assert gpu == pytest.approx((compute**n + memory**n + p["launch_s"] ** n) ** (1 / n))


def test_a_cache_that_is_too_small_hits_batches_beyond_it_only() -> None:
    spill = Surroundings(cache_spill=1.0, cache_batch_size=32)
    assert slowdown(spill, 8, TOP) == slowdown(spill, 32, TOP) == 1.0
    assert 1.0 < slowdown(spill, 64, TOP) < slowdown(spill, 128, TOP)


@pytest.mark.parametrize("name", board_names())
def test_a_cap_on_the_memorys_clock_slows_steps_and_lowers_power(name: str) -> None:
    spec = load_board(name)
    workload = "resnet18" if name != "agx-orin" else "bert-base/mnli"
    surface = load(name, workload)
    b, hz = 16, spec.gpu.frequencies_hz[-1]
    capped = within(Surroundings(emc_hz=spec.emc.frequencies_hz[-2]), name, surface)
    assert step_time_s(capped, b, hz) > 1.01 * step_time_s(surface, b, hz)
    assert mean_power_w(capped, b, hz) < mean_power_w(surface, b, hz)


def test_a_memory_clock_off_its_table_becomes_the_next_lower_step_and_its_interface_saves_power() -> None:
    board = VirtualBoard(noiseless(load_board("nano")))
    board.advance(1.0)
    before = board.truth(1.0).input_w
    board.set_surroundings(Surroundings(emc_hz=900_000_000), 1.0)
    assert board.costs.emc_hz == 800_000_000
    assert before - board.truth(1.0).input_w == pytest.approx(0.25 / 2)
    assert board.sensors(1.0).emc_hz == 800_000_000


def test_a_library_update_moves_each_kind_of_work_by_its_own_factor() -> None:
    faster = Surroundings(software=Scales(compute=0.8, host=0.5))
    before, after = RESNET.phases(32, LOW), within(faster).phases(32, LOW)
    assert after[0].duration_s == pytest.approx(before[0].duration_s / 2)
    assert 0.8 < after[1].duration_s / before[1].duration_s < 1.0
    assert after[2] == before[2]
    assert slowdown(faster, 8, TOP) != pytest.approx(slowdown(faster, 128, LOW), rel=0.01)


def test_a_running_step_feels_a_change_at_once() -> None:
    board = VirtualBoard(noiseless(load_board("nano")), switch_delay_s=0.0)
    board.set_bounds(LOW, LOW, 0.0)
    whole, host = step_time_s(RESNET, 64, LOW), RESNET.phases(64, LOW)[0].duration_s
    ticket = board.submit(RESNET, 64, 0.0)
    board.set_surroundings(Surroundings(software=Scales(host=3.0)), host / 2)
    assert board.run_until(ticket) == pytest.approx(whole + host)


def test_another_processs_work_is_drawn_from_the_cpu_rail_even_when_the_job_rests() -> None:
    board = VirtualBoard(noiseless(load_board("nano")))
    before = board.truth(0.0)
    board.set_surroundings(Surroundings(other_cpu_w=1.5), 0.0)
    after = board.truth(0.0)
    assert after.input_w - before.input_w == pytest.approx(1.5)
    assert after.compute_w - before.compute_w == pytest.approx(1.5)


@dataclass(frozen=True)
class Opaque:
    """A surface that does not know its kinds of work."""

    board: str = "nano"
    workload: str = "opaque"

    def phases(self, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        return (Phase(0.1, 4.0, 2.0, 1.0, True),)

    def memory_bytes(self, batch_size: int) -> int:
        return 1


def test_a_surface_that_cannot_be_disturbed_is_named_and_nothing_changes() -> None:
    board = VirtualBoard(noiseless(load_board("nano")))
    board.submit(Opaque(), 8, 0.0)
    with pytest.raises(ValueError, match=r"nano/opaque does not say what"):
        board.set_surroundings(Surroundings(memory_taken=0.5), 0.0)
    assert board.costs.surroundings == Surroundings()
    board.set_surroundings(Surroundings(other_cpu_w=1.0), 0.0)
    quiet = VirtualBoard(noiseless(load_board("nano")))
    quiet.set_surroundings(Surroundings(memory_taken=0.5), 0.0)
    with pytest.raises(ValueError, match="nano/opaque"):
        quiet.submit(Opaque(), 8, 0.0)
    assert quiet.queue.busy_clients == 0


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"memory_taken": 1.0}, "memory_taken"),
        ({"other_cpu_w": -1}, "other_cpu_w"),
        ({"emc_hz": 0}, "emc_hz"),
        ({"heat": 1}, "nothing called heat"),
        ({"software": {"speed": 2}}, "nothing called speed"),
        ({"software": {"compute": 0}}, "compute must be positive"),
    ],
)
def test_surroundings_without_sense_are_refused_in_one_line(data: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Surroundings.from_json(data)
