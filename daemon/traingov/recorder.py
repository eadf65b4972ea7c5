"""Writes a recording: one JSON object a line, by a thread of its own, so that the loop never waits for the disk.

First the header (board, settings, cap, and the folder that stood for / when the board was read), then events, actions
and knob writes in the order in which they happened.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
from pathlib import Path
from typing import Any

from traingov_policies.actions import Action
from traingov_policies.codec import SCHEMA, encode, encode_action, encode_event
from traingov_policies.events import Event
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap

log = logging.getLogger("traingov.recorder")

_QUEUE = 20_000  # entries; some minutes of samples. Beyond it a stuck disk costs the recording, not the loop.


class Recorder:
    """Raises OSError at the start when ``path`` cannot be written; later errors end the recording with a message."""

    def __init__(
        self, path: Path, board: Board, settings: Settings, cap: Cap | None, *, root: str | None = None
    ) -> None:
        if path.exists():  # the recording of the run before, perhaps of a crash: kept
            number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.{n}").exists())
            path.rename(path.with_name(f"{path.name}.{number}"))
        self._file = path.open("w", encoding="utf-8")
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(_QUEUE)
        self._thread = threading.Thread(target=self._run, name="traingov-recorder", daemon=True)
        self._lost = 0
        header = {"schema": SCHEMA, "board": encode(board), "settings": encode(settings), "cap": encode(cap)}
        self.entry({**header, "root": root or "/"})
        self._thread.start()

    def event(self, event: Event) -> None:
        """Record an event."""
        self.entry(encode_event(event))

    def action(self, action: Action) -> None:
        """Record an action."""
        self.entry(encode_action(action))

    def entry(self, entry: dict[str, Any]) -> None:
        """Record a line of plain values. Any thread."""
        try:
            self._queue.put_nowait(entry)
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Write what is left, at most for two seconds."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=1)
        self._thread.join(2)

    def _run(self) -> None:
        try:
            with self._file as file:
                while (entry := self._queue.get()) is not None:
                    file.write(json.dumps(entry, separators=(",", ":")) + "\n")
                    if self._queue.empty():
                        file.flush()
                    if self._lost:
                        file.write(json.dumps({"lost": self._lost}) + "\n")
                        self._lost = 0
        except OSError as error:
            log.error("recording stopped: %s", error.strerror or error)
