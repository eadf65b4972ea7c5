"""The service's own sessions, desk, loop and governor, in one process, without a socket and without a board.

``talk`` gives bytes to a connection as the kernel would, in pieces, with samples of telemetry in between.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from traingov.config import load_config
from traingov.data import data_dir
from traingov.desk import Desk
from traingov.loop import Loop
from traingov.sessions.connection import Connection
from traingov.sessions.limits import Limits
from traingov.sessions.peer import Access
from traingov.telemetry.rails import RailTable
from traingov.telemetry.samples import Sampler
from traingov_policies.events import KnobReadBack, Sample, Tick
from traingov_policies.governor import Governor
from traingov_policies.values import Board, Cap

BOARD = Board("nano", "R32.7", "MAXN", (76_800_000, 153_600_000, 460_800_000, 921_600_000))
_PIECES = 40  # of one input; more would only be slow


class Faults(logging.Handler):
    """Collects what is logged as an exception: sessions and loop catch, so that one peer harms nobody else."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.texts.append(logging.Formatter().format(record))


class Transport(asyncio.Transport):
    """What a connection writes to; nobody reads it."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__({"socket": end})
        self.written = bytearray()
        self.closing = False
        self.reading = True

    def write(self, data: Any) -> None:
        assert not self.closing
        self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Service:
    """Desk and loop over a clock of their own; the host of connections."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="traingov-fuzz-")
        self.t_s = 1000.0
        self.config = load_config([])
        values = {**self.config.values, "state_dir": self._folder}
        self.config = type(self.config)(**{**vars(self.config), "state_dir": Path(self._folder), "values": values})
        table = RailTable.load(data_dir() / "boards")
        sampler = Sampler(table, "nano", lambda *_: None)
        self.settings = self.config.settings(sampler.rule)
        self.loop = Loop(self.config, self.settings, BOARD, worker=self._worker(), sampler=sampler, clock=self.clock)  # type: ignore[arg-type]
        self.loop._keeper = SimpleNamespace(keep=lambda *_: None, close=lambda: None)  # type: ignore[assignment]
        self.loop.history._keep = lambda *_: None  # type: ignore[assignment]
        self.desk = Desk(self.config, self.loop)
        self.loop._advise = self.desk.advise
        self.handler, self.limits, self.board, self.server_name = self.desk, Limits(), "nano", "traingov/fuzz"
        self.access = Access(os.geteuid())
        self.counted: list[str] = []

    def clock(self) -> float:
        return self.t_s

    def _worker(self) -> Any:
        def set_bounds(low: int, high: int, done: Any) -> None:
            self.bounds = (low, high)

        self.bounds: tuple[int, int] | None = None
        return SimpleNamespace(
            node=None, find=lambda: BOARD, attach=lambda _: None, look=lambda _: None, set_bounds=set_bounds,
            restore=lambda _: set_bounds(BOARD.gpu_frequencies_hz[0], BOARD.gpu_frequencies_hz[-1], None),
        )  # fmt: skip

    # What a connection asks of its host.
    def admit(self, *_: object) -> bool:
        return True

    def forget(self, *_: object) -> None:
        pass

    def count(self, what: str) -> None:
        self.counted.append(what)

    # Time and telemetry.
    def passes(self, seconds: float) -> None:
        """A sample, what became of the last write, and a tick."""
        self.t_s += seconds
        clock_hz = BOARD.gpu_frequencies_hz[-1]
        if self.bounds is not None:
            low, clock_hz = self.bounds
            self.bounds = None
            self.loop.feed(KnobReadBack(self.t_s, low, clock_hz, low, clock_hz, None))
        self.loop.feed(Sample(self.t_s, 4.0 + clock_hz / 3e8, 3.0, gpu_utilization=0.9, gpu_frequency_hz=clock_hz))
        self.loop.feed(Tick(self.t_s))

    def fresh(self) -> None:
        """A governor that knows nothing, and no cap set by anybody."""
        self.loop.governor = Governor(BOARD, self.settings, Cap(5.0))
        self.desk.caps.clear(None)
        self.counted.clear()


_service: Service | None = None
_events: asyncio.AbstractEventLoop | None = None
_faults = Faults()


def talk(data: bytes) -> None:
    """The first byte is the size of the pieces; the rest is what a peer sends. Raises for whatever must not happen."""
    global _service, _events  # noqa: PLW0603
    if _service is None or _events is None:
        _events = asyncio.new_event_loop()
        _service = _events.run_until_complete(_made())
        logging.disable(logging.NOTSET)
        log = logging.getLogger("traingov")
        log.handlers, log.propagate = [_faults], False
    _events.run_until_complete(_talk(_service, data))


async def _made() -> Service:
    return Service()


async def _talk(service: Service, data: bytes) -> None:
    service.fresh()
    _faults.texts.clear()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    transport = Transport(ours)
    connection = Connection(service)  # type: ignore[arg-type]
    try:
        connection.connection_made(transport)
        step = max(1 + (data[0] if data else 0) * 16, len(data) // _PIECES)
        for at in range(1, len(data), step):
            if transport.closing:
                break
            connection.data_received(data[at : at + step])
            for _ in range(3):
                service.passes(0.3)
            if connection._resume is not None:  # held back for its rate: the wait is over
                connection._resume.cancel()
                connection._resumed()
            connection.check_deadlines(service.t_s)
    finally:
        connection.connection_lost(None)
        ours.close()
        theirs.close()
    service.passes(0.1)
    assert not _faults.texts, _faults.texts[0]
    assert not service.desk._sessions, "a session outlived its connection"
    assert not service.loop.ledger.running(service.t_s), "a job outlived its connection"
    for line in bytes(transport.written).splitlines():
        answer = json.loads(line)
        for one in answer if isinstance(answer, list) else [answer]:
            assert one.get("error", {}).get("code") != -32603, one
