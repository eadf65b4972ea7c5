"""What the service keeps: lookup tables per board, release, power mode and signature; relation vectors by workload.

Tables measured here lie under STATE/lut. Priors are tables from elsewhere: a vendor's in etc/luts, an imported one in
STATE/priors. A prior is never returned as a table: its cells are marked predicted, so that nothing is chosen from it
before it was measured.

Written whole or not at all (temporary file, fsync, rename); a damaged file is set aside with a message (DESIGN 5.6).
"""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.values import Board

log = logging.getLogger("traingov.store")

HISTORY = "history"  # the folder of replaced tables, beside those in use

# What a damaged or foreign JSON document can make of a reader: none of it may keep the service from starting.
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, RecursionError)


def signature_of(workload: str, parts: Mapping[str, str | None]) -> str:
    """A workload's identity: its name, and a short digest of architecture, input shape, precision and optimizer."""
    given = {key: value for key, value in parts.items() if value is not None}
    if not given:
        return workload
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]
    return f"{workload}-{digest}"


class LutStore:
    """Tables under ``directory``/board/release/power mode/signature.json, all read at the start and kept in memory.

    ``priors`` are folders of board/*.json, those of the first folder before those of the next.
    """

    def __init__(self, directory: Path, priors: Iterable[Path] = ()) -> None:
        self._directory = directory
        self._tables: dict[Path, Lut] = {}
        for path in sorted(directory.glob("*/*/*/*.json")):
            lut = _read(path)
            if lut is not None:
                self._tables[path] = lut
        self._priors = [
            (path.parent.name, as_prior(lut))
            for folder in priors
            for path in sorted(folder.glob("*/*.json"))
            if (lut := _read_prior(path)) is not None
        ]

    def path(self, board: Board, signature: str) -> Path:
        """Where the table of ``signature`` on ``board`` lies."""
        return self.place(self._directory, board, signature)

    @staticmethod
    def place(directory: Path, board: Board, signature: str) -> Path:
        """Where under ``directory`` the table of ``signature`` on ``board`` lies."""
        parts = [slug(part) for part in (board.name, board.release, board.power_mode)]
        return directory.joinpath(*parts, f"{slug(signature)}.json")

    def get(self, board: Board, signature: str) -> Lut | None:
        """The table of ``signature`` on ``board``, or None; never that of another board."""
        lut = self._tables.get(self.path(board, signature))
        if lut is not None and lut.board != board.name:
            log.warning("table of %s is of board %s, not of %s: not used", signature, lut.board, board.name)
            return None
        return lut

    def prior(self, board: Board, signature: str, workload: str | None = None) -> Lut | None:
        """A table from elsewhere to start ``signature`` on ``board`` from, or None; its cells are marked predicted.

        It counts when it was measured on a board of this name, or was put into this board's folder on purpose
        (``traingov lut import --as-prior``). One with the same signature goes before one that names only the
        workload (``workload``, default the signature) and no signature; then one of the same release and mode.
        """
        name = signature if workload is None else workload

        def rank(lut: Lut) -> int | None:
            if lut.signature == signature:
                first = 0
            elif lut.signature is None and lut.workload == name:
                first = 1
            else:
                return None
            return 2 * first + ((lut.release, lut.power_mode) != (board.release, board.power_mode))

        ranked = [
            (place, number, lut)
            for number, (folder, lut) in enumerate(self._priors)
            if (lut.board == board.name or folder == slug(board.name)) and (place := rank(lut)) is not None
        ]
        return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None

    def remember(self, board: Board, signature: str, lut: Lut) -> None:
        """Keep ``lut`` in memory; ``save`` keeps it on disk."""
        self._tables[self.path(board, signature)] = lut

    def archive(self, board: Board, signature: str, lut: Lut, why: str, most: int) -> None:
        """Keep an old table under history/, beside those in use; of a workload the newest ``most``. Raises OSError.

        Its ``conditions["replaced"]`` says why it was replaced.
        """
        path = self.path(board, signature)
        folder, stem = path.parent / HISTORY, path.stem
        old = sorted(folder.glob(f"{glob.escape(stem)}.[0-9][0-9][0-9][0-9][0-9][0-9].json"))
        if most > 0:
            number = 1 + (int(old[-1].name[len(stem) + 1 :].split(".")[0]) if old else 0)
            told = replace(lut, conditions={**lut.conditions, "replaced": why})
            new = folder / f"{stem}.{number:06d}.json"
            write_atomically(new, json.dumps(told.to_json(), indent=1).encode())
            old.append(new)
        for extra in old[: max(0, len(old) - most)]:
            extra.unlink(missing_ok=True)

    def save(self, board: Board, signature: str, lut: Lut) -> None:
        """Keep ``lut`` on disk. Raises OSError (disk full, read-only): the table stays usable in memory."""
        write_atomically(self.path(board, signature), json.dumps(lut.to_json(), indent=1).encode())


def _read(path: Path) -> Lut | None:
    try:
        return Lut.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        log.warning("table %s cannot be read (%s): its workload is profiled anew", path, error.strerror)
    except _UNREADABLE as error:
        set_aside(path, str(error))
    return None


def _read_prior(path: Path) -> Lut | None:
    """A prior, or None. A damaged one is passed over and left where it is: the folder is not ours to change."""
    try:
        return Lut.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, *_UNREADABLE) as error:
        log.warning("prior table %s cannot be used: %s", path, error)
    return None


def as_prior(lut: Lut) -> Lut:
    """``lut`` with every cell that holds a time or a power marked predicted: known from elsewhere, not from here."""
    return replace(
        lut,
        origin=tuple(
            tuple(
                None if (time, peak, mean) == (None, None, None) else "predicted"
                for time, peak, mean in zip(*rows, strict=True)
            )
            for rows in zip(lut.time_s, lut.peak_power_w, lut.mean_power_w, strict=True)
        ),
    )


def load_relations(directories: Iterable[Path]) -> dict[str, RelationVector]:
    """Relation vectors by workload; of two the one from the earlier directory. A damaged file is passed over."""
    found: dict[str, RelationVector] = {}
    for directory in directories:
        for path in sorted(directory.glob("*.json")):
            try:
                relation = RelationVector.from_json(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, *_UNREADABLE) as error:
                log.warning("relation vector %s cannot be used: %s", path, error)
            else:
                found.setdefault(relation.workload, relation)
    return found


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` as a whole, durable when this returns. Raises OSError and leaves the old file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # Root writes here too (`lut import`), in a folder of the service's user: never through a link left there.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(path: Path, why: str) -> Path | None:
    """Rename a damaged file so that it is kept and no longer read; None where even that fails."""
    for number in range(1, 1000):
        aside = path.with_name(f"{path.name}.damaged-{number}")
        if not aside.exists():
            break
    try:
        path.rename(aside)
    except OSError as error:
        log.warning("%s is damaged (%s) and cannot be set aside (%s)", path, why, error.strerror)
        return None
    log.warning("%s is damaged (%s); kept as %s", path, why, aside.name)
    return aside


def slug(text: str) -> str:
    """A file name for ``text``: never empty, never "..", and different texts rarely share one."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:80] or "unnamed"
    if plain == text:
        return plain
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
