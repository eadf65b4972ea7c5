"""What the service keeps: lookup tables per board, release, power mode and signature; relation vectors by workload.

Written whole or not at all (temporary file, fsync, rename); a damaged file is set aside with a message (DESIGN 5.6).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.values import Board

log = logging.getLogger("traingov.store")


def signature_of(workload: str, parts: Mapping[str, str | None]) -> str:
    """A workload's identity: its name, and a short digest of architecture, input shape, precision and optimizer."""
    given = {key: value for key, value in parts.items() if value is not None}
    if not given:
        return workload
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]
    return f"{workload}-{digest}"


class LutStore:
    """Tables under ``directory``/board/release/power mode/signature.json, all read at the start and kept in memory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tables: dict[Path, Lut] = {}
        for path in sorted(directory.glob("*/*/*/*.json")):
            lut = _read(path)
            if lut is not None:
                self._tables[path] = lut

    def path(self, board: Board, signature: str) -> Path:
        """Where the table of ``signature`` on ``board`` lies."""
        parts = [_slug(part) for part in (board.name, board.release, board.power_mode)]
        return self._directory.joinpath(*parts, f"{_slug(signature)}.json")

    def get(self, board: Board, signature: str) -> Lut | None:
        """The table of ``signature`` on ``board``, or None; never that of another board."""
        lut = self._tables.get(self.path(board, signature))
        if lut is not None and lut.board != board.name:
            log.warning("table of %s is of board %s, not of %s: not used", signature, lut.board, board.name)
            return None
        return lut

    def remember(self, board: Board, signature: str, lut: Lut) -> None:
        """Keep ``lut`` in memory; ``save`` keeps it on disk."""
        self._tables[self.path(board, signature)] = lut

    def save(self, board: Board, signature: str, lut: Lut) -> None:
        """Keep ``lut`` on disk. Raises OSError (disk full, read-only): the table stays usable in memory."""
        write_atomically(self.path(board, signature), json.dumps(lut.to_json(), indent=1).encode())


def _read(path: Path) -> Lut | None:
    try:
        return Lut.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        log.warning("table %s cannot be read (%s): its workload is profiled anew", path, error.strerror)
    except (ValueError, AttributeError) as error:
        set_aside(path, str(error))
    return None


def load_relations(directories: Iterable[Path]) -> dict[str, RelationVector]:
    """Relation vectors by workload; of two the one from the earlier directory. A damaged file is passed over."""
    found: dict[str, RelationVector] = {}
    for directory in directories:
        for path in sorted(directory.glob("*.json")):
            try:
                relation = RelationVector.from_json(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, AttributeError) as error:
                log.warning("relation vector %s cannot be used: %s", path, error)
            else:
                found.setdefault(relation.workload, relation)
    return found


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` as a whole, durable when this returns. Raises OSError and leaves the old file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
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


def _slug(text: str) -> str:
    """A file name for ``text``: never empty, never "..", and different texts rarely share one."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:80] or "unnamed"
    if plain == text:
        return plain
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
