"""A virtual board as a process: keeps the core in real time, serves its socket, and refreshes its tree.

The socket takes JSON messages, one a line: see docs/virtual-board.md. One thread; every wait is bounded; deadlines
are absolute, so lateness does not add up.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ..board.boardspec import BoardSpec, load_board
from ..board.physics import Snapshot, VirtualBoard
from ..board.tegrastats_text import stamp
from ..gpu import ENVIRONMENT, SUN_PATH_MAX
from ..kernel.entries import boot_id
from ..kernel.tree import FolderTree
from ..surface import Surface
from .connection import Connection, Stream
from .control import Control
from .tegrastats_tool import write_tool

POLL_S = 0.01
REFRESH_CLOCKS_S = 0.05
REFRESH_ALL_S = 0.1
_MARK = ".virtual-board"  # in a folder that is a board's
SurfaceLoader = Callable[[str, str], Surface]


TreeMaker = Callable[[Path, VirtualBoard, str, threading.Lock], FolderTree]


@dataclass(frozen=True)
class BoardPaths:
    """Where a running board is reached."""

    board: str
    root: str
    tegrastats: str
    gpu: str
    pid: int

    def environment(self) -> dict[str, str]:
        """What a training script needs in its environment."""
        return {ENVIRONMENT: self.gpu}


def load_surface(board: str, workload: str) -> Surface:
    """The calibrated surface. Raises ValueError or KeyError for an unknown workload."""
    from ..surfaces import load  # noqa: PLC0415  (imports NumPy: only when a training script first submits)

    return load(board, workload)


class BoardProcess:
    """The event loop around one VirtualBoard."""

    def __init__(
        self,
        board: VirtualBoard,
        directory: Path,
        stopping: threading.Event,
        *,
        surfaces: SurfaceLoader = load_surface,
        make_tree: TreeMaker = FolderTree,
        seed: int = 0,
    ) -> None:
        self.board = board
        self.stopping = stopping
        self._own_folder: Path | None = None
        self._socket_path = self._place_socket(directory)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._socket_path))
        self._listener.listen(64)
        self._listener.setblocking(False)
        self._lock = threading.Lock()  # a FUSE tree carries writes out in a thread of its own
        self.tree = make_tree(directory / "root", board, boot_id(seed, time.time_ns()), self._lock)
        tool = self.tree.tool_folder / "tegrastats"
        try:
            write_tool(tool, str(self._socket_path))
            root = self.tree.start()
        except BaseException:
            self._close_socket()
            raise
        self.paths = BoardPaths(board.spec.name, str(root), str(tool), str(self._socket_path), os.getpid())
        self._connections: dict[int, Connection] = {}
        self._waiting: dict[int, Connection] = {}
        self._names = 0
        self.control = Control(board, self.tree, surfaces, self)
        self._clocks_due = self._all_due = 0.0
        self._second, self._stamp = 0, ""

    def run(self, parent_pid: int | None = None) -> None:
        """Serve until ``stopping`` is set, or the process ``parent_pid`` is no longer the parent."""
        while not self.stopping.is_set():
            if parent_pid is not None and os.getppid() != parent_pid:
                return
            self.turn()

    def turn(self) -> None:
        """Wait for the next deadline or message, and do what is due."""
        readers: list[Any] = [self._listener, *(c.socket for c in self._connections.values())]
        writers = [c.socket for c in self._connections.values() if c.wants_write]
        timeout = max(0.0, self._next_deadline() - time.monotonic())
        # A stop signal does not break this wait off (PEP 475); it is at most POLL_S long.
        ready, writable, _ = select.select(readers, writers, [], timeout)
        with self._lock:
            self._work(ready, writable)

    def _work(self, ready: list[Any], writable: list[Any]) -> None:
        self.tree.poll(time.monotonic())
        for sock in ready:
            if sock is self._listener:
                self._accept()
            else:
                self._serve(self._connections[sock.fileno()])
        for sock in writable:
            self._connections[sock.fileno()].flush()
        now = time.monotonic()
        self.board.advance(max(now, self.board.t_s))
        self._deliver()
        self._show(now)
        for connection in [c for c in self._connections.values() if c.closed]:
            self._drop(connection)

    def start_stream(self, connection: Connection, stream: Stream) -> None:
        """Send tegrastats lines from now on."""
        connection.stream = stream

    def end_streams(self) -> None:
        """Close every tegrastats run, as if the tool had been killed."""
        for connection in self._connections.values():
            if connection.stream is not None:
                connection.closed = True

    def await_step(self, connection: Connection, ticket: int) -> None:
        """Tell ``connection`` when the step has ended."""
        self._waiting[ticket] = connection

    def close(self) -> None:
        """Close everything and remove the socket. The tree's files stay where they are."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._close_socket()
        self.tree.close()

    def _close_socket(self) -> None:
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            self._socket_path.unlink()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _place_socket(self, directory: Path) -> Path:
        path = directory / "board.sock"
        if len(os.fsencode(path)) > SUN_PATH_MAX:
            self._own_folder = Path(tempfile.mkdtemp(prefix="tgsim-"))
            path = self._own_folder / "board.sock"
            if len(os.fsencode(path)) > SUN_PATH_MAX:
                shutil.rmtree(self._own_folder)
                raise ValueError(
                    f"{path}: a socket path has at most {SUN_PATH_MAX} bytes; give a shorter --dir or TMPDIR"
                )
        if path.exists():
            probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                probe.connect(str(path))
            except OSError:
                path.unlink()
            else:
                raise ValueError(f"{path}: another virtual board runs here; stop it, or give another --dir")
            finally:
                probe.close()
        return path

    def _next_deadline(self) -> float:
        now = time.monotonic()
        due = min(now + POLL_S, self.board.next_event_s(), self._clocks_due)
        streams = (c.stream.due_s for c in self._connections.values() if c.stream is not None)
        return min(due, min(streams, default=math.inf))

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        self._names += 1
        self._connections[sock.fileno()] = Connection(sock, f"client {self._names}")

    def _serve(self, connection: Connection) -> None:
        for message in connection.read():
            self.control.handle(connection, message)

    def _deliver(self) -> None:
        finished = self.board.finished
        while finished:
            ticket, t_s = finished.popleft()
            connection = self._waiting.pop(ticket, None)
            if connection is not None and not connection.closed:
                connection.send({"done": t_s})

    def _show(self, now: float) -> None:
        snapshot: Snapshot | None = None
        for connection in self._connections.values():
            stream = connection.stream
            if stream is not None and stream.take_turn(now) and not self.control.hanging:
                snapshot = snapshot or self.board.sensors(now)
                connection.send_line(stream.text.line(snapshot, self._wall_stamp()))
        if now >= self._clocks_due:
            self._clocks_due = now + REFRESH_CLOCKS_S
            snapshot = snapshot or self.board.sensors(now)
            if now >= self._all_due:
                self._all_due = now + REFRESH_ALL_S
                self.tree.refresh(snapshot)
            else:
                self.tree.refresh_clocks(snapshot)

    def _wall_stamp(self) -> str:
        second = int(time.time())
        if second != self._second:
            self._second, self._stamp = second, stamp(second)
        return self._stamp

    def _drop(self, connection: Connection) -> None:
        self._connections.pop(connection.socket.fileno(), None)
        self._waiting = {t: c for t, c in self._waiting.items() if c is not connection}
        self.board.release(connection.name)
        connection.socket.close()


