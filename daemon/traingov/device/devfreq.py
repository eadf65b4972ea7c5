"""The GPU clock's knob: read, bound, verify, give back (DESIGN 5.1, 5.2).

Bounds are enough on every governor seen (nvhost_podgov, simple_ondemand, performance, userspace), so the
governor file is saved but not written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from .board import BoardIdentity, PowerMode, identify, power_mode
from .bounds import Bounds, ceiling, knob_path, read_bounds, refusal, write_order
from .discovery import DevfreqNode, find_gpu, gpu_load, gpu_nodes
from .files import Files
from .journal import RestoreJournal
from .journal_format import VALUES, Intent, JournalError
from .restore import RestoreReport, restore_knobs

__all__ = [
    "BoardIdentity",
    "Bounds",
    "DevfreqNode",
    "GpuKnob",
    "PowerMode",
    "WriteResult",
    "find_gpu",
    "gpu_load",
    "gpu_nodes",
    "identify",
    "power_mode",
]


@dataclass(frozen=True)
class WriteResult:
    """What became of `GpuKnob.set_bounds`.

    ``actual``: what the node shows after it; decide on this, not on the request. ``errors``: refusals, one line
    each with what to do. ``notes``: values that the kernel snapped or clamped. ``writes``: the writes that the
    kernel took, (file name, Hz) in order.
    """

    requested_min_hz: int
    requested_max_hz: int
    actual: Bounds
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    writes: tuple[tuple[str, int], ...] = ()

    @property
    def error(self) -> str | None:
        """All errors in one line, None when there were none."""
        return "; ".join(self.errors) or None


class GpuKnob:
    """The two bounds of one GPU node. Thread-safe; no method raises for what the kernel or the disk does.

    `set_bounds` waits for the disk only when a value is written that was not written before (see `journal`): call
    it from a worker thread where a wait of some milliseconds matters (DESIGN 5.8).
    """

    def __init__(self, node: DevfreqNode, files: Files, journal: RestoreJournal) -> None:
        self.node = node
        self._files = files
        self._journal = journal
        self._lock = threading.Lock()

    def read(self) -> Bounds:
        """What the node shows now. None where it cannot be read."""
        return read_bounds(self._files, self.node.path)

    def holds(self, bounds: Bounds) -> bool:
        """Whether both bounds still are what they were: False once another program changed them.

        A bound of ``bounds`` that is None is not compared. A bound that cannot be read now is not held.
        """
        now = self.read()
        return all(
            wanted is None or wanted == shown
            for wanted, shown in ((bounds.min_hz, now.min_hz), (bounds.max_hz, now.max_hz))
        )

    def set_bounds(self, min_hz: int, max_hz: int) -> WriteResult:
        """Bound the clock to min_hz..max_hz (a pin when they are equal), and read back what is really set.

        The originals are on disk before the first write; where they cannot be, nothing is written. Both bounds are
        always written, also where the node seems to show them: a kernel shows the effective value, and a bound
        that is hidden under another program's limit would come out when that limit goes.
        The second write is adjusted to what the first one left, so that min never exceeds max on the way.
        """
        with self._lock:
            return self._set_bounds(min_hz, max_hz)

    def restore(self) -> RestoreReport:
        """Give back what was found before the first write, and forget it: the last job ended (DESIGN 5.1)."""
        with self._lock:
            data = self._journal.data
            if data is None:
                return RestoreReport("nothing", "nothing to restore: nothing was written")
            knobs, writes = restore_knobs(self._files, data)
            failed = [knob.text for knob in knobs if knob.outcome == "failed"]
            if failed:
                return RestoreReport("failed", "; ".join(failed), knobs, writes)
            try:
                self._journal.clear()
            except JournalError as error:
                return RestoreReport("failed", str(error), knobs, writes)
            return RestoreReport("restored", "; ".join(knob.text for knob in knobs), knobs, writes)

    def _set_bounds(self, min_hz: int, max_hz: int) -> WriteResult:
        before = self.read()
        problem = self._problem(min_hz, max_hz, before)
        if problem is not None or before.max_hz is None:
            return WriteResult(min_hz, max_hz, before, (str(problem),))
        wanted = {"min": min_hz, "max": max_hz}
        order = write_order(before.max_hz, max_hz)
        try:
            self._prepare(before, wanted.items(), with_governor=True)
        except JournalError as error:
            return WriteResult(min_hz, max_hz, before, (str(error),))
        errors: list[str] = []
        writes: list[tuple[str, int]] = []
        refused: list[str] = []
        for kind in order:
            value, path = self._adjusted(kind, wanted[kind]), knob_path(self.node.path, kind)
            try:
                if value != wanted[kind]:
                    self._prepare(before, [(kind, value)])
                self._files.write_text(path, f"{value}\n")
            except JournalError as error:
                errors.append(str(error))
            except OSError as error:
                errors.append(refusal(path, str(value), error))
                refused.append(path)
            else:
                writes.append((path.rsplit("/", 1)[1], value))
        after = self.read()
        read_back = {"min": after.min_hz, "max": after.max_hz}
        try:
            self._journal.settle(
                {knob_path(self.node.path, kind): str(hz) for kind, hz in read_back.items() if hz is not None},
                refused,
            )
        except JournalError as error:
            errors.append(str(error))
        notes = tuple(self._notes(wanted, read_back, bool(errors)))
        return WriteResult(min_hz, max_hz, after, tuple(errors), notes, tuple(writes))

    def _problem(self, min_hz: int, max_hz: int, before: Bounds) -> str | None:
        if not 0 <= min_hz <= max_hz or max_hz <= 0 or max_hz >= 10**18:
            return f"bounds {min_hz}..{max_hz} Hz make no sense: 0 <= min <= max and max > 0 are needed"
        missing = [name for name, hz in (("min_freq", before.min_hz), ("max_freq", before.max_hz)) if hz is None]
        if missing:
            return (
                f"{self.node.path}/{' and '.join(missing)} cannot be read, so there is no original to give back: "
                "nothing is written; see whether the GPU driver is loaded"
            )
        return None

    def _prepare(self, present: Bounds, wanted: Iterable[tuple[str, int]], *, with_governor: bool = False) -> None:
        shown = {"min": present.min_hz, "max": present.max_hz}
        intents = [
            Intent(knob_path(self.node.path, kind), kind, str(shown[kind]), str(value)) for kind, value in wanted
        ]
        if with_governor and present.governor and VALUES["governor"].fullmatch(present.governor):
            intents.append(Intent(knob_path(self.node.path, "governor"), "governor", present.governor, None))
        self._journal.prepare(intents)

    def _adjusted(self, kind: str, value: int) -> int:
        """``value`` moved to the other bound where it would cross it now."""
        now = self.read()
        if kind == "min" and now.max_hz is not None and value > ceiling(now.max_hz):
            return now.max_hz
        if kind == "max" and now.min_hz is not None and value < now.min_hz:
            return now.min_hz
        return value

    def _notes(self, wanted: dict[str, int], read_back: dict[str, int | None], failed: bool) -> Iterable[str]:
        for kind, hz in read_back.items():
            path = knob_path(self.node.path, kind)
            if hz is None:
                yield f"{path} cannot be read back: what is set is not known"
            elif hz != wanted[kind] and not failed:
                yield f"{path}: asked for {wanted[kind]} Hz, the kernel set {hz} Hz (its step or its limit)"
