"""What a training script uses of the virtual board: an emulated GPU. Standard library only.

``submit`` returns at once, as a kernel launch does, and blocks when two steps are on their way; ``synchronize`` waits
for all of them. The board's process keeps device time: a step begins when it was submitted or when the device is
free, whichever is later, so the host's jitter does not add up while the queue holds work.
"""

from __future__ import annotations

import json
import os
import socket
import time
from types import TracebackType
from typing import Any

ENVIRONMENT = "TRAINGOV_SIM_GPU"
IN_FLIGHT = 2
SUN_PATH_MAX = 107


class OutOfMemory(MemoryError):  # noqa: N818  (named as what users call it)
    """The virtual board's memory does not hold this batch size."""


class BoardGone(ConnectionError):  # noqa: N818
    """The virtual board's process does not answer."""


def connect(path: str, timeout_s: float = 5.0) -> socket.socket:
    """A connection to the board's socket. Raises BoardGone, or ValueError for a path that is too long."""
    if len(os.fsencode(path)) > SUN_PATH_MAX:
        raise ValueError(f"{path}: a socket path has at most {SUN_PATH_MAX} bytes; use a shorter folder")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise BoardGone(f"{path}: no virtual board answers ({error.strerror or error})") from None
    return connection


class Channel:
    """JSON messages, one a line, with the board's process."""

    def __init__(self, path: str, timeout_s: float | None = None) -> None:
        self._socket = connect(path)
        self._socket.settimeout(timeout_s)
        self._buffer = b""

    def send(self, message: dict[str, Any]) -> None:
        """Send one message. Raises BoardGone."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise BoardGone(f"the virtual board ended ({error.strerror or error})") from None

    def receive(self) -> dict[str, Any]:
        """Wait for one message. Raises BoardGone."""
        while b"\n" not in self._buffer:
            try:
                data = self._socket.recv(65536)
            except OSError as error:
                raise BoardGone(f"the virtual board ended ({error.strerror or error})") from None
            if not data:
                raise BoardGone("the virtual board ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send one message and wait for its answer. Raises ValueError with what the board objects to."""
        self.send(message)
        answer = self.receive()
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


class EmulatedGpu:
    """The GPU of the board whose socket is ``socket_path`` (default: the environment's TRAINGOV_SIM_GPU).

    Use it from one thread. ``completed_s`` is the device time (CLOCK_MONOTONIC) at which the last finished step ended.
    """

    def __init__(self, socket_path: str | None = None) -> None:
        path = socket_path or os.environ.get(ENVIRONMENT)
        if not path:
            raise ValueError(f"no virtual board given: pass socket_path or set {ENVIRONMENT} to the board's socket")
        self._channel = Channel(path)
        self._memory: tuple[str, int] | None = None
        self._pending = 0
        self.completed_s: float | None = None

    @property
    def pending(self) -> int:
        """Steps submitted and not known to have ended."""
        return self._pending

    def submit(self, workload: str, batch_size: int) -> None:
        """Launch one training step. Raises OutOfMemory, ValueError (unknown workload or batch size) or BoardGone.

        The first step of a workload at a batch size first asks for memory, and waits for that answer.
        """
        if self._memory != (workload, batch_size):
            self.synchronize()
            self._channel.send({"op": "allocate", "workload": workload, "batch_size": batch_size})
            answer = self._channel.receive()
            if answer.get("kind") == "out_of_memory":
                raise OutOfMemory(answer["error"])
            if "error" in answer:
                raise ValueError(answer["error"])
            self._memory = (workload, batch_size)
        while self._pending >= IN_FLIGHT:
            self._wait_for_one()
        self._channel.send({"op": "submit", "workload": workload, "batch_size": batch_size, "t": time.monotonic()})
        self._pending += 1

    def synchronize(self) -> None:
        """Wait until every submitted step has ended."""
        while self._pending:
            self._wait_for_one()

    def close(self) -> None:
        """Give the GPU back; waiting steps are dropped."""
        self._channel.close()

    def __enter__(self) -> EmulatedGpu:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for_one(self) -> None:
        answer = self._channel.receive()
        self._pending -= 1
        if "error" in answer:
            raise ValueError(answer["error"])
        self.completed_s = answer["done"]
