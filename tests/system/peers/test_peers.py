"""Software that is not ours reads the virtual board as if it were real, and finds what the board knows to be true.

jetson-stats (service and client) and Zeus's Jetson reader, both unpatched, run in a mount namespace where the board's
tree is the machine's. They bring their own idea of a Jetson's files, so they check ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from traingov_sim.board.boardspec import BoardSpec, load_board
from traingov_sim.demo.lab import Board, Lab
from traingov_sim.gpu import Channel, EmulatedGpu

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
PYTHON = Path(os.environ.get("TRAINGOV_PEERS_PYTHON", ROOT / ".venvs/peers/bin/python"))
MISSING = f"no {PYTHON}: make it with `python3 -m venv .venvs/peers && .venvs/peers/bin/pip install -r tests/peers.txt`"


def namespaces() -> bool:
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount in a namespace of its own"),
    pytest.mark.skipif(os.geteuid() == 0 and not namespaces(), reason="mount namespaces are refused here"),
    pytest.mark.skipif(not PYTHON.exists(), reason=MISSING),
]


class Truth(threading.Thread):
    """The board's true counters, twenty times a second."""

    def __init__(self, board: Board) -> None:
        super().__init__(daemon=True)
        self._channel = Channel(board.gpu, timeout_s=5)
        self._stopping = threading.Event()
        self.rows: list[dict[str, Any]] = []

    def run(self) -> None:
        while not self._stopping.wait(0.05):
            self.rows.append(self._channel.ask({"op": "truth", "since": float("inf")}))

    def stop(self) -> None:
        self._stopping.set()
        self.join(10)
        self._channel.close()

    def between(self, begun_s: float, ended_s: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """The rows nearest to two times."""
        first, last = (min(self.rows, key=lambda row, t=t: abs(row["t_s"] - t)) for t in (begun_s, ended_s))
        assert last["t_s"] > first["t_s"]
        return first, last

    def mean(self, counter: str, begun_s: float, ended_s: float) -> float:
        """Mean rate of a counter: watts of energies, the busy share of busy seconds."""
        first, last = self.between(begun_s, ended_s)
        return float((last[counter] - first[counter]) / (last["t_s"] - first["t_s"]))


@contextmanager
def training(board: Board) -> Iterator[None]:
    """Steps on the board's GPU until the end, one after another."""
    stopping = threading.Event()

    def run() -> None:
        with EmulatedGpu(board.gpu) as gpu:
            while not stopping.is_set():
                gpu.submit("text-classifier" if board.name == "agx-orin" else "digits-mlp", 32)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(10)


@contextmanager
def running(name: str, folder: Path) -> Iterator[tuple[Board, BoardSpec, Truth, int]]:
    """A board that trains at a pinned clock in the middle of its table: itself, its spec, the truth, the clock."""
    spec = load_board(name)
    with Lab(folder) as lab:
        board = lab.board(name, "board", 1)
        hz = spec.gpu.frequencies_hz[len(spec.gpu.frequencies_hz) // 2]
        channel = Channel(board.gpu, timeout_s=5)
        channel.ask({"op": "set", "bounds_hz": [hz, hz]})
        channel.close()
        truth = Truth(board)
        with training(board):
            time.sleep(1.5)  # the clock's own delay, then steady
            truth.start()
            try:
                yield board, spec, truth, hz
            finally:
                truth.stop()


def peer(board: Board, folder: Path, script: str, *arguments: str) -> list[dict[str, Any]]:
    """What a script of this folder prints where the board is the machine: JSON objects, one a line."""
    folder.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", str(HERE / "as_board.sh"), board.root, str(folder),
         str(PYTHON), str(HERE / script), *arguments],
        capture_output=True, text=True, check=False, timeout=90,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": f"{ROOT}/daemon:{ROOT}/policies", "HOME": "/root"},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert rows, done.stderr
    return rows


def mean_of(rows: list[dict[str, float]], rail: str) -> float:
    return sum(row[rail] for row in rows) / len(rows)


def steps_w(spec: BoardSpec, names: tuple[str, ...]) -> float:
    """Half a step of the monitors for each rail."""
    return sum(rail.volts * rail.lsb_a / 2 for rail in spec.rails if rail.name in names)


BOARDS = {  # name → rails that add up to input power, rails that carry GPU and CPU, whether jtop sums up itself
    "nano": (("POM_5V_IN",), ("POM_5V_GPU", "POM_5V_CPU")),
    "orin-nano": (("VDD_IN",), ("VDD_CPU_GPU_CV",)),
    "agx-orin": (("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"), ("VDD_GPU_SOC", "VDD_CPU_CV")),
    "thor": (("VIN",), ()),
}


@pytest.mark.parametrize("name", BOARDS)
def test_jetson_stats_reads_the_virtual_boards_rails_clock_load_and_heat(name: str, tmp_path: Path) -> None:
    inputs, compute = BOARDS[name]
    with running(name, tmp_path / "lab") as (board, spec, truth, hz):
        rows = peer(board, tmp_path / "peer", "read_with_jtop.py", "jtop", "8")
    begun_s, ended_s = rows[0]["t_s"], rows[-1]["t_s"]
    rails = []
    for row in rows:
        powers = {rail: values["power"] / 1000 for rail, values in row["power"]["rail"].items()}
        total = row["power"]["tot"]
        if "name" in total:
            powers[total["name"]] = total["power"] / 1000
        rails.append(powers)
    assert set(rails[0]) == {rail.name for rail in spec.rails}
    true_w = truth.mean("input_j", begun_s, ended_s)
    assert sum(mean_of(rails, rail) for rail in inputs) == pytest.approx(true_w, rel=0.06, abs=steps_w(spec, inputs))
    if compute:
        true_w = truth.mean("compute_j", begun_s, ended_s)
        found_w = sum(mean_of(rails, rail) for rail in compute)
        assert found_w == pytest.approx(true_w, rel=0.08, abs=steps_w(spec, compute))
    if name != "thor":  # there jetson-stats asks NVML, which this machine has not
        (gpu,) = rows[-1]["gpu"].values()
        assert gpu["freq"]["cur"] == gpu["freq"]["min"] == gpu["freq"]["max"] == hz // 1000
        load = sum(next(iter(row["gpu"].values()))["load"] for row in rows) / len(rows) / 100
        assert load == pytest.approx(truth.mean("busy_s", begun_s, ended_s), abs=0.15)
    heat = {zone.lower(): values["temp"] for zone, values in rows[-1]["temperature"].items()}
    assert heat["gpu"] == pytest.approx(truth.between(begun_s, ended_s)[1]["die_celsius"], abs=1.5)


def test_our_own_client_of_jetson_stats_gives_the_daemon_the_same_readings(tmp_path: Path) -> None:
    with running("orin-nano", tmp_path / "lab") as (board, spec, truth, hz):
        rows = peer(board, tmp_path / "peer", "read_with_jtop.py", "meter", "8")
    begun_s, ended_s = rows[0]["t_s"], rows[-1]["t_s"]
    rails = [row["rails_w"] for row in rows]
    assert set(rails[0]) == {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"}
    true_w = truth.mean("input_j", begun_s, ended_s)
    assert mean_of(rails, "VDD_IN") == pytest.approx(true_w, rel=0.06, abs=steps_w(spec, ("VDD_IN",)))
    assert rows[-1]["gpu_frequency_hz"] == hz
    assert "cv0" not in rows[-1]["temperatures_celsius"]
    assert ended_s - begun_s < 8, "the service gives a reading at least once a second"


@pytest.mark.parametrize(("name", "with_gpu"), [("nano", True), ("orin-nano", False), ("agx-orin", True)])
def test_zeus_measures_the_energy_that_the_virtual_board_really_used(name: str, with_gpu: bool, tmp_path: Path) -> None:
    with running(name, tmp_path / "lab") as (board, spec, truth, _hz):
        (window,) = peer(board, tmp_path / "peer", "read_with_zeus.py", "4")
    begun_s, ended_s = window["begun_s"], window["ended_s"]
    first, last = truth.between(begun_s, ended_s)
    seconds = ended_s - begun_s
    if name == "agx-orin":
        assert window["total_energy_mj"] is None, "no rail of an AGX Orin carries its input, and Zeus adds none up"
    else:
        total_j = window["total_energy_mj"] / 1000
        true_j = truth.mean("input_j", begun_s, ended_s) * seconds
        assert total_j == pytest.approx(true_j, rel=0.05, abs=steps_w(spec, BOARDS[name][0]) * seconds)
    assert (window["gpu_energy_mj"] is not None) == with_gpu
    compute_j = (window["cpu_energy_mj"] + (window["gpu_energy_mj"] or 0.0)) / 1000
    true_j = (last["compute_j"] - first["compute_j"]) / (last["t_s"] - first["t_s"]) * seconds
    assert compute_j == pytest.approx(true_j, rel=0.08, abs=steps_w(spec, BOARDS[name][1]) * seconds)
