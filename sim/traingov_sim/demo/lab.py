"""Starts and ends what a demonstration needs: virtual boards, services, training scripts. Leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..board.boardspec import load_board
from ..gpu import ENVIRONMENT, Channel

_START_S = 20.0
_END_S = 8.0
_BOARD, _SERVICE, _SCRIPT = "board", "service", "script"
_SETPRIV = shutil.which("setpriv")


class DemoError(RuntimeError):
    """Something did not start or failed; one line, with the log's end."""


def examples_dir() -> Path:
    """Where the example scripts lie: beside the package in a wheel, at the top of a checkout. Raises DemoError."""
    here = Path(__file__).resolve().parents[1]
    for candidate in (here / "examples", here.parents[1] / "examples"):
        if (candidate / "digits.py").exists():
            return candidate
    raise DemoError(f"the example scripts are missing beside {here}; reinstall traingov-sim")


@dataclass(frozen=True)
class Board:
    """A running virtual board."""

    name: str
    root: str
    tegrastats: str
    gpu: str

    def bounds_hz(self) -> tuple[int, int]:
        """The GPU's bounds as the kernel's files show them."""
        node = Path(self.root) / load_board(self.name).gpu.node
        return int((node / "min_freq").read_text()), int((node / "max_freq").read_text())

    def truth(self) -> dict[str, Any]:
        """What the board knows of itself: true energies and clocks, which no sensor shows."""
        channel = Channel(self.gpu, timeout_s=5.0)
        try:
            return channel.ask({"op": "truth"})
        finally:
            channel.close()


@dataclass(frozen=True)
class Service:
    """A running traingovd and where it listens and keeps its state."""

    board: Board
    socket: Path
    state_dir: Path
    log: Path
    process: subprocess.Popen[Any]

    def ask(self, command: str) -> Any:
        """The JSON that a `traingov` command about the running service prints. Raises DemoError."""
        return _traingov(command, "--socket", str(self.socket), "--json")


