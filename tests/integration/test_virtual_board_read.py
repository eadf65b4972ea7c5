"""A virtual board as the daemon reads it: its tree by the daemon's discovery, its lines by the daemon's parser."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from traingov.device.board import identify, power_mode
from traingov.device.discovery import find_gpu, gpu_load
from traingov.device.files import SystemFiles
from traingov.telemetry.rails import RailTable
from traingov.telemetry.sysfs import SysfsMeter
from traingov.telemetry.tegrastats import parse_line
from traingov_sim.board.boardspec import board_names, load_board, noiseless
from traingov_sim.board.gpuqueue import GpuQueue
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.board.tegrastats_text import TegrastatsText
from traingov_sim.kernel.entries import boot_id
from traingov_sim.kernel.tree import FolderTree
from traingov_sim.surfaces import CLOCKS_HZ, USABLE_MEMORY_BYTES, load, names

RELEASES = {
    "nano": "R32.7", "tx2": "R32.7", "tx2-nx": "R32.7", "xavier-nx": "R35.4", "agx-xavier": "R35.4",
    "orin-nano": "R36.3", "orin-nx": "R35.3", "agx-orin-r35": "R35.4", "agx-orin": "R36.4", "thor": "R38.4",
    "thor-r39": "R39.2",
}  # fmt: skip
BOARD_FILES = Path(__file__).parents[2] / "etc" / "boards"


@pytest.mark.parametrize("name", board_names())
def test_every_token_of_a_line_is_known_and_power_adds_up(name: str) -> None:
    board = VirtualBoard(noiseless(load_board(name)))
    snapshot = board.sensors(30.0)
    reading = parse_line(TegrastatsText(board.spec).line(snapshot, "10-26-2025 05:10:55"))
    assert reading.unknown == ()
    assert sorted(reading.rails_w) == sorted(_rails_as_read([rail.name for rail in board.spec.rails]))
    assert len(reading.cpus) == board.spec.cpu.count
    assert reading.ram_total_bytes == board.spec.memory_total_bytes // 2**20 * 2**20
    assert reading.gpu_frequency_hz == pytest.approx(snapshot.gpu_frequency_hz, abs=1_000_000)
    truth = board.truth(30.0)
    rule = RailTable.load(BOARD_FILES).rule_for(reading.rails_w, board.spec.model)
    # Each rail rounds to a step of its monitor.
    steps_w = sum(rail.volts * rail.lsb_a for rail in board.spec.rails) / 2
    assert rule.input_power_w(reading.rails_w) == pytest.approx(truth.input_w, abs=steps_w)
    compute = [rail for rail in board.spec.rails if rail.name in rule.compute_rails]
    rest_w = truth.input_w - truth.compute_w  # Thor's rail of the CPU carries a share of the SoC as well
    expected_w = truth.compute_w + sum(rail.rest for rail in compute) * rest_w
    assert rule.compute_power_w(reading.rails_w) == pytest.approx(expected_w, abs=steps_w)


def _rails_as_read(names: list[str]) -> list[str]:
    """The second rail of a name is read as NAME_2."""
    return [name if name not in names[:i] else f"{name}_2" for i, name in enumerate(names)]


@pytest.mark.parametrize("name", board_names())
def test_the_kernels_files_give_the_rails_the_clock_and_the_load_that_tegrastats_prints(
    name: str, tmp_path: Path
) -> None:
    board = VirtualBoard(load_board(name), 5)
    snapshot = board.sensors(12.0)
    FolderTree(tmp_path, board, boot_id(0, 1), threading.Lock()).refresh(snapshot)
    line = parse_line(TegrastatsText(board.spec).line(snapshot, "10-26-2025 05:10:55"))
    read = SysfsMeter(SystemFiles(str(tmp_path))).read()
    assert dict(read.rails_w) == pytest.approx(dict(line.rails_w), abs=0.0011)  # the text is in whole milliwatts
    assert read.gpu_frequency_hz == snapshot.gpu_frequency_hz
    assert read.gpu_utilization == (pytest.approx(snapshot.gpu_utilization, abs=0.001) if board.spec.gpu.load else None)
    shown = {zone.lower(): celsius for zone, celsius in read.temperatures_celsius.items()}
    for zone, celsius in line.temperatures_celsius.items():
        if zone.lower() in shown:
            assert shown[zone.lower()] == pytest.approx(celsius, abs=0.002)


@pytest.mark.parametrize("name", board_names())
def test_the_daemons_discovery_finds_the_board_its_mode_and_its_gpu(name: str, tmp_path: Path) -> None:
    board = VirtualBoard(noiseless(load_board(name)))
    FolderTree(tmp_path, board, boot_id(0, 1), threading.Lock()).refresh(board.sensors(1.0))
    files = SystemFiles(str(tmp_path))
    identity = identify(files)
    assert identity.name == board.spec.model
    assert identity.release.startswith(RELEASES[name])
    mode = board.spec.power_mode(board.spec.default_power_mode)
    assert identity.power_mode == mode.name
    assert power_mode(files).gpu_max_known
    assert power_mode(files).gpu_max_hz == mode.gpu_max_hz
    gpu = find_gpu(files)
    assert gpu is not None
    assert gpu.path == "/" + board.spec.gpu.node
    assert gpu.available_frequencies_hz == board.spec.gpu.frequencies_hz
    assert gpu_load(files, gpu) == (0.0 if board.spec.gpu.load else None)


@pytest.mark.parametrize("name", board_names())
def test_the_board_has_the_clocks_and_the_memory_its_surfaces_were_made_for(name: str) -> None:
    spec = load_board(name)
    assert spec.gpu.frequencies_hz == CLOCKS_HZ[name]
    assert names(name)
    for workload in names(name):
        surface = load(name, workload)
        assert surface.memory_bytes(8) < USABLE_MEMORY_BYTES[name]
        assert surface.phases(8, spec.gpu.frequencies_hz[-1])
    queue = GpuQueue(spec.memory_total_bytes, spec.memory_used_bytes)
    assert queue.memory_total_bytes - queue.memory_used_bytes == USABLE_MEMORY_BYTES[name]
