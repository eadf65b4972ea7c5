"""The connection to the daemon: JSON-RPC 2.0, one message a line, over a Unix socket. It never waits once it runs.

States: "off" (no connection; tried again later), "greeting" (hello and register are sent), "ready" (registered),
"closed" (for good).
"""

import json
import logging
import os
import select
import socket
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .version import VERSION

PROTOCOL = 1
MAX_MESSAGE_BYTES = 64 * 1024
FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 60.0
ANSWER_TIMEOUT_S = 10.0

# Refusals that asking again does not change: the protocol, our rights, a message the daemon cannot take.
_FINAL_CODES = (-32001, -32003, -32600, -32601, -32602)
_HELLO, _REGISTER = 1, 2

log = logging.getLogger("traingov_client")

Event = Tuple[str, Dict[str, Any]]


class Link:
    """A connection that comes back.

    ``registration()`` gives the params of ``register``, asked for at each connection, so that progress made meanwhile
    goes along. All times are CLOCK_MONOTONIC seconds. After a fork the child's copy closes itself.
    """

    def __init__(self, path: str, registration: Callable[[], Dict[str, Any]]) -> None:
        self.path = path
        self.state = "off"
        self._registration = registration
        self._socket: Optional[socket.socket] = None
        self._inbox = b""
        self._out = b""
        self._retry_s = FIRST_RETRY_S
        self._next_try_s = 0.0
        self._answer_due_s = 0.0
        self._said: Set[str] = set()
        _links.add(self)

    @property
    def accepting(self) -> bool:
        """Whether reports are of use: a job is registered, or is about to be."""
        return self.state in ("ready", "greeting")

    @property
    def idle(self) -> bool:
        """Registered, and all that was queued has been sent."""
        return self.state == "ready" and not self._out

    def open(self, timeout_s: float) -> List[Event]:
        """Connect and register, waiting ``timeout_s`` seconds at most. Later answers are taken by ``poll``."""
        deadline_s = time.monotonic() + timeout_s
        events = self.poll(time.monotonic())
        while self.state == "greeting":
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                self.warn(
                    "slow", "%s: no answer within %.3g s; training goes on without waiting" % (self.path, timeout_s)
                )
                break
            self._wait(select.POLLIN, left_s)
            events.extend(self.poll(time.monotonic()))
        return events

    def poll(self, now_s: float) -> List[Event]:
        """Connect where it is time to, send what waits, read what came: ("registered" | "advise", its fields)."""
        if self.state == "off" and now_s >= self._next_try_s:
            self._connect(now_s)
        if self._socket is None:
            return []
        events = self._receive(now_s)
        self._flush(now_s)
        if self.state == "greeting" and now_s >= self._answer_due_s:
            self._lost(now_s, "no answer to register within %g s" % ANSWER_TIMEOUT_S)
        return events

    def send(self, messages: List[Event], now_s: float) -> None:
        """Send notifications. To be called only while ``idle``."""
        self._out += b"".join(_notification(method, params) for method, params in messages)
        self._flush(now_s)

    def finish(self, messages: List[Event], timeout_s: float) -> None:
        """Send what waits and ``messages``, for ``timeout_s`` seconds at most, and close for good."""
        deadline_s = time.monotonic() + timeout_s
        if self.state == "ready":
            self._out += b"".join(_notification(method, params) for method, params in messages)
        self._flush(time.monotonic())
        while self._out and self._socket is not None and time.monotonic() < deadline_s:
            self._wait(select.POLLOUT, deadline_s - time.monotonic())
            self._flush(time.monotonic())
        self.close()

    def close(self) -> None:
        """Close for good. May be called twice."""
        self._close()
        self.state = "closed"

    def warn(self, kind: str, text: str) -> None:
        """Say something once."""
        if kind not in self._said:
            self._said.add(kind)
            log.warning("traingov: %s", text)

    def _connect(self, now_s: float) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.connect(self.path)
        except (OSError, ValueError) as error:
            connection.close()
            self._later(now_s)
            self.warn("absent", "%s; training goes on ungoverned" % self._why_not(error))
            return
        self._socket = connection
        self._inbox = b""
        hello = {"protocol": PROTOCOL, "client": "traingov-client/" + VERSION}
        self._out = _line({"jsonrpc": "2.0", "id": _HELLO, "method": "hello", "params": hello}) + _line(
            {"jsonrpc": "2.0", "id": _REGISTER, "method": "register", "params": self._registration()}
        )
        self._answer_due_s = now_s + ANSWER_TIMEOUT_S
        self.state = "greeting"
        self._flush(now_s)

    def _why_not(self, error: Exception) -> str:
        """Why nobody was reached, in words."""
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            return "no service at %s" % self.path
        if isinstance(error, PermissionError):
            return "no permission for %s (join group traingov and log in again)" % self.path
        return "%s: %s" % (self.path, getattr(error, "strerror", None) or error)

    def _receive(self, now_s: float) -> List[Event]:
        events: List[Event] = []
        for _ in range(4):  # bounded: a daemon that never stops talking must not hold the training up
            if self._socket is None:
                break
            try:
                data = self._socket.recv(MAX_MESSAGE_BYTES)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._lost(now_s, str(error))
                break
            if not data:
                self._lost(now_s, "the daemon closed the connection")
                break
            lines = (self._inbox + data).split(b"\n")
            self._inbox = lines.pop()
            for line in lines:
                self._take(line, events, now_s)
            if len(self._inbox) > MAX_MESSAGE_BYTES:
                self._lost(now_s, "a message is longer than %d bytes" % MAX_MESSAGE_BYTES)
        return events

    def _take(self, line: bytes, events: List[Event], now_s: float) -> None:
        if self._socket is None:
            return
        try:
            message = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.warn("broken", "%s sends what is not JSON-RPC; it is ignored" % self.path)
            return
        method, fields = message.get("method"), message.get("params")
        if method == "advise" and isinstance(fields, dict):
            events.append(("advise", fields))
        elif method == "bye":
            reason = fields.get("reason") if isinstance(fields, dict) else None
            self._lost(now_s, "the daemon said goodbye: %.200s" % (reason,))
        elif method is None and isinstance(message.get("error"), dict):
            self._refused(message["error"], now_s)
        elif method is None and message.get("id") == _REGISTER and isinstance(message.get("result"), dict):
            self.state = "ready"
            self._retry_s = FIRST_RETRY_S
            log.info("traingov: registered as %.64s", message["result"].get("job"))
            events.append(("registered", message["result"]))
        # Anything else is the answer to hello, or a notification of a later version.

    def _refused(self, error: Dict[str, Any], now_s: float) -> None:
        text = "%s refused: %.300s" % (self.path, error.get("message"))
        if self.state == "ready":
            self.warn("refused", text)
            return
        self.warn("refused", text + "; training goes on ungoverned")
        if error.get("code") in _FINAL_CODES:
            self.close()
        else:
            self._lost(now_s, text)

    def _flush(self, now_s: float) -> None:
        while self._out and self._socket is not None:
            try:
                sent = self._socket.send(self._out, socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # What the daemon said last, why it hangs up for one, may still wait to be read.
                self._receive(now_s)
                if self._socket is not None:
                    self._lost(now_s, str(error))
                return
            self._out = self._out[sent:]

    def _lost(self, now_s: float, why: str) -> None:
        self._close()
        self.state = "off"
        self._later(now_s)
        self.warn("lost", "%s: %s; training goes on, and the connection is tried again" % (self.path, why))

    def _later(self, now_s: float) -> None:
        self._next_try_s = now_s + self._retry_s
        self._retry_s = min(LONGEST_RETRY_S, 2 * self._retry_s)

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._inbox = self._out = b""

    def _wait(self, event: int, timeout_s: float) -> None:
        if self._socket is not None and timeout_s > 0:
            poller = select.poll()
            poller.register(self._socket, event)
            poller.poll(max(1, int(timeout_s * 1000)))


def _line(message: Dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


_links: "weakref.WeakSet[Link]" = weakref.WeakSet()


def _notification(method: str, params: Dict[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def _after_fork_in_child() -> None:
    # A data loader's worker must not report, nor keep the connection open when the training process has ended.
    for link in list(_links):
        link.close()


if hasattr(os, "register_at_fork"):  # Python 3.7
    os.register_at_fork(after_in_child=_after_fork_in_child)
