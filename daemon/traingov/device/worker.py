"""The one thread that touches the GPU's knob: the loop never waits for a sysfs file or for the journal's disk."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traingov_policies.values import Board

from .board import STATUS_FILE, UNKNOWN, identify, power_mode
from .bounds import Bounds, ceiling
from .devfreq import GpuKnob, WriteResult
from .discovery import DevfreqNode, find_gpu
from .files import Files, SystemFiles, read_or_none
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


@dataclass(frozen=True)
class Look:
    """What a periodic look saw: the bounds (None without a node), and the board where its power mode is another."""

    bounds: Bounds | None
    board: Board | None = None


class DeviceWorker:
    """Owns the knob. Every call returns at once; its result comes to the loop as a call of ``done``.

    Of several writes that wait, only the newest is carried out: the older ones were overtaken by a later decision.
    A thread of its own that the process does not wait for: a kernel that never answers a write must not keep the
    service from ending (the journal stays, and ``traingov restore`` does the rest).
    """

    def __init__(self, root: str, state_dir: Path, on_write: OnWrite) -> None:
        journal_path = str(state_dir / JOURNAL_NAME)
        plain = SystemFiles(root)
        self._files: Files = TracedFiles(plain, journal_path, on_write)
        self._journal = RestoreJournal(journal_path, plain, log.warning)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._knob: GpuKnob | None = None
        self.node: DevfreqNode | None = None
        self._mode_text: str | None = None
        self._wake = threading.Condition()
        self._write: _Task | None = None
        self._look: _Task | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="traingov-device", daemon=True)
        self._thread.start()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Results are handed to ``loop``."""
        self._loop = loop

    def find(self) -> Board:
        """Look who the board is and what its GPU's clocks are now. Reads a few small files; nothing is written.

        Clocks above the present maximum are left out: the power mode allows no more, or somebody limited them.
        """
        self._mode_text = read_or_none(self._files, STATUS_FILE)
        identity = identify(self._files)
        node = find_gpu(self._files)
        clocks: tuple[int, ...] = ()
        if node is None:
            self._knob = None
        else:
            if self._knob is None or node.path != self._knob.node.path:
                self._knob = GpuKnob(node, self._files, self._journal)
            limit = self._limit_hz()
            clocks = tuple(f for f in node.available_frequencies_hz if f <= limit)
        self.node = node
        return Board(identity.name, identity.release, identity.power_mode, clocks)

    def _limit_hz(self) -> float:
        """The highest clock allowed now. Where the power mode changed under a pin of ours, the new mode's."""
        data, mode = self._journal.data, power_mode(self._files)
        if data is not None and mode.name != data.power_mode and UNKNOWN not in (mode.name, data.power_mode):
            if mode.gpu_max_known:
                return ceiling(mode.gpu_max_hz or 0)
            shown = self._knob.read().max_hz if self._knob is not None else None
            ours = {value for saved in data.knobs if saved.kind == "max" for value in saved.written}
            if shown is not None and str(shown) not in ours:
                return ceiling(shown)
        return ceiling(self._original_max_hz())

    def _original_max_hz(self) -> int:
        """The maximum as it is without us: the saved one while our own pin is still in the knob."""
        data = self._journal.data
        for saved in data.knobs if data is not None else ():
            if saved.kind == "max" and saved.original.isdigit():
                return int(saved.original)
        return (self._knob.read().max_hz if self._knob is not None else None) or 0

    def set_bounds(self, min_hz: int, max_hz: int, done: Callable[[WriteResult], None]) -> None:
        """Write the bounds; ``done`` gets the result on the loop, unless a later write overtakes this one."""
        self._queue_write(_Task(lambda: self._set_bounds(min_hz, max_hz), done))

    def restore(self, done: Callable[[RestoreReport], None]) -> None:
        """Give the originals back; overtakes a write that waits, and is overtaken by a later one."""
        self._queue_write(_Task(self._restore, done))

    def look(self, done: Callable[[Look], None]) -> None:
        """Read the bounds, and whether nvpmodel set another power mode: one small file more, never `nvpmodel -q`."""
        with self._wake:
            self._look = _Task(self._look_now, done)
            self._wake.notify()

    def restore_now(self, timeout_s: float) -> RestoreReport:
        """Give the originals back before the process ends; waits at most ``timeout_s``."""
        box: queue.SimpleQueue[RestoreReport] = queue.SimpleQueue()
        self._queue_write(_Task(self._restore, box.put, on_loop=False))
        try:
            return box.get(timeout=timeout_s)
        except queue.Empty:
            return RestoreReport("failed", f"restoring took more than {timeout_s:g} s: run `traingov restore`")

    def close(self) -> None:
        """Take no more work."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def _queue_write(self, task: _Task) -> None:
        with self._wake:
            self._write = task
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while self._write is None and self._look is None and not self._closed:
                    self._wake.wait()
                if self._write is not None:
                    task, self._write = self._write, None
                elif self._look is not None:
                    task, self._look = self._look, None
                else:
                    return
            try:
                result = task.work()
            except Exception:
                log.exception("device: this must not happen; please report it")
                continue
            if not task.on_loop:
                task.done(result)
            elif self._loop is not None:
                try:
                    self._loop.call_soon_threadsafe(task.done, result)
                except RuntimeError:
                    return  # the loop closed: the process ends, and the journal stays for a restore

    def _look_now(self) -> Look:
        changed = read_or_none(self._files, STATUS_FILE) != self._mode_text
        board = self.find() if changed else None
        return Look(self._knob.read() if self._knob is not None else None, board)

    def _set_bounds(self, min_hz: int, max_hz: int) -> WriteResult:
        if self._knob is None:
            return WriteResult(min_hz, max_hz, Bounds(None, None), ("no GPU devfreq node: it is looked for again",))
        return self._knob.set_bounds(min_hz, max_hz)

    def _restore(self) -> RestoreReport:
        if self._knob is None:
            if self._journal.data is not None:
                return RestoreReport(
                    "failed", "the GPU's node is gone; its originals are saved: run `traingov restore`"
                )
            return RestoreReport("nothing", "nothing to restore: no GPU node")
        return self._knob.restore()


@dataclass(frozen=True)
class _Task:
    """Work for the thread; ``done`` gets its result, on the loop or (at the end) right there."""

    work: Callable[[], Any]
    done: Callable[[Any], object]
    on_loop: bool = True
