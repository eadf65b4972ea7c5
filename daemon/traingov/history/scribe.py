"""Joins the loop's book of runs with the file: records go to the keeper's thread at a run's beginning, now and then,
and at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.ledger import Ledger
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap

from .book import Book
from .file import HistoryFile
from .records import Run

_EVERY_S = 10.0  # a kill costs the history so much of a run at most

Keep = Callable[[str, Callable[[], None]], None]


class Scribe:
    """Sees what the loop feeds; nothing here waits."""

    def __init__(
        self, path: Path, ledger: Ledger, settings: Settings, cap: Cap | None, *, keep: Keep,
        wall: Callable[[], float] = time.time, root: str | None = None,
    ) -> None:  # fmt: skip
        self.book = Book(ledger, settings.policy, settings.objective, cap, wall, root=root)
        self._file = HistoryFile(path)
        self._keep = keep
        self._next_s = 0.0

    def begin(self) -> None:
        """The service holds its socket now: runs that an earlier one left open are closed."""
        self._keep("the history", self._file.begin)

    def see(self, event: ev.Event, answer: list[act.Action], board: Board, signatures: dict[str, str]) -> None:
        """Take an event that is no sample, and the governor's answer to it. The ledger has seen the event."""
        if isinstance(event, ev.JobRegistered):
            self.book.registered(event, signatures.get(event.job, event.workload), board)
            self._next_s = event.t_s + _EVERY_S
        else:
            self.book.see(event)
        if answer:
            self.decide(answer, event.t_s)
        if isinstance(event, ev.JobRegistered):
            self._write(self.book.record(event.job, event.t_s))
        elif isinstance(event, ev.JobEnded):
            run = self.book.ended(event)
            if run is not None:
                self._write(run)
        elif isinstance(event, ev.Tick) and event.t_s >= self._next_s:
            self._next_s = event.t_s + _EVERY_S
            for job in self.book.jobs:
                self._write(self.book.record(job, event.t_s))

    def sample(self, sample: ev.Sample, answer: list[act.Action]) -> None:
        """Take a sample, and the governor's answer to it. The ledger has seen the sample."""
        self.book.sample(sample)
        if answer:
            self.book.carry_out(answer, sample.t_s)

    def decide(self, answer: list[act.Action], now_s: float) -> None:
        """Take the governor's answer to any event, a sample as well."""
        self.book.carry_out(answer, now_s)

    def close(self) -> None:
        """The last thing that the keeper is given."""
        self._keep("the history", self._file.close)

    def _write(self, run: Run) -> None:
        self._keep(f"the history of {run.job}", lambda: self._file.keep(run))
