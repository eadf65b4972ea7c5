"""The socket's server: listens, counts sessions, keeps time, says goodbye."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .connection import Connection
from .handler import Handler
from .limits import Limits
from .listener import BACKLOG, identity_of, listen, remove_own
from .peer import Access, Role

log = logging.getLogger("traingov.sessions")

DEFAULT_PATH = Path("/run/traingov/traingov.sock")
SERVER_NAME = "traingov/0.1.0"
_SWEEP_INTERVAL_S = 0.5
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SAY_EVERY_S = 60.0


class SessionServer:
    """Serves JSON-RPC sessions at ``path``, or on ``listener`` where systemd handed one over.

    ``access`` is looked up in the system where it is not given. ``counters`` tells what happened since the start:
    messages, rejected, refused_full, slow_reader, too_fast, too_long, idle, timeout_hello, timeout_message,
    no_descriptor, no_memory.
    """

    def __init__(
        self,
        path: Path,
        handler: Handler,
        limits: Limits | None = None,
        *,
        access: Access | None = None,
        board: str = "unknown",
        server_name: str = SERVER_NAME,
        listener: socket.socket | None = None,
        mode: int = 0o660,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = Path(path)
        self.handler = handler
        self.limits = limits or Limits()
        self.access = access or Access.from_system()
        self.board = board
        self.server_name = server_name
        self.clock = clock
        self.counters: Counter[str] = Counter()
        self._mode = mode
        self._listener = listener
        self._identity: tuple[int, int] | None = None
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._connections: set[Connection] = set()
        self._say_again_s = float("-inf")

    @property
    def sessions(self) -> int:
        """Connections open now."""
        return len(self._connections)

    async def start(self) -> None:
        """Listen. Raises ListenError (SocketInUseError, ForeignFileError): one line, what to do included."""
        if self._listener is None:
            gid = self.access.user_gid
            # Only root, or a member, may give a file to a group.
            may_give = os.geteuid() == 0 or (gid is not None and gid in (*os.getgroups(), os.getegid()))
            self._listener = await listen(self.path, mode=self._mode, gid=gid if may_give else None)
            self._identity = identity_of(self.path)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._loop_fault)
        # Not create_unix_server: since Python 3.13 it removes the path on closing, also one that belongs to systemd.
        self._server = await loop.create_server(lambda: Connection(self), sock=self._listener, backlog=BACKLOG)
        log.info("listening on %s", self.path)

    async def close(self, reason: str = "the daemon stops") -> None:
        """Say goodbye to every session, end their jobs and stop listening. May be called twice."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._identity is not None:
            remove_own(self.path, self._identity)
            self._identity = None
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._connections):
            connection.bye(reason)
        deadline_s = time.monotonic() + self.limits.close_timeout_s
        while self._connections and time.monotonic() < deadline_s:
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    # What a connection calls.

    def admit(self, connection: Connection, role: Role) -> bool:
        """Whether there is room for one more; the last places are for administrators."""
        reserved = 0 if role is Role.ADMIN else self.limits.reserved_for_admins
        if len(self._connections) >= self.limits.max_sessions - reserved:
            return False
        self._connections.add(connection)
        if self._sweeper is None:
            self._schedule()
        return True

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        self._connections.discard(connection)

    def count(self, what: str) -> None:
        """Count an occurrence."""
        self.counters[what] += 1

    def _loop_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What asyncio has to say. For want of descriptors or memory it would print a traceback each."""
        error = context.get("exception")
        memory = isinstance(error, MemoryError)
        if not memory and (not isinstance(error, OSError) or error.errno not in _NO_ROOM):
            loop.default_exception_handler(context)
            return
        self.count("no_memory" if memory else "no_descriptor")
        now_s = self.clock()
        if now_s < self._say_again_s:
            return
        self._say_again_s = now_s + _SAY_EVERY_S
        if memory:
            log.error("a session was ended since there is no memory for it: raise MemoryMax= of the service")
        else:
            assert isinstance(error, OSError)
            log.error(
                "no session can be taken in (%s): those that wait are tried again each second; raise LimitNOFILE= of "
                "the service, or end some clients",
                error.strerror,
            )

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(_SWEEP_INTERVAL_S, self._sweep)

    def _sweep(self) -> None:
        """Look at every deadline. One timer for all, and none while nobody is connected."""
        now_s = self.clock()
        for connection in list(self._connections):
            connection.check_deadlines(now_s)
        if self._connections:
            self._schedule()
        else:
            self._sweeper = None
