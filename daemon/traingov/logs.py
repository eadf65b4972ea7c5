"""Logging that never makes the loop wait: a thread writes, and what a stuck reader cannot take is dropped."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from logging.handlers import QueueHandler

from .journal_log import output

_WAITING_MOST = 2000


class _DroppingHandler(QueueHandler):
    """Puts records into the queue while there is room; counts the rest."""

    def __init__(self, waiting: queue.Queue[logging.LogRecord | None]) -> None:
        super().__init__(waiting)
        self.dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Never waits."""
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1


class LogThread:
    """Writes records to stderr, or to the journal behind it.

    A daemon thread: a reader that never reads must not keep the process from ending.
    """

    def __init__(self, level: str) -> None:
        self._queue: queue.Queue[logging.LogRecord | None] = queue.Queue(_WAITING_MOST)
        self._handler = _DroppingHandler(self._queue)
        self._out = output()
        root = logging.getLogger()
        root.handlers[:] = [self._handler]
        root.setLevel(level.upper())
        self._thread = threading.Thread(target=self._run, name="traingov-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for a second at most."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=0.5)
        self._thread.join(1.0)

    def _run(self) -> None:
        while (record := self._queue.get()) is not None:
            self._out.handle(record)
            if self._handler.dropped:
                lost, self._handler.dropped = self._handler.dropped, 0
                text = f"{lost} log lines were dropped: nobody read them in time"
                self._out.handle(logging.LogRecord("traingov.logs", logging.WARNING, __file__, 0, text, None, None))


def log_from_a_thread(level: str) -> LogThread:
    """Send all logging to stderr from a thread; ``level`` as in the configuration."""
    return LogThread(level)
