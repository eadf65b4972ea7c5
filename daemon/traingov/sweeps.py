"""Energy sweeps as the service keeps them, STATE/sweeps/BOARD/RELEASE/MODE/SIGNATURE.csv, and what is asked of them.

The CSV so far is the state: after a crash the sweep goes on with the points that it lacks. Read at the start, kept in
memory, so that the loop waits for no disk; written whole or not at all; a damaged file is set aside.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traingov_policies.events import SweepRequested
from traingov_policies.sweep import SweepRow, from_csv, to_csv
from traingov_policies.values import Board

from .sessions.handler import Refused
from .sessions.jsonrpc import INVALID_PARAMS
from .store import set_aside, slug, write_atomically

log = logging.getLogger("traingov.sweeps")


class SweepStore:
    """The rows of each workload on each board, release and power mode."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rows: dict[Path, tuple[SweepRow, ...]] = {}
        for path in sorted(directory.glob("*/*/*/*.csv")):
            try:
                self._rows[path] = tuple(from_csv(path.read_text(encoding="utf-8"), str(path)))
            except OSError as error:
                log.warning("sweep %s cannot be read (%s): its points are measured anew", path, error.strerror)
            except ValueError as error:
                set_aside(path, str(error))

    def path(self, board: Board, signature: str) -> Path:
        """Where the sweep of ``signature`` on ``board`` lies."""
        parts = [slug(part) for part in (board.name, board.release, board.power_mode)]
        return self._directory.joinpath(*parts, f"{slug(signature)}.csv")

    def get(self, board: Board, signature: str) -> tuple[SweepRow, ...]:
        """What was measured so far; nothing where nothing was."""
        return self._rows.get(self.path(board, signature), ())

    def remember(self, board: Board, signature: str, rows: Sequence[SweepRow]) -> None:
        """Keep the rows in memory; ``save`` keeps them on disk."""
        self._rows[self.path(board, signature)] = tuple(rows)

    def save(self, board: Board, signature: str, rows: Sequence[SweepRow]) -> None:
        """Keep the rows on disk. Raises OSError."""
        write_atomically(self.path(board, signature), to_csv(rows).encode())


def request(
    params: dict[str, Any], *, now_s: float, jobs: Sequence[str], board: Board, capped: bool,
    done: dict[str, tuple[SweepRow, ...]],
) -> SweepRequested:  # fmt: skip
    """The event for ``profile.start``; ``jobs`` are the running ones, ``done`` what was measured of each before.

    Raises Refused saying what to do. Rows at clocks that are not asked for now are kept, and so are those that are.
    """
    job = params.get("job") or (jobs[0] if len(jobs) == 1 else None)
    if job is None and not jobs:
        raise Refused(text="no job is registered: start the training first, then the sweep")
    if job is None:
        raise Refused(INVALID_PARAMS, f"job: several are registered, name one of {', '.join(jobs)}")
    if job not in jobs:
        raise Refused(INVALID_PARAMS, f"job: no job {job!r} is registered; there is {', '.join(jobs) or 'none'}")
    if len(jobs) > 1:
        raise Refused(text="several jobs share the GPU: a sweep needs one alone")
    if capped:
        raise Refused(text="a cap is in force, and a sweep measures every clock: clear it first (traingov cap clear)")
    clocks = tuple(params.get("clocks_hz") or board.gpu_frequencies_hz)
    if not clocks:
        raise Refused(text="the board shows no clock table for the GPU: nothing can be set (see traingov doctor)")
    unknown = sorted(set(clocks) - set(board.gpu_frequencies_hz))
    if unknown:
        table = ", ".join(str(hz) for hz in board.gpu_frequencies_hz)
        raise Refused(INVALID_PARAMS, f"clocks_hz: {unknown[0]} is not in the board's table: {table}")
    rows = () if params.get("fresh") else done.get(job, ())
    return SweepRequested(now_s, job, clocks, params.get("duration_s"), params.get("steps"), rows)
