"""The restore journal: what the knobs held before the first write, kept on disk (DESIGN 5.1, 5.6).

Standard library only. One JSON file, replaced as a whole: temporary file, fsync, rename, fsync of the folder.

What a reader may rely on after a SIGKILL at any instant:

- a knob that was ever written has its original value here, saved before the write;
- every value that the knob may hold because of us is in ``written``, or the knob is ``pending``.

``pending`` says that a value was about to be written for the first time and that nobody has yet noted what the
kernel made of it (it may snap or clamp it). Once noted, writing the same value again costs no disk access: the
file is rewritten only when a value appears that was not there. The governor moves among the few steps of a clock
table, so the number of rewrites is bounded by twice the number of steps, however often it writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from .board import UNKNOWN, power_mode
from .disk import Disk, FolderLock, remove_journal, save, set_aside
from .files import Files, boot_id, errno_name
from .journal_format import (
    VALUES,
    DamagedJournalError,
    Intent,
    JournalData,
    JournalError,
    Knob,
    decode,
    encode,
    is_knob_path,
)


class RestoreJournal:
    """The journal of a running governor. Used by one thread at a time (`GpuKnob` sees to that).

    ``files`` tells boot and power mode; ``warn`` gets one line about anything found and set aside.
    The folder is locked from the first `prepare` to `clear`.
    """

    def __init__(
        self,
        path: str,
        files: Files,
        warn: Callable[[str], None],
        disk: Disk | None = None,
        lock_wait_s: float = 1.0,
    ) -> None:
        self.path = os.path.abspath(path)
        self._files = files
        self._warn = warn
        self._disk = disk or Disk()
        self._lock = FolderLock(os.path.dirname(self.path))
        self._lock_wait_s = lock_wait_s
        self._data: JournalData | None = None
        self._stamp: tuple[int, ...] | None = None

    @property
    def data(self) -> JournalData | None:
        """What is saved, None while nothing was written."""
        return self._data

    def prepare(self, intents: Iterable[Intent]) -> None:
        """Make sure that everything about to be written can be taken back; on disk when this returns.

        Raises JournalError where that cannot be promised: then nothing must be written.
        """
        try:
            self._prepare(tuple(intents))
        finally:
            if self._data is None:
                self._lock.release()

    def _prepare(self, intents: tuple[Intent, ...]) -> None:
        data = self._data if self._data is not None else self._open()
        knobs = {knob.path: knob for knob in data.knobs}
        for intent in intents:
            if not is_knob_path(intent.path, intent.kind):
                raise JournalError(f"{intent.path} is no devfreq knob, so it will not be written")
            for value in (intent.present, intent.value):
                if value is not None and not VALUES[intent.kind].fullmatch(value):
                    raise JournalError(f"{value!r} is no value for {intent.path}, so it will not be written")
            knob = knobs.get(intent.path) or Knob(intent.path, intent.kind, intent.present)
            if intent.value is not None and intent.value not in knob.written:
                knob = replace(knob, written=(intent.value, *knob.written), pending=True)
            knobs[intent.path] = knob
        self._keep(replace(data, knobs=tuple(knobs.values())))

    def settle(self, read_back: Mapping[str, str], refused: Iterable[str] = ()) -> None:
        """Note what the kernel made of the writes: path to the value read back. Raises JournalError.

        The value of a ``refused`` write's knob is not noted as ours: somebody else may have set it.
        """
        if self._data is None:
            return
        not_ours = frozenset(refused)
        knobs = []
        for knob in self._data.knobs:
            value, noted = read_back.get(knob.path), knob
            if value is not None and VALUES[knob.kind].fullmatch(value):
                if value in (*knob.written, knob.original):
                    noted = replace(knob, pending=False)
                elif knob.path not in not_ours:
                    noted = replace(knob, written=(value, *knob.written), pending=False)
            knobs.append(noted)
        self._keep(replace(self._data, knobs=tuple(knobs)))

    def clear(self) -> None:
        """Everything is back: remove the file and let go of the folder. Raises JournalError."""
        if self._data is None:
            return
        try:
            remove_journal(self.path, self._disk)
        except FileNotFoundError:
            pass  # somebody removed the folder: nothing is left to remove
        except OSError as error:
            raise JournalError(f"cannot remove {self.path} ({errno_name(error)}): remove it by hand") from None
        self.close()

    def close(self) -> None:
        """Let go of the folder and leave the file, for a later restore."""
        self._data = None
        self._stamp = None
        self._lock.release()

    def _open(self) -> JournalData:
        folder = os.path.dirname(self.path)
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            self._lock.acquire(self._lock_wait_s)
        except OSError as error:
            raise JournalError(
                f"cannot use {folder} ({errno_name(error)}): originals cannot be saved, so nothing is written; "
                "make it a folder that traingovd may write"
            ) from None
        fresh = JournalData(boot_id(self._files), power_mode(self._files).name, ())
        old = self._leftover()
        if old is None or is_earlier_boot(old, self._files):
            return fresh
        # A restore did not finish: its originals are the true ones, what the knobs hold now may be ours.
        return old

    def _leftover(self) -> JournalData | None:
        try:
            return decode(self._disk.read(self.path))
        except FileNotFoundError:
            return None
        except DamagedJournalError as damage:
            try:
                aside = set_aside(self.path, self._disk)
            except OSError as error:
                raise JournalError(f"cannot set {self.path} aside ({errno_name(error)}): move it away") from None
            self._warn(f"restore journal {self.path} is damaged ({damage}); kept as {aside}")
            return None
        except OSError as error:
            raise JournalError(f"cannot read {self.path} ({errno_name(error)}): nothing is written") from None

    def _keep(self, data: JournalData) -> None:
        unchanged = self._data is not None and data.knobs == self._data.knobs
        if unchanged and self._disk.stamp(self.path) == self._stamp and self._stamp is not None:
            return
        data = replace(data, written_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        temporary = f"{self.path}.tmp"  # one name: the folder is locked, and a crash leaves one file at most
        try:
            try:
                save(self._disk, temporary, self.path, encode(data))
            except FileNotFoundError:  # somebody removed the folder while we run: make it anew, with a new lock
                folder = os.path.dirname(self.path)
                os.makedirs(folder, mode=0o755, exist_ok=True)
                self._lock.release()
                self._lock.acquire(self._lock_wait_s)
                save(self._disk, temporary, self.path, encode(data))
        except OSError as error:
            raise JournalError(
                f"cannot save {self.path} ({errno_name(error)}): originals would be lost, so nothing is written; "
                "free space or make its folder writable"
            ) from None
        self._data = data
        self._stamp = self._disk.stamp(self.path)


def is_earlier_boot(data: JournalData, files: Files) -> bool:
    """Whether the journal is of another boot. Where either is unknown the values themselves must tell."""
    now = boot_id(files)
    return UNKNOWN not in (now, data.boot_id) and now != data.boot_id
