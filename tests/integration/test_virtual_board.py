"""A virtual board as a real process: its socket, tegrastats, knobs and end."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from traingov_sim.board.boardspec import load_board
from traingov_sim.gpu import BoardGone, Channel, EmulatedGpu, OutOfMemory, connect
from traingov_sim.kernel.fusefs import unavailable

# The board's own process, without noise, with a surface of known time and power: 10 ms host, then for batch 20
# 20 ms GPU at a Nano's top clock.
SERVER = """
import sys
from pathlib import Path
from traingov_sim.board.boardspec import load_board, noiseless
from traingov_sim.machine.process import run_board
from traingov_sim.surface import Phase
from traingov_sim.kernel.tree import FolderTree
from traingov_sim.kernel.fusetree import FuseTree

class Linear:
    def __init__(self, board, workload):
        if workload != "linear":
            raise ValueError(f"no workload {workload!r}")
        self.board, self.workload = board, workload
    def phases(self, batch, hz):
        share, much = hz / 921600000, 4 if self.board == "agx-orin" else 1
        host = Phase(0.01, 2.5 * much, 0.3 * much, 0.9 * much, False)
        gpu = Phase(0.001 * batch / share, (2 + 4 * share) * much, 3.2 * share * much, 0.5 * much, True)
        return (host, gpu)
    def memory_bytes(self, batch):
        return 10_000_000 * batch

