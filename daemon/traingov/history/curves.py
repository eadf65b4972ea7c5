"""Energy curves that were measured on this machine, by board, release, power mode, workload signature and batch size.

They lie under STATE/curves, one ``traingov.curve/1`` file each, written whole or not at all; a damaged file is set
aside with a message (DESIGN 5.6). A curve of another board, release or power mode is never returned.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

from traingov_policies.search.curves import Curve
from traingov_policies.values import Board

from ..store import set_aside, slug, write_atomically

log = logging.getLogger("traingov.history")

_GIVEN_MOST = 32
"""So many curves of other workloads go to the governor (and into a recording) with a job: the newest ones."""


class CurveStore:
    """Curves under ``directory``, all read at the start and kept in memory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._curves: dict[Path, Curve] = {}
        for path in sorted(directory.glob("*/*/*/*.json")):
            curve = _read(path)
            if curve is not None:
                self._curves[path] = curve

    def path(self, board: Board, signature: str, batch_size: int) -> Path:
        """Where the curve of ``signature`` at ``batch_size`` on ``board`` lies."""
        return self._folder(board) / f"{slug(signature)}-batch-{batch_size}.json"

    def of(self, board: Board, signature: str) -> tuple[Curve, ...]:
        """The curves of this workload on ``board``, by ascending batch size."""
        mine = [c for c in self._on(board) if c.signature == signature]
        return tuple(sorted(mine, key=lambda c: c.batch_size))

    def others(self, board: Board, signature: str) -> tuple[Curve, ...]:
        """The newest curves of other workloads on ``board``."""
        other = [c for c in self._on(board) if c.signature != signature]
        return tuple(sorted(other, key=lambda c: c.measured_at or "", reverse=True)[:_GIVEN_MOST])

    def remember(self, board: Board, signature: str, curve: Curve, measured_at: str) -> Curve:
        """Keep ``curve`` in memory, marked with signature and time; ``save`` keeps what this returns on disk.

        Clocks of an earlier run that this one has not measured are kept: their ratio to the clocks that both have.
        """
        kept = replace(curve, signature=signature, measured_at=measured_at)
        path = self.path(board, signature, curve.batch_size)
        known = self._curves.get(path)
        if known is not None and known.board == board.name:
            kept = kept.joined(known)
        self._curves[path] = kept
        return kept

    def save(self, board: Board, signature: str, curve: Curve) -> None:
        """Keep ``curve`` on disk. Raises OSError (disk full, read-only): it stays usable in memory."""
        data = json.dumps(curve.to_json(), indent=1).encode()
        write_atomically(self.path(board, signature, curve.batch_size), data)

    def _on(self, board: Board) -> list[Curve]:
        folder = self._folder(board)
        return [c for path, c in self._curves.items() if path.parent == folder and c.board == board.name]

    def _folder(self, board: Board) -> Path:
        return self._directory.joinpath(*[slug(part) for part in (board.name, board.release, board.power_mode)])


def _read(path: Path) -> Curve | None:
    try:
        return Curve.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        log.warning("energy curve %s cannot be read (%s): it is measured anew", path, error.strerror)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        set_aside(path, str(error))
    return None
