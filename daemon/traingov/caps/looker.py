"""One look at a time, in a thread of its own: the loop waits for no file."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Looker:
    """Runs ``look`` in its thread and calls ``done`` with the result on the loop. The thread begins with the first.

    The process does not wait for the thread: a file system that never answers must not keep the service from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._busy = False

    def ask(self, look: Callable[[], _T], done: Callable[[_T], None]) -> bool:
        """Look soon; False where the look before has not come back, and then nothing is asked."""
        if self._busy:
            return False
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        self._busy = True
        self._asked.put((look, done))
        return True

    def _run(self) -> None:
        assert self._loop is not None
        while True:
            look, done = self._asked.get()
            result = look()
            try:
                self._loop.call_soon_threadsafe(self._come_back, done, result)
            except RuntimeError:  # the loop has ended
                return

    def _come_back(self, done: Callable[[Any], None], result: Any) -> None:
        self._busy = False
        done(result)
