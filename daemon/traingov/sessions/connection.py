"""The transport of one session: bytes in, lines out, within the limits of size, rate and time."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from . import jsonrpc
from .jsonrpc import RpcError
from .limits import TokenBucket, message_cost
from .peer import Role, peer_of, peer_pidfd
from .session import Owner, Session, printable

log = logging.getLogger("traingov.sessions")

# A flood wakes the loop at most this often.
_SHORTEST_WAIT_S = 0.01


class Host(Owner, Protocol):
    """What a connection needs of the server."""

    def admit(self, connection: Connection, role: Role) -> bool:
        """Whether there is room for one more."""

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""


class Connection(asyncio.Protocol):
    """Reads no faster than the rate allows and answers no faster than the peer reads; memory is bounded by both.

    Descriptors that a peer passes along are never received: asyncio reads with recv(2), and the kernel then closes
    them (unix(7)).
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._limits = host.limits
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._framer = jsonrpc.LineFramer(host.limits.max_message_bytes)
        self._resume: asyncio.TimerHandle | None = None
        now = host.clock()
        self._bucket = TokenBucket(host.limits.rate_hz, host.limits.burst, now)
        # CLOCK_MONOTONIC seconds since when something is so; None where it is not.
        self._opened_s = now
        self._last_message_s = now
        self._line_began_s: float | None = None
        self._writing_paused_s: float | None = None
        self._throttled_s: float | None = None
        self._closing_s: float | None = None

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Find out who connected, and whether there is room."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes // 4)
        connection = transport.get_extra_info("socket")
        try:
            peer = peer_of(connection)
        except OSError as error:
            log.warning("a peer went before it could be known: %s", error)
            transport.abort()
            return
        role = self._host.access.role(peer)
        if not self._host.admit(self, role):
            self._host.count("refused_full")
            self.bye(f"too many sessions, at most {self._limits.max_sessions}: try again later")
            return
        self._session = Session(
            self._host, peer, role, pidfd=peer_pidfd(connection), notify=self._notify, hang_up=self.bye
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; so is the job."""
        if self._resume is not None:
            self._resume.cancel()
        if self._session is not None:
            self._session.finish("disconnected")
        self._host.forget(self)

    def data_received(self, data: bytes) -> None:
        """Take what arrived, as far as the rate allows."""
        self._framer.feed(data)
        self._drain()

    def pause_writing(self) -> None:
        """Answers wait to be read: carry out nothing more until they are."""
        self._writing_paused_s = self._host.clock()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._writing_paused_s = None
        self._drain()

    # What the server calls.

    def check_deadlines(self, now_s: float) -> None:
        """Drop the connection where it keeps the daemon waiting (CLOCK_MONOTONIC seconds)."""
        limits, session = self._limits, self._session

        def late(since_s: float | None, bound_s: float) -> bool:
            return since_s is not None and now_s - since_s > bound_s

        if late(self._closing_s, limits.close_timeout_s):
            self.abort()
        elif self._closing_s is not None or session is None:
            return
        elif not session.greeted and late(self._opened_s, limits.hello_timeout_s):
            self._drop("timeout_hello", f"no hello within {limits.hello_timeout_s:g} s")
        elif late(self._writing_paused_s, limits.write_timeout_s):
            self._drop("slow_reader", "it does not read its messages")
        elif late(self._throttled_s, limits.throttle_timeout_s):
            self._drop("too_fast", f"more than {limits.rate_hz:g} messages a second")
        elif late(self._line_began_s, limits.message_timeout_s):
            self._drop("timeout_message", f"a message was not finished within {limits.message_timeout_s:g} s")
        elif not session.running and late(self._last_message_s, limits.idle_timeout_s):
            self._drop("idle", f"no message for {limits.idle_timeout_s:g} s and no running job")

    def bye(self, reason: str) -> None:
        """Say why, and close once that is written."""
        if self._open():
            self._notify("bye", {"reason": printable(reason)})
            if self._transport is not None:
                self._closing_s = self._host.clock()
                self._transport.close()

    def abort(self) -> None:
        """Close at once; unwritten answers are lost."""
        if self._transport is not None:
            self._transport.abort()

    # Reading.

    def _drain(self) -> None:
        """Carry out what has arrived, as far as the rate and unread answers allow."""
        while self._open() and self._resume is None and self._writing_paused_s is None:
            line = self._next_line()
            if line is None:
                return
            if line.strip():
                self._take(line)
        self._read(False)

    def _next_line(self) -> bytes | None:
        """The next line that may be carried out now. None where none may; reading is then set as it should be."""
        try:
            line = self._framer.next_line()
        except jsonrpc.LineTooLongError:
            text = f"a message is longer than {self._limits.max_message_bytes} bytes"
            self._write(jsonrpc.encode(jsonrpc.error_reply(None, RpcError(jsonrpc.INVALID_REQUEST, text))))
            self._drop("too_long", text)
            return None
        now_s = self._host.clock()
        if line is None:
            self._throttled_s = None
            if not self._framer.pending_bytes:
                self._line_began_s = None
            elif self._line_began_s is None:
                self._line_began_s = now_s
            self._read(True)
            return None
        self._line_began_s = None
        wait_s = self._bucket.take(message_cost(len(line)), now_s)
        if wait_s > 0:
            self._framer.unread(line)
            if self._throttled_s is None:
                self._throttled_s = now_s
            self._resume = asyncio.get_running_loop().call_later(max(wait_s, _SHORTEST_WAIT_S), self._resumed)
            self._read(False)
            return None
        self._last_message_s = now_s
        return line

    def _resumed(self) -> None:
        self._resume = None
        self._drain()

    def _read(self, on: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or transport.is_reading() == on:
            return
        if on:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def _take(self, line: bytes) -> None:
        session = self._session
        assert session is not None
        messages, batch = jsonrpc.parse_line(line, self._limits.max_batch)
        answers: list[bytes] = []
        for message in messages:
            answer = session.answer(message)
            if answer is not None:
                answers.append(answer.rstrip(b"\n"))
            if session.farewell is not None:
                break
        if answers:
            self._write((b"[" + b",".join(answers) + b"]\n") if batch else answers[0] + b"\n")
        if session.farewell is not None:
            self.bye(session.farewell)

    # Writing.

    def _notify(self, method: str, params: dict[str, object]) -> None:
        self._write(jsonrpc.encode(jsonrpc.notification(method, params)))

    def _write(self, line: bytes) -> None:
        if self._transport is None or not self._open():
            return
        self._transport.write(line)
        if self._transport.get_write_buffer_size() > self._limits.write_buffer_bytes:
            self._drop("slow_reader", "it does not read its messages")

    def _drop(self, what: str, text: str) -> None:
        self._host.count(what)
        log.warning("%s dropped: %s", "a session" if self._session is None else self._session.label, text)
        if what == "slow_reader":
            self.abort()
        else:
            self.bye(text)

    def _open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()
