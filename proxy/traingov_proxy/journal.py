"""Finished runs in a file, one a line, so that an estimate that was killed goes on where it stopped.

The first line says what was trained; a journal of anything else is refused. A run's line is on the disk before the
next run is chosen. Failed runs are noted for the reader and trained again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .run import Run

SCHEMA = "traingov.proxy-journal/1"


class JournalError(ValueError):
    """The journal is of another estimate, or damaged: one line with what to do."""


class Journal:
    """The journal at ``path``, begun if there is none. ``identity`` is what its runs depend on, as plain values.

    Raises JournalError, and OSError where the file cannot be read or written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path = path
        self.runs: list[Run] = []
        header = {"schema": SCHEMA, **identity}
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            data = self._file.read()
            # What stands after the last line end was cut off by a crash.
            whole = data[: data.rfind(b"\n") + 1]
            if whole:
                self._read(whole, header)
            self._file.truncate(len(whole))
            if not whole:
                self._append(header)
        except BlockingIOError:
            self._file.close()
            raise JournalError(f"{path}: another estimate is writing to it; wait, or name another file") from None
        except BaseException:
            self._file.close()
            raise

    def _read(self, data: bytes, header: Mapping[str, Any]) -> None:
        try:
            entries = [json.loads(line) for line in data.decode().splitlines()]
            found, rest = entries[0], entries[1:]
            runs = [Run(e["batch_size"], e["seed"], e["samples"], e.get("error")) for e in rest]
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise JournalError(f"{self.path}: damaged ({error}); name another file, or delete it") from None
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise JournalError(f"{self.path}: is not a journal of runs ({SCHEMA}); name another file")
        for key, value in header.items():
            if found.get(key) != value:
                raise JournalError(
                    f"{self.path}: its runs have {key} {found.get(key)!r}, not {value!r}; name another file"
                )
        self.runs = [run for run in runs if run.error is None]

    def add(self, run: Run) -> None:
        """Keep ``run``; on the disk when this returns. Raises OSError."""
        entry: dict[str, Any] = {"batch_size": run.batch_size, "seed": run.seed, "samples": run.samples}
        if run.error is not None:
            entry["error"] = run.error
        self._append(entry)

    def _append(self, entry: Mapping[str, Any]) -> None:
        self._file.write((json.dumps(entry) + "\n").encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
