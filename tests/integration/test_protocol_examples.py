"""The conversations in docs/protocol.md are what a real service says, word for word."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import FAST, Lab

DOCUMENT = Path(__file__).parents[2] / "docs" / "protocol.md"
CONFIG = {"cap": {"power_w": 7}, "profile": FAST, "metrics": {"listen": None}}


def conversations() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Each fenced block with messages: ">" what the client sends, "<" what the service says."""
    for block in re.findall(r"^```\w*\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        lines = [line for line in block.splitlines() if "jsonrpc" in line]
        if any("..." in line for line in lines):
            raise AssertionError(f"an answer is left out: {lines}")
        if lines:
            yield [_message(line) for line in lines]


def _message(line: str) -> tuple[str, dict[str, Any]]:
    """With or without a mark: by hand, what has a method is typed, the rest comes back."""
    text = line.lstrip("<> ")
    message = json.loads(text)
    mark = line[0] if line[0] in "<>" else (">" if "method" in message else "<")
    return mark, message


class Peer:
    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(0.3)
        self.socket.connect(str(path))
        self.data = b""
        self.report: dict[str, Any] | None = None

    def send(self, message: dict[str, Any]) -> None:
        """As it is written; only the time of a report is now, since the clock is this machine's."""
        if message["method"] == "steps":
            self.report = message
            message = {**message, "params": {**message["params"], "end_s": time.monotonic()}}
        else:
            self.report = None
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float = 30) -> dict[str, Any]:
        """The next message. A job that has begun to report goes on with it, as a training loop does."""
        until = time.monotonic() + seconds
        while b"\n" not in self.data:
            assert time.monotonic() < until, "nothing came"
            try:
                chunk = self.socket.recv(65536)
                assert chunk, "the service closed the connection"
                self.data += chunk
            except TimeoutError:
                if self.report is not None:
                    self.send(self.report)
        line, self.data = self.data.split(b"\n", 1)
        message = json.loads(line)
        assert isinstance(message, dict)
        return message


EXAMPLES = list(conversations())


def test_there_are_conversations_in_the_document() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example[-1][1].get("method", "by hand")))
def test_a_conversation_goes_as_it_is_written(lab: Lab, example: list[tuple[str, dict[str, Any]]]) -> None:
    service = lab.service(lab.board("nano", "a", 1), "a", CONFIG)
    peer = Peer(service.socket)
    for mark, message in example:
        if mark == ">":
            peer.send(message)
        else:
            assert peer.receive() == message
    peer.socket.close()
