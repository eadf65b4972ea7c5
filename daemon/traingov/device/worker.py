"""The one thread that touches the GPU's knob: the loop never waits for a sysfs file or for the journal's disk."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from traingov_policies.values import Board

from .board import identify
from .bounds import ceiling
from .devfreq import GpuKnob, WriteResult
from .discovery import DevfreqNode, find_gpu
from .files import Files, SystemFiles
from .journal import RestoreJournal
from .restore import JOURNAL_NAME, RestoreReport

log = logging.getLogger("traingov.device")

OnWrite = Callable[[dict[str, Any]], None]


class TracedFiles:
    """Files that report each write: the evidence a recording keeps, independent of what the knob says it did."""

    def __init__(self, files: Files, journal_path: str, on_write: OnWrite) -> None:
        self._files = files
        self._journal_path = journal_path
        self._on_write = on_write
        self.read_text, self.exists = files.read_text, files.exists
        self.list, self.real_path = files.list, files.real_path

    def write_text(self, path: str, text: str) -> None:
        """Write, and report path, value and whether the saved originals were on disk at that moment."""
        entry = {
            "write": path,
            "value": text.strip(),
            "saved": os.path.exists(self._journal_path),
            "t_s": time.monotonic(),
        }
        try:
            self._files.write_text(path, text)
        except OSError as error:
            self._on_write({**entry, "error": error.strerror or str(error)})
            raise
        self._on_write(entry)


class DeviceWorker:
    """Owns the knob. Every call returns at once; its result comes to the loop as a call of ``done``."""

    def __init__(self, root: str, state_dir: Path, on_write: OnWrite) -> None:
        journal_path = str(state_dir / JOURNAL_NAME)
        plain = SystemFiles(root)
        self._files: Files = TracedFiles(plain, journal_path, on_write)
        self._journal = RestoreJournal(journal_path, plain, log.warning)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="traingov-device")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._knob: GpuKnob | None = None
        self.node: DevfreqNode | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Results are handed to ``loop``."""
        self._loop = loop

    def find(self) -> Board:
        """Look who the board is and what its GPU's clocks are now. Reads a few small files; nothing is written.

        Clocks above the present maximum are left out: the power mode allows no more, or somebody limited them.
        """
        identity = identify(self._files)
        node = find_gpu(self._files)
        clocks: tuple[int, ...] = ()
        if node is None:
            self._knob = None
        else:
            if self._knob is None or node.path != self._knob.node.path:
                self._knob = GpuKnob(node, self._files, self._journal)
            limit = ceiling(self._original_max_hz())
            clocks = tuple(f for f in node.available_frequencies_hz if f <= limit)
        self.node = node
        return Board(identity.name, identity.release, identity.power_mode, clocks)

    def _original_max_hz(self) -> int:
        """The maximum as it is without us: the saved one while our own pin is still in the knob."""
        data = self._journal.data
        for saved in data.knobs if data is not None else ():
            if saved.kind == "max" and saved.original.isdigit():
                return int(saved.original)
        return (self._knob.read().max_hz if self._knob is not None else None) or 0

    def set_bounds(self, min_hz: int, max_hz: int, done: Callable[[WriteResult], None]) -> None:
        """Write the bounds; ``done`` gets the result on the loop."""
        self._submit(lambda: self._set_bounds(min_hz, max_hz), done)

    def look(self, done: Callable[[Any], None]) -> None:
        """Read the bounds (``Bounds``, or None without a node)."""
        self._submit(lambda: self._knob.read() if self._knob is not None else None, done)

    def restore(self, done: Callable[[RestoreReport], None]) -> None:
        """Give the originals back."""
        self._submit(self._restore, done)

    def restore_now(self, timeout_s: float) -> RestoreReport:
        """Give the originals back before the process ends; waits at most ``timeout_s``."""
        try:
            return self._pool.submit(self._restore).result(timeout_s)
        except TimeoutError:
            return RestoreReport("failed", f"restoring took more than {timeout_s:g} s: run `traingov restore`")

    def close(self) -> None:
        """End the thread once what is under way is done."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _set_bounds(self, min_hz: int, max_hz: int) -> WriteResult:
        if self._knob is None:
            raise RuntimeError("no GPU devfreq node")
        return self._knob.set_bounds(min_hz, max_hz)

    def _restore(self) -> RestoreReport:
        if self._knob is None:
            if self._journal.data is not None:
                return RestoreReport(
                    "failed", "the GPU's node is gone; its originals are saved: run `traingov restore`"
                )
            return RestoreReport("nothing", "nothing to restore: no GPU node")
        return self._knob.restore()

    def _submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def finished(future: Future[Any]) -> None:
            if future.cancelled() or self._loop is None or self._loop.is_closed():
                return
            error = future.exception()
            if error is not None:
                log.error("device: %s", error)
                return
            try:
                self._loop.call_soon_threadsafe(done, future.result())
            except RuntimeError:
                return  # the loop closed in the meantime: the process ends, and the journal stays for a restore

        try:
            self._pool.submit(work).add_done_callback(finished)
        except RuntimeError:
            return  # closing
