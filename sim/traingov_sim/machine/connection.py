"""One connection to a virtual board's process: lines in, bytes out, never blocking."""

from __future__ import annotations

import json
import socket
from typing import Any

from ..board.tegrastats_text import TegrastatsText

MAX_MESSAGE = 65536
MAX_BACKLOG = 262144


class Stream:
    """A tegrastats run: its interval and the absolute time its next line is due."""

    def __init__(self, interval_s: float, now_s: float, text: TegrastatsText) -> None:
        self.interval_s = interval_s
        self.due_s = now_s + interval_s
        self.text = text

    def take_turn(self, now_s: float) -> bool:
        """Whether a line is due; the next one is then due on the grid of intervals, without drifting."""
        if now_s < self.due_s:
            return False
        missed = int((now_s - self.due_s) / self.interval_s)
        self.due_s += (missed + 1) * self.interval_s
        return True


class Connection:
    """Buffers of one client. ``closed`` once the other side went away, or broke the rules."""

    def __init__(self, sock: socket.socket, name: str) -> None:
        self.socket = sock
        self.name = name
        self.stream: Stream | None = None
        self.closed = False
        self._in = b""
        self._out = b""
        sock.setblocking(False)

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait for room."""
        return bool(self._out)

    def read(self) -> list[dict[str, Any]]:
        """The messages that came. A message that is no JSON object closes the connection."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        *lines, self._in = (self._in + data).split(b"\n")
        if len(self._in) > MAX_MESSAGE:
            self.closed = True
        messages = []
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self.send({"error": "not a JSON object; one message a line, please"})
                self.closed = True
                break
            messages.append(message)
        return messages

    def send(self, message: dict[str, Any]) -> None:
        """Queue an answer and send what goes."""
        self._out += json.dumps(message).encode() + b"\n"
        if len(self._out) > MAX_BACKLOG:
            self.closed = True
        self.flush()

    def send_line(self, line: str) -> None:
        """Send a tegrastats line, or drop it while an earlier one waits for its reader."""
        if not self._out:
            self._out = line.encode() + b"\n"
            self.flush()

    def flush(self) -> None:
        """Send what goes without waiting."""
        if not self._out:
            return
        try:
            self._out = self._out[self.socket.send(self._out) :]
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