class Lab:
    """A context: everything started in it ends with it, also after Ctrl-C. Threads may share it."""

    def __init__(self, keep: Path | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="traingov-")) if keep is None else keep
        self.directory.mkdir(parents=True, exist_ok=True)
        self._keep = keep is not None
        self._lock = threading.Lock()
        self._started: list[tuple[subprocess.Popen[Any], str]] = []
        self._closing = False

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything and remove the folder. May be called twice."""
        with self._lock:
            self._closing = True
            running = list(self._started)
        # Scripts first, then services (which give their clocks back), then boards; those of a kind at once.
        for kind in (_SCRIPT, _SERVICE, _BOARD):
            mine = [process for process, its_kind in running if its_kind == kind]
            for process in mine:
                if process.poll() is None:
                    process.terminate()
            for process in mine:
                self._end(process)
        if not self._keep and self.directory.exists():
            shutil.rmtree(self.directory, ignore_errors=True)

    def left(self) -> str | None:
        """What could not be ended or removed, in one line; None when nothing is left."""
        alive = [str(process.pid) for process, _ in self._started if process.poll() is None]
        parts = [f"processes {', '.join(alive)} still run"] if alive else []
        if self.directory.exists() and not self._keep:
            parts.append(f"{self.directory} could not be removed")
        return "; ".join(parts) or None

    def board(self, name: str, label: str, seed: int, fuse: bool = False) -> Board:
        """Start a virtual board; with ``fuse`` its files refuse and snap as a kernel's do."""
        folder = self.directory / label
        folder.mkdir()
        command = [sys.executable, "-m", "traingov_sim", "board", "--board", name, "--dir", str(folder / "board")]
        process = self._start(
            [*command, "--seed", str(seed), "--with-parent", "--json", *(["--fuse"] if fuse else [])],
            folder / "board.log",
            _BOARD,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout.fileno()], [], [], _START_S)
        line = process.stdout.readline() if ready else b""
        if not line:
            raise DemoError(f"virtual board {name} did not start: {_end_of(folder / 'board.log')}")
        paths = json.loads(line)
        return Board(name, paths["root"], paths["tegrastats"], paths["gpu"])

    def service(self, board: Board, label: str, config: Mapping[str, Any], record: Path | None = None) -> Service:
        """Start traingovd for ``board`` with ``config`` on top of what points it there."""
        folder = self.directory / label
        state, path, log = folder / "state", folder / "s", folder / "traingovd.log"
        point = {
            "root": board.root,
            "tegrastats": board.tegrastats,
            "socket": str(path),
            "state_dir": str(state),
            "metrics": {"listen": None},  # several services run at once
        }
        file = folder / "traingov.yaml"
        file.write_text(json.dumps({**point, **config}, indent=1))  # JSON is YAML
        extra = [] if record is None else ["--record", str(record)]
        process = self._start([_script("traingovd"), "--config", str(file), *extra], log, _SERVICE)
        until = time.monotonic() + _START_S
        while not _listens(path):
            if process.poll() is not None or time.monotonic() > until:
                raise DemoError(f"traingovd did not start: {_end_of(log)}")
            time.sleep(0.05)
        return Service(board, path, state, log, process)

    def train(
        self, service: Service, script: str, arguments: list[str], progress: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        """Run an example to its end under ``service``; its progress lines go to ``progress``. Returns its result."""
        environment = {**os.environ, ENVIRONMENT: service.board.gpu, "TRAINGOV_SOCKET": str(service.socket)}
        log = service.log.with_name("training.log")
        process = self._start(
            [sys.executable, str(examples_dir() / script), *arguments, "--json", "--progress"], log, _SCRIPT,
            stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip
        assert process.stdout is not None
        last: dict[str, Any] = {}
        for line in process.stdout:
            last = json.loads(line)
            progress(last)
        if process.wait() != 0:
            raise DemoError(f"{script} ended with status {process.returncode}: {_end_of(log)}")
        return last

    def stop(self, service: Service) -> None:
        """End a service before the lab ends: it gives its clocks back."""
        self._end(service.process)

    def _start(self, command: list[str], log: Path, kind: str, **more: Any) -> subprocess.Popen[Any]:
        with self._lock:
            if self._closing:
                raise DemoError("stopped")
            with log.open("ab") as errors:
                more.setdefault("stdout", errors)
                # A session of its own: Ctrl-C reaches us alone, and we end the rest in the right order. Should we be
                # killed without a chance to, the kernel ends them (boards look after their parent themselves).
                guarded = [] if _SETPRIV is None or kind == _BOARD else [_SETPRIV, "--pdeathsig", "TERM", "--"]
                process = subprocess.Popen(
                    [*guarded, *command], stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True, **more
                )
            self._started.append((process, kind))
            return process

    @staticmethod
    def _end(process: subprocess.Popen[Any]) -> None:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:  # not there yet, or left over from a service that was killed
            return False
        return True


def relation_of(workload: str, state_dir: Path) -> dict[str, Any]:
    """The relation vector that a service with ``state_dir`` uses for ``workload``. Raises DemoError."""
    answer = _traingov("relation", "show", workload, "--state-dir", str(state_dir), "--json")
    assert isinstance(answer, dict)
    return answer


def write_report(state_dir: Path, page: Path) -> None:
    """The page of the last run that a service with ``state_dir`` kept, by ``traingov report``. Raises DemoError."""
    _output("report", "--state-dir", str(state_dir), "--html", str(page))


def _traingov(*command: str) -> Any:
    return json.loads(_output(*command))


def _output(*command: str) -> str:
    done = subprocess.run([_script("traingov"), *command], capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise DemoError(f"traingov {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _script(name: str) -> str:
    """A console script of this environment. Raises DemoError."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise DemoError(f"{name} is not installed beside {sys.executable}: pip install traingov")
    return found


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"