folder = Path(sys.argv[2]) if sys.argv[2] != "-" else None
trees = {"plain": FolderTree, "fuse": FuseTree}
run_board(noiseless(load_board(sys.argv[1])), folder, seed=1, surfaces=Linear, make_tree=trees[sys.argv[3]])
"""

Start = Callable[..., "Running"]


class Running:
    """A started board."""

    def __init__(self, name: str, folder: str, tree: str, environment: dict[str, str]) -> None:
        command = [sys.executable, "-c", SERVER, name, folder, tree]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.paths: dict[str, Any] = json.loads(line)
        self.root = Path(self.paths["root"])
        self.node = self.root / "sys/class/devfreq" / load_board(name).gpu.devfreq

    def ask(self, **message: Any) -> dict[str, Any]:
        channel = Channel(self.paths["gpu"], 5.0)
        try:
            return channel.ask(message)
        finally:
            channel.close()

    def tegrastats(self, interval_ms: int) -> subprocess.Popen[str]:
        command = [self.paths["tegrastats"], "--interval", str(interval_ms)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=10)
        return self.process.returncode


@pytest.fixture
def start() -> Iterator[Start]:
    folder = tempfile.mkdtemp(prefix="vb-")  # short: a socket path has 107 bytes
    running: list[Running] = []

    def begin(name: str = "nano", directory: str = folder, tree: str = "plain", **environment: str) -> Running:
        running.append(Running(name, directory, tree, environment))
        return running[-1]

    yield begin
    for board in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            board.end()
        if board.process.poll() is None:
            board.process.kill()
            board.process.communicate()
    shutil.rmtree(folder)


def pin(board: Running, hz: int) -> None:
    """Write both bounds, in the order that the kernel takes."""
    names = ["max_freq", "min_freq"]
    if hz < int((board.node / "max_freq").read_text()):
        names.reverse()
    for name in names:
        (board.node / name).write_text(str(hz))


def until(condition: Callable[[], bool], wait_s: float = 5.0) -> None:
    deadline = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def clock(board: Running) -> int:
    return int((board.node / "cur_freq").read_text())


def train(gpu: EmulatedGpu, seconds: float, batch_size: int = 20) -> float:
    """Median device time of a step while the queue is kept full: a late wake-up of this process does not move it."""
    end, ends = time.monotonic() + seconds, []
    while time.monotonic() < end:
        gpu.submit("linear", batch_size)
        if gpu.completed_s is not None and gpu.completed_s not in ends:
            ends.append(gpu.completed_s)
    gpu.synchronize()
    return statistics.median(b - a for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(("name", "rails"), [("nano", ["POM_5V_IN"]), ("agx-orin", ["VDD_GPU", "VDD_CPU", "VIN"])])
def test_energy_read_from_tegrastats_agrees_with_the_truth(
    start: Start, tmp_path: Path, name: str, rails: list[str]
) -> None:
    board = start(name)
    top = load_board(name).gpu.frequencies_hz[-1]
    board.ask(op="set", bounds_hz=[top, top], switch_delay_s=0)
    log = tmp_path / "log"
    with EmulatedGpu(board.paths["gpu"]) as gpu, log.open("w") as out:
        trainer = threading.Thread(target=train, args=(gpu, 2.5))
        trainer.start()
        time.sleep(0.5)  # the load is steady from here on, beyond both ends of the window
        stats = subprocess.Popen([board.paths["tegrastats"], "--interval", "10"], stdout=out)
        until(lambda: log.stat().st_size > 0)
        before = board.ask(op="truth")
        time.sleep(1.3)
        after = board.ask(op="truth")
        stats.terminate()
        stats.wait(timeout=5)
        still_training = trainer.is_alive()
        trainer.join()
    assert still_training
    lines = log.read_text().splitlines()
    seconds = after["t_s"] - before["t_s"]
    pattern = re.compile(rf"(?:{'|'.join(rails)})\w* (\d+)(?:mW)?/")
    powers = [sum(int(value) for value in pattern.findall(line)) / 1000 for line in lines]
    # Lines come every 10 ms: as many as the interval allows, give or take a busy machine.
    assert 0.7 * seconds / 0.01 < len(lines) <= 1.05 * seconds / 0.01 + 10
    energy_j = sum(powers) / len(powers) * seconds
    assert energy_j == pytest.approx(after["input_j"] - before["input_j"], rel=0.02)


def test_steps_overlap_host_work_and_take_the_surfaces_time(start: Start) -> None:
    board = start()
    board.ask(op="set", bounds_hz=[921600000, 921600000], switch_delay_s=0)
    with EmulatedGpu(board.paths["gpu"]) as gpu:
        step_s = train(gpu, 0.8)
    assert step_s == pytest.approx(0.03, rel=0.001)


def test_a_write_to_max_freq_changes_cur_freq_and_step_time(start: Start) -> None:
    board = start()
    pin(board, 921600000)
    until(lambda: clock(board) == 921600000)
    with EmulatedGpu(board.paths["gpu"]) as gpu:
        fast_s = train(gpu, 0.4)
        pin(board, 460800000)
        until(lambda: clock(board) == 460800000)
        slow_s = train(gpu, 0.4)
    assert fast_s == pytest.approx(0.03, rel=0.001)
    assert slow_s == pytest.approx(0.05, rel=0.001)
    history = board.ask(op="truth")["clock_history"]
    assert [hz for _, hz in history][-1] == 460800000


def test_tegrastats_ends_with_its_board_and_says_so(start: Start) -> None:
    board = start()
    stats = board.tegrastats(50)
    assert stats.stdout is not None
    assert "POM_5V_IN" in stats.stdout.readline()
    assert board.end() == 0
    _, errors = stats.communicate(timeout=5)
    assert errors == "tegrastats: the virtual board ended\n"
    assert stats.returncode == 1


def test_tegrastats_can_hang_and_be_killed_and_started_again(start: Start) -> None:
    board = start()
    stats = board.tegrastats(10)
    assert stats.stdout is not None
    stats.stdout.readline()
    board.ask(op="set", tegrastats="hang")
    out = stats.stdout.fileno()
    os.set_blocking(out, False)
    time.sleep(0.1)
    with contextlib.suppress(BlockingIOError):
        while os.read(out, 65536):
            pass
    time.sleep(0.2)
    with pytest.raises(BlockingIOError):
        os.read(out, 65536)
    assert stats.poll() is None
    board.ask(op="set", tegrastats="kill")
    assert stats.wait(timeout=5) == 1
    stats.communicate()
    again = board.tegrastats(10)
    assert again.stdout is not None
    assert again.stdout.readline().startswith("RAM ")
    again.stdout.close()  # SIGPIPE ends it, as it ends the real tool
    assert again.wait(timeout=5) == -signal.SIGPIPE
    assert again.stderr is not None
    again.stderr.close()


def test_tegrastats_refuses_wrong_options(start: Start) -> None:
    board = start()
    for options, status, says in [
        (["--interval", "soon"], 1, "needs milliseconds, not 'soon'"),
        (["--interval"], 1, "needs a value"),
        (["--colour"], 1, "unknown option"),
        (["--stop"], 0, ""),
    ]:
        command = [board.paths["tegrastats"], *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        assert (done.returncode, says in done.stderr) == (status, True)


def test_out_of_memory_is_raised_and_a_smaller_batch_goes_on(start: Start) -> None:
    board = start()
    with EmulatedGpu(board.paths["gpu"]) as gpu:
        gpu.submit("linear", 100)
        with pytest.raises(OutOfMemory, match="batch 500 needs 5000 MB"):
            gpu.submit("linear", 500)
        gpu.submit("linear", 50)
        gpu.synchronize()
        with pytest.raises(ValueError, match="no workload 'quadratic'"):
            gpu.submit("quadratic", 1)


def test_wrong_messages_are_answered_and_end_nothing(start: Start) -> None:
    board = start()
    for message, says in [
        ({"op": "dance"}, "op 'dance': use one of submit"),
        ({"op": "set", "colour": 1}, "nothing called colour"),
        ({"op": "set", "power_mode": 9}, "no power mode 9"),
        ({"op": "set", "contention": {"time_factor": -1}}, "must be positive"),
        ({"op": "set", "ambient_celsius": None}, "set: a value is of the wrong kind"),
        ({"op": "submit", "workload": "linear", "batch_size": 0}, "a batch size"),
        ({"op": "submit"}, "submit: 'workload' is missing"),
        ({"op": "tegrastats", "interval_ms": 0}, "1 to 3600000"),
    ]:
        with pytest.raises(ValueError, match=re.escape(says)):
            board.ask(**message)
    raw = connect(board.paths["gpu"])
    raw.sendall(b"\xff\x00 no json\n")
    assert b"not a JSON object" in raw.recv(4096)
    assert raw.recv(4096) == b""
    raw.close()
    assert board.ask(op="truth")["steps"] == 0


def test_a_client_that_died_leaves_its_memory_and_the_board_goes_on(start: Start) -> None:
    board = start()
    idle = board.ask(op="truth")["memory_used_bytes"]
    gpu = EmulatedGpu(board.paths["gpu"])
    gpu.submit("linear", 100)
    gpu.submit("linear", 100)
    assert board.ask(op="truth")["memory_used_bytes"] == idle + 1_000_000_000
    gpu.close()
    until(lambda: bool(board.ask(op="truth")["memory_used_bytes"] == idle))


def test_a_power_mode_and_contention_and_ambient_can_be_set(start: Start) -> None:
    board = start()
    board.ask(op="set", power_mode=1, contention={"time_factor": 2.0}, ambient_celsius=60)
    assert int((board.node / "max_freq").read_text()) == 614400000
    board.ask(op="set", bounds_hz=[614400000, 614400000], switch_delay_s=0)
    with EmulatedGpu(board.paths["gpu"]) as gpu:
        step_s = train(gpu, 0.3)
    assert step_s == pytest.approx(2 * (0.01 + 0.02 * 921.6 / 614.4), rel=0.001)


def test_every_disturbance_can_be_set_and_ended_over_the_socket(start: Start) -> None:
    board = start()
    calm = board.ask(op="truth")["input_w"]
    answer = board.ask(op="set", surroundings={"other_cpu_w": 2.0, "emc_hz": 1_331_200_000}, clock_follows=False)
    assert answer == {"ok": True}
    assert board.ask(op="truth")["emc_hz"] == 1_331_200_000
    assert board.ask(op="truth")["input_w"] > calm + 1.5
    board.ask(op="set", battery={"capacity_wh": 20, "charge": 0.42, "solar": {"peak_w": 0}})
    assert (board.root / "sys/class/power_supply/BAT0/capacity").read_text().strip() == "42"
    board.ask(op="set", surroundings=None, battery=None, clock_follows=True, sensor_fault={"fault": "lag"})
    assert not (board.root / "sys/class/power_supply/BAT0").exists()
    assert board.ask(op="truth")["input_w"] < calm + 0.5
    for wrong, text in (
        ({"surroundings": {"memory_taken": 2}}, "memory_taken"),
        ({"current_limits": {"POM_5V_IN": {"crit_a": 1}}}, "soctherm_oc"),
        ({"battery": {"charge": 7}}, "charge"),
    ):
        with pytest.raises(ValueError, match=text):
            board.ask(op="set", **wrong)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stop"])
def test_a_board_ends_cleanly_and_leaves_nothing_behind(start: Start, tmp_path: Path, how: str) -> None:
    board = start(directory="-", TMPDIR=tempfile.gettempdir())
    folder = board.root.parent
    assert (folder / "ready.json").exists()
    stats = board.tegrastats(10)
    assert stats.stdout is not None
    stats.stdout.readline()
    if how == "stop":
        assert board.ask(op="stop") == {"ok": True}
    else:
        board.process.send_signal(getattr(signal, how))
    _, errors = board.process.communicate(timeout=10)
    assert (board.process.returncode, errors) == (0, "")
    stats.communicate(timeout=5)
    assert not folder.exists()
    with pytest.raises(BoardGone, match="no virtual board answers"):
        EmulatedGpu(board.paths["gpu"])


def test_a_folder_keeps_its_tree_but_no_socket_and_cannot_serve_two_boards(start: Start) -> None:
    board = start()
    folder = board.root.parent
    program = "from traingov_sim.cli import main; main()"
    command = [sys.executable, "-c", program, "board", "--board", "tx2-nx", "--dir", str(folder), "--json"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode == 2
    assert "another virtual board runs here" in second.stderr
    board.end()
    assert board.root.exists()
    assert not (folder / "board.sock").exists()
    assert not (folder / "ready.json").exists()


def test_a_folder_too_deep_for_a_socket_gets_its_socket_elsewhere(start: Start, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    board = start(directory=str(deep))
    assert len(board.paths["gpu"]) < 107
    assert str(deep) not in board.paths["gpu"]
    assert board.ask(op="truth")["steps"] == 0
    board.end()
    assert not Path(board.paths["gpu"]).parent.exists()


def test_a_socket_path_that_is_too_long_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at most 107 bytes; use a shorter folder"):
        EmulatedGpu("/tmp/" + "x" * 200)
    monkeypatch.delenv("TRAINGOV_SIM_GPU", raising=False)
    with pytest.raises(ValueError, match="set TRAINGOV_SIM_GPU"):
        EmulatedGpu()


def test_with_fuse_a_write_is_carried_out_or_refused_while_the_writer_waits(start: Start) -> None:
    reason = unavailable()
    if reason is not None:
        pytest.skip(f"no FUSE here: {reason}")
    board = start(tree="fuse")
    assert os.path.ismount(board.root)
    (board.node / "max_freq").write_text("300000000")
    assert (board.node / "max_freq").read_text() == "307200000\n"
    with pytest.raises(OSError, match="Invalid argument"):
        (board.node / "min_freq").write_text("921600000")
    (board.node / "min_freq").write_text("307200000")
    until(lambda: clock(board) == 307200000)
    (board.node / "governor").write_text("userspace")
    assert (board.node / "userspace/set_freq").exists()
    stats = subprocess.Popen([board.root / "usr/bin/tegrastats", "--interval", "10"], stdout=subprocess.PIPE, text=True)
    assert stats.stdout is not None
    assert "GR3D_FREQ" in stats.stdout.readline()
    stats.terminate()
    stats.communicate()
    with EmulatedGpu(board.paths["gpu"]) as gpu:
        step_s = train(gpu, 0.4)
    assert step_s == pytest.approx(0.01 + 0.02 * 3, rel=0.001)
    assert board.end() == 0
    assert not os.path.ismount(board.root)


def test_the_command_prints_how_to_use_the_board_and_ends_with_its_parent(tmp_path: Path) -> None:
    # A shell starts the board, prints its number, and goes away when told to: the board must follow.
    folder = tempfile.mkdtemp(prefix="vb-")
    board = f"{sys.executable} -m traingov_sim board --board tx2-nx --with-parent --dir {folder}"
    shell = subprocess.Popen(
        ["sh", "-c", f"{board} > {tmp_path}/out & echo $!; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert shell.stdout is not None
        number = int(shell.stdout.readline())
        until(lambda: (tmp_path / "out").exists() and "export" in (tmp_path / "out").read_text(), 20.0)
        said = (tmp_path / "out").read_text()
        assert f'root: "{folder}/root"' in said
        assert f'tegrastats: "{folder}/root/usr/bin/tegrastats"' in said
        assert f"export TRAINGOV_SIM_GPU={folder}/board.sock" in said
        shell.communicate("go\n", timeout=5)
        until(lambda: not (Path(folder) / "ready.json").exists())
        until(lambda: not Path(f"/proc/{number}").exists() or " Z " in Path(f"/proc/{number}/stat").read_text())
    finally:
        shell.kill()
        shell.communicate()
        shutil.rmtree(folder)
