"""Giving the knobs back (DESIGN 5.1). Standard library only: it must work when nothing else does.

What is done, for every knob of the journal:

- it holds its original: nothing to do;
- it holds a value that we wrote (or a write was under way, see `journal`): the original is written back;
- it holds anything else: somebody else set it meanwhile. It is left alone, and that is said.

Never above the present power mode. nvpmodel writes the mode's limit into max_freq when the mode changes. If the
mode is another one than the journal's, the original maximum is lowered to the new mode's limit in
/etc/nvpmodel.conf; where that cannot be read, the maximum is not raised above what the knob shows now.

A journal of an earlier boot is discarded: the kernel came up with its own defaults. An error at one knob does not
keep the others from coming back. The journal goes only when nothing is left to do, so a restore can be repeated.
Two at once are safe: the second waits for the first and then finds nothing to do.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from .board import UNKNOWN, power_mode
from .bounds import ceiling, refusal, write_order
from .disk import Disk, FolderLock, remove_journal, set_aside
from .files import Files, SystemFiles, errno_name, read_line
from .journal import is_earlier_boot
from .journal_format import KINDS, VALUES, DamagedJournalError, JournalData, JournalError, Knob, decode, is_knob_path

JOURNAL_NAME = "restore.json"
_ATTEMPTS = 3
_PAUSE_S = 0.02


@dataclass(frozen=True)
class KnobOutcome:
    """What became of one knob.

    ``outcome``: "restored", "clamped" (back as far as the power mode, another program's bound or the kernel lets
    it), "already" (it held its original), "untouched" (never written), "left" (another program set it) or "failed".
    ``found`` and ``now`` are what it held before and after, None where it could not be read.
    """

    path: str
    outcome: str
    original: str
    found: str | None
    now: str | None
    text: str


@dataclass(frozen=True)
class RestoreReport:
    """What a restore did. ``status``: "nothing", "restored", "discarded", "damaged" or "failed"."""

    status: str
    text: str
    knobs: tuple[KnobOutcome, ...] = ()
    writes: tuple[tuple[str, str], ...] = ()

    @property
    def exit_status(self) -> int:
        """0 when nothing is left to do, else 1."""
        return 1 if self.status in {"failed", "damaged"} else 0


def restore(
    root: str,
    journal_path: str,
    out: TextIO,
    *,
    files: Files | None = None,
    disk: Disk | None = None,
    lock_wait_s: float = 5.0,
) -> RestoreReport:
    """Give back what the journal at ``journal_path`` says; one line on ``out`` for each knob and a last one.

    ``root`` is put before the paths of knobs, not before the journal's. Raises nothing of its own.
    """
    files = files or SystemFiles(root)
    disk = disk or Disk()
    lock = FolderLock(os.path.dirname(os.path.abspath(journal_path)))
    report: RestoreReport
    try:
        lock.acquire(lock_wait_s)
    except FileNotFoundError:
        report = RestoreReport(
            "nothing",
            f"nothing to restore: there is no {journal_path} (another state_dir? --state-dir)",
        )
    except OSError as error:
        report = RestoreReport("failed", f"cannot open the folder of {journal_path} ({errno_name(error)}): run as root")
    except JournalError as error:
        report = RestoreReport("failed", str(error))
    else:
        try:
            report = _restore_locked(files, journal_path, disk)
        finally:
            lock.release()
    for knob in report.knobs:
        print(knob.text, file=out)
    print(report.text, file=out)
    return report


def _restore_locked(files: Files, path: str, disk: Disk) -> RestoreReport:
    try:
        data = decode(disk.read(path))
    except FileNotFoundError:
        # Killed while it saved for the first time, so before any write: what it left is of no use to anybody.
        with contextlib.suppress(OSError):
            disk.remove(f"{path}.tmp")
        return RestoreReport(
            "nothing",
            f"nothing to restore: there is no {path} (another state_dir? --state-dir)",
        )
    except DamagedJournalError as damage:
        try:
            where = f"kept as {set_aside(path, disk)}"
        except OSError as error:
            where = f"and cannot be set aside ({errno_name(error)})"
        return RestoreReport(
            "damaged",
            f"{path} is damaged ({damage}); {where}: check the GPU's min_freq and max_freq, "
            "or restart the board for its defaults",
        )
    except OSError as error:
        return RestoreReport("failed", f"cannot read {path} ({errno_name(error)}): run as root")
    if is_earlier_boot(data, files):
        knobs: tuple[KnobOutcome, ...] = ()
        writes: tuple[tuple[str, str], ...] = ()
        status, text = "discarded", f"{path} is of an earlier boot: discarded, the kernel has its own defaults"
    else:
        knobs, writes = restore_knobs(files, data)
        failed = sum(knob.outcome == "failed" for knob in knobs)
        if failed:
            text = f"{failed} of {len(knobs)} knobs are not back; {path} is kept: run `traingov restore` again"
            return RestoreReport("failed", text, knobs, writes)
        status, text = "restored", f"all {len(knobs)} knobs are settled"
    try:
        remove_journal(path, disk)
    except OSError as error:
        return RestoreReport("failed", f"cannot remove {path} ({errno_name(error)}): remove it by hand", knobs, writes)
    return RestoreReport(status, text, knobs, writes)


def restore_knobs(
    files: Files, data: JournalData, pause: Callable[[float], None] = time.sleep
) -> tuple[tuple[KnobOutcome, ...], tuple[tuple[str, str], ...]]:
    """Give back every knob of a journal of this boot: the outcomes, and the writes (path, value) in order.

    A refused write is tried again up to three times, 20 ms apart.
    """
    nodes: dict[str, dict[str, Knob]] = {}
    for knob in data.knobs:
        nodes.setdefault(os.path.dirname(knob.path), {})[knob.kind] = knob
    outcomes: list[KnobOutcome] = []
    writes: list[tuple[str, str]] = []
    for node, knobs in nodes.items():
        work = _Node(files, node, knobs, data.power_mode, writes)
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(_PAUSE_S)
            work.attempt()
            if not work.failed():
                break
        outcomes.extend(work.outcomes())
    return tuple(outcomes), tuple(writes)


class _Node:
    """The knobs of one devfreq node on their way back."""

    def __init__(
        self, files: Files, node: str, knobs: dict[str, Knob], mode: str, writes: list[tuple[str, str]]
    ) -> None:
        self._files = files
        self._node = node
        self._knobs = knobs
        self._mode = mode
        self._writes = writes
        self._found = {kind: self._read(kind) for kind in knobs}
        self._done: dict[str, tuple[str, str]] = {}  # kind: (outcome, text without the path)

    def failed(self) -> bool:
        return any(outcome == "failed" for outcome, _ in self._done.values())

    def outcomes(self) -> list[KnobOutcome]:
        return [
            KnobOutcome(
                knob.path,
                self._done[kind][0],
                knob.original,
                self._found[kind],
                self._read(kind),
                f"{knob.path}: {self._done[kind][1]}",
            )
            for kind, knob in self._knobs.items()
        ]

    def attempt(self) -> None:
        """Look at every knob that is not settled and bring it back."""
        present = {kind: self._read(kind) for kind in KINDS}
        ours = [kind for kind in self._knobs if self._is_ours(kind, present[kind])]
        target = {kind: self._knobs[kind].original for kind in ours}
        notes = self._clamp(target, present)
        order = ["governor"]
        if present["max"] and "max" in target:
            order += write_order(int(present["max"]), int(target["max"]))
        else:
            order += ["min", "max"]
        for kind in order:
            if kind in target:
                self._write_back(kind, target[kind], present[kind], notes.get(kind))

    def _is_ours(self, kind: str, value: str | None) -> bool:
        knob = self._knobs[kind]
        if self._done.get(kind, ("failed", ""))[0] != "failed":
            return False
        if not self._is_safe(knob):
            self._done[kind] = ("failed", "leads out of /sys/…/devfreq, so it is not touched: check the journal")
        elif not knob.written:
            self._done[kind] = ("untouched", f"never written, still {value or 'unreadable'}")
        elif value is None:
            self._done[kind] = ("failed", f"cannot be read, so its original {knob.original} is not written")
        elif value == knob.original:
            self._done[kind] = ("already", f"holds its original {value}")
        elif value not in knob.written and not knob.pending:
            self._done[kind] = ("left", f"left at {value}: another program set it, we did not")
        else:
            return True
        return False

    def _is_safe(self, knob: Knob) -> bool:
        # The path was checked when the journal was read; here links are followed, and a link may lead anywhere.
        try:
            return is_knob_path(self._files.real_path(knob.path), knob.kind)
        except OSError:
            return False

    def _clamp(self, target: dict[str, str], present: dict[str, str | None]) -> dict[str, str]:
        """Lower targets to what is allowed now; the reasons, by kind."""
        notes = {}
        limit, why = self._mode_limit(present["max"])
        if "max" in target and ceiling(int(target["max"])) > limit:
            target["max"], notes["max"] = str(int(limit)), why
        low = present["min"]
        if "max" in target and "min" not in target and low and ceiling(int(target["max"])) < int(low):
            # The minimum is not ours to lower; a maximum below it would be refused.
            target["max"], notes["max"] = low, f"the minimum is {low}, which we did not set"
        upper = target.get("max", present["max"])
        if "min" in target and upper is not None and int(target["min"]) > ceiling(int(upper)):
            target["min"] = upper
            notes["min"] = notes.get("max", f"the maximum is {upper}, which we did not set")
        return notes

    def _mode_limit(self, present_max: str | None) -> tuple[float, str]:
        """The highest maximum allowed, and why; infinite where the mode is still the journal's."""
        mode = power_mode(self._files)
        if mode.name == self._mode:
            return float("inf"), ""
        if mode.gpu_max_known:
            return ceiling(mode.gpu_max_hz or 0), f"the limit of power mode {mode.name}"
        if UNKNOWN in (mode.name, self._mode) or present_max is None:
            return float("inf"), ""
        why = f"the power mode is now {mode.name}, whose limit cannot be read, so the maximum is not raised"
        return ceiling(int(present_max)), why

    def _write_back(self, kind: str, value: str, present: str | None, note: str | None) -> None:
        knob = self._knobs[kind]
        if self._crosses(kind, value):
            self._done[kind] = ("failed", f"{value} must wait until the other bound is back")
            return
        if value != present:
            try:
                self._files.write_text(knob.path, f"{value}\n")
            except OSError as error:
                self._done[kind] = ("failed", refusal(knob.path, value, error).partition(": ")[2])
                return
            self._writes.append((knob.path, value))
        now = self._read(kind)
        if now == value:
            text = f"lowered to {value}, not its original {knob.original}: {note}" if note else f"restored to {value}"
            self._done[kind] = ("clamped" if note else "restored", text)
        elif now is None or now == present:
            self._done[kind] = ("failed", f"the kernel took {value} but shows {now or 'nothing'}: try again")
        else:
            self._done[kind] = ("clamped", f"restored to {value}, of which the kernel allows {now} at present")

    def _crosses(self, kind: str, value: str) -> bool:
        """Whether the write would make min exceed max: the other bound's own write just failed."""
        other = self._read({"min": "max", "max": "min"}.get(kind, kind))
        if other is None or kind not in {"min", "max"}:
            return False
        low, high = (value, other) if kind == "min" else (other, value)
        return int(low) > ceiling(int(high))

    def _read(self, kind: str) -> str | None:
        text = read_line(self._files, f"{self._node}/{KINDS[kind]}")
        return text if text and VALUES[kind].fullmatch(text) else None