def _take(folder: Path) -> None:
    """Make ``folder`` a board's. Raises ValueError where somebody else's files are in it: they would be mixed up."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _MARK).exists():
            other = next(iter(sorted(folder.iterdir())), None)
            if other is not None:
                raise ValueError(f"{folder} is not empty ({other.name} is in it) and is no board's: name a new folder")
            (folder / _MARK).write_text("This folder belongs to a virtual board: traingov-sim board --dir.\n")
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None


def run_board(
    board: str | BoardSpec,
    directory: Path | None = None,
    *,
    seed: int = 0,
    surfaces: SurfaceLoader = load_surface,
    make_tree: TreeMaker = FolderTree,
    parent_pid: int | None = None,
    announce: Callable[[BoardPaths], None] | None = None,
) -> None:
    """Run a board (a name, or a spec of one's own) until it is told to end.

    SIGTERM, SIGINT and a "stop" message end it, and so does the end of ``parent_pid``, when that is its parent.
    ``directory`` gets ``root`` (the tree, kept), ``board.sock`` and ``ready.json`` (removed at the end); without one
    a temporary folder is made and removed. ``announce`` is told the paths once the board can be used; by default they
    are printed to stdout as one JSON line. Raises ValueError for an unknown board or an unusable folder.
    """
    spec = load_board(board) if isinstance(board, str) else board
    temporary = Path(tempfile.mkdtemp(prefix="tgsim-")) if directory is None else None
    folder = (directory or temporary or Path()).absolute()
    _take(folder)
    ready = folder / "ready.json"
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # before a FUSE mount, which would install its own
        signal.signal(number, lambda _number, _frame: stop.set())
    try:
        core = VirtualBoard(spec, seed, time.monotonic())
        process = BoardProcess(core, folder, stop, surfaces=surfaces, make_tree=make_tree, seed=seed)
        try:
            half = ready.with_suffix(".part")
            half.write_text(json.dumps(vars(process.paths)) + "\n", encoding="utf-8")
            half.replace(ready)
            (announce or _print_paths)(process.paths)
            process.run(parent_pid)
        finally:
            ready.unlink(missing_ok=True)
            process.close()
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _print_paths(paths: BoardPaths, out: TextIO | None = None) -> None:
    print(json.dumps(vars(paths)), file=out or sys.stdout, flush=True)
