"""What one connection may say and when: hello, then a job's life, questions and commands. Calls the handler."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any, Protocol

from . import jsonrpc
from .handler import Handler, Refused, RegisterRequest
from .jsonrpc import Call, Invalid, RpcError
from .limits import Limits
from .liveness import ProcessWatch
from .messages import (
    METHODS,
    NOTIFICATIONS,
    PROTOCOL,
    Method,
    known_batch,
    parse_params,
    register_request,
    steps_report,
)
from .peer import Access, Peer, Role, may_register

log = logging.getLogger("traingov.sessions")

# After a process ended, what it wrote last may still wait to be read.
_LAST_WORDS_S = 0.05


class Owner(Protocol):
    """What a session needs of the server that it belongs to."""

    handler: Handler
    limits: Limits
    access: Access
    board: str
    server_name: str
    clock: Callable[[], float]

    def count(self, what: str) -> None:
        """Count an occurrence, for the metrics."""


class Session:
    """The state of one connection; also the JobSession that the handler sees.

    ``pidfd`` is the peer's, or None; the session closes it. ``notify`` sends a notification to the peer, ``hang_up``
    ends the connection, with a reason for the peer.
    """

    def __init__(
        self,
        owner: Owner,
        peer: Peer,
        role: Role,
        *,
        pidfd: int | None,
        notify: Callable[[str, dict[str, object]], None],
        hang_up: Callable[[str], None],
    ) -> None:
        self._owner = owner
        self._peer = peer
        self._role = role
        self._pidfd = pidfd
        self._notify = notify
        self._hang_up = hang_up
        self._client: str | None = None
        self._request: RegisterRequest | None = None
        self._job: str | None = None
        self._watch: ProcessWatch | None = None
        self._last_words: asyncio.TimerHandle | None = None
        self._running = False
        self._warned = False
        self.farewell: str | None = None

    # What the handler sees (JobSession).

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""
        return self._peer

    @property
    def client(self) -> str:
        """What the client called itself; empty before its hello."""
        return self._client or ""

    @property
    def pid(self) -> int | None:
        """The process that trains; None where the kernel shows none."""
        return self._request.pid if self._request is not None else self._peer.pid

    @property
    def job(self) -> str | None:
        """The job's name, None before it has one."""
        return self._job

    def advise(self, advice: int, batch_size: int, phase: str, reason: str) -> None:
        """Send advice; nothing happens once the job is over. Raises RpcError for a value out of range."""
        if self._running:
            fields = {"advice": advice, "batch_size": batch_size, "phase": phase, "reason": printable(reason)}
            self._notify("advise", NOTIFICATIONS["advise"].parse(fields, "advise"))

    # What the connection uses.

    @property
    def greeted(self) -> bool:
        """Whether the peer said hello."""
        return self._client is not None

    @property
    def running(self) -> bool:
        """Whether a job runs on this connection."""
        return self._running

    @property
    def label(self) -> str:
        """Who this is, for the log."""
        return f"session {self._job or self._client or '(no hello)'} (pid {self._peer.pid}, uid {self._peer.uid})"

    def answer(self, message: jsonrpc.Message) -> bytes | None:
        """Carry one message out: the answer as JSON, None where it wants none. Never raises.

        ``farewell`` is set where the connection ends after this answer.
        """
        self._owner.count("messages")
        if isinstance(message, Invalid):
            self._rejected(message.error)
            return jsonrpc.encode(jsonrpc.error_reply(message.id, message.error)) if message.wants_reply else None
        try:
            answer = jsonrpc.encode(jsonrpc.reply(message.id, self._call(message)))
        except RpcError as error:
            self._rejected(error)
            answer = jsonrpc.encode(jsonrpc.error_reply(message.id, error))
        except Exception:
            log.exception("%s: %s failed", self.label, message.method)
            failed = RpcError(jsonrpc.INTERNAL_ERROR, f"{message.method} failed: see the daemon's log")
            answer = jsonrpc.encode(jsonrpc.error_reply(message.id, failed))
        return answer if message.wants_reply else None

    def finish(self, reason: str) -> None:
        """The job is over, if there is one. May be called twice."""
        if self._last_words is not None:
            # It ended before its connection did.
            self._last_words.cancel()
            self._last_words = None
            reason = "exited" if reason == "disconnected" else reason
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self._running:
            self._running = False
            try:
                self._owner.handler.ended(self, reason)
            except Exception:
                log.exception("%s: its end could not be handled", self.label)

    # Carrying out.

    def _rejected(self, error: RpcError) -> None:
        self._owner.count("rejected")
        # Once a connection: a client that goes on would fill the log.
        if not self._warned:
            self._warned = True
            log.warning("%s: message refused (said once): %s", self.label, error.text)

    def _call(self, call: Call) -> object:
        method = METHODS.get(call.method)
        if method is None:
            raise RpcError(jsonrpc.METHOD_NOT_FOUND, f"there is no method {call.method[:64]!a}")
        if not self.greeted and method.name != "hello":
            raise RpcError(jsonrpc.WRONG_ORDER, 'say hello first: {"protocol": 1, "client": "name/version"}')
        if method.answers and not call.wants_reply:
            raise RpcError(jsonrpc.INVALID_REQUEST, f"{method.name} must be a request, with an id")
        values = parse_params(method, call.params)
        try:
            return self._perform(method, values)
        except Refused as refused:
            raise RpcError(refused.code, refused.text) from None

    def _perform(self, method: Method, values: dict[str, Any]) -> object:
        handler = self._owner.handler
        if method.kind == "query":
            return handler.query(method.name, values)
        if method.kind == "command":
            if self._role is not Role.ADMIN:
                group = self._owner.access.admin_group
                raise RpcError(jsonrpc.NOT_PERMITTED, f"{method.name} needs root or membership of group {group}")
            return handler.command(method.name, values, self._peer)
        if method.name == "hello":
            return self._hello(values)
        if method.name == "register":
            return self._register(values)
        self._report(method, values)
        return None

    def _hello(self, values: dict[str, Any]) -> object:
        owner = self._owner
        if values["protocol"] != PROTOCOL:
            self.farewell = (
                f"{values['client'][:64]} speaks protocol {values['protocol']}, {owner.server_name} speaks protocol "
                f"{PROTOCOL}: install matching versions"
            )
            raise RpcError(jsonrpc.WRONG_PROTOCOL, self.farewell)
        if self._role is Role.NONE:
            group = owner.access.user_group
            self.farewell = f"user {self._peer.uid} is not in group {group}: add it, then log in again"
            raise RpcError(jsonrpc.NOT_PERMITTED, self.farewell)
        self._client = values["client"]
        return {"protocol": PROTOCOL, "server": owner.server_name, "board": owner.board}

    def _register(self, values: dict[str, Any]) -> object:
        if self._request is not None:
            raise RpcError(jsonrpc.WRONG_ORDER, "one connection is one job: open another connection")
        pid = values["pid"] or self._peer.pid
        if pid is not None and not may_register(self._peer, pid):
            raise RpcError(jsonrpc.NOT_PERMITTED, f"process {pid} is not one of user {self._peer.uid}, or has ended")
        self._request = register_request({**values, "pid": pid})
        try:
            reply = self._owner.handler.register(self, self._request)
        except BaseException:
            self._request = None
            raise
        self._job = reply.job
        self._running = True
        if pid is not None:
            pidfd = None
            if pid == self._peer.pid:
                pidfd, self._pidfd = self._pidfd, None
            self._watch = ProcessWatch(pid, self._exited, asyncio.get_running_loop(), pidfd=pidfd)
        return {"job": reply.job, "batch_size": reply.batch_size, "phase": reply.phase, "advice": reply.advice}

    def _report(self, method: Method, values: dict[str, Any]) -> None:
        if not self._running or self._request is None:
            raise RpcError(jsonrpc.WRONG_ORDER, f"{method.name} needs a registered job on this connection")
        handler, sizes = self._owner.handler, self._request.batch_sizes
        if method.name == "steps":
            handler.steps(self, steps_report(values, sizes, self._owner.clock()))
        elif method.name == "batch_applied":
            handler.batch_applied(self, known_batch(values["batch_size"], sizes), values["advice"])
        elif method.name == "batch_failed":
            handler.batch_failed(self, known_batch(values["batch_size"], sizes), values["reason"])
        elif method.name == "pause":
            handler.paused(self, values["reason"])
        elif method.name == "resume":
            handler.paused(self, None)
        else:
            self.finish("end")

    def _exited(self) -> None:
        self._last_words = asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._exited_for_good)

    def _exited_for_good(self) -> None:
        # A child may hold the connection open; nothing of it counts.
        self._last_words = None
        self.finish("exited")
        self._hang_up("the process has ended")


def printable(text: str) -> str:
    """``text`` as one line of 1 to 256 printable characters, for a notification."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line[:256] or "-"
