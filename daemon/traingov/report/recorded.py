"""A report's subject from a recording (``traingovd --record``): the same accounts as the service's, made again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.codec import ACTIONS, decode, decode_event, decode_header
from traingov_policies.ledger import Ledger
from traingov_policies.lut import Lut
from traingov_policies.search.curves import Curve
from traingov_policies.sweep import SweepRow

from ..history.book import Book
from ..history.records import Run
from .subject import ReportError, Subject


class _Reader:
    """Feeds ledger and book as the loop does, with the recording's own time as the wall clock."""

    def __init__(self, header: dict[str, Any]) -> None:
        self._board, settings, cap = decode_header(header)
        self._now_s = 0.0
        self._ledger = Ledger(settings.sampling_interval_s, cap)
        root = header.get("root")
        self.told = root is not None
        self.book = Book(
            self._ledger, settings.policy, settings.objective, cap, lambda: self._now_s,
            root=root if isinstance(root, str) and root != "/" else None,
        )  # fmt: skip
        self.registered: dict[str, ev.JobRegistered] = {}
        self.ended: dict[str, Run] = {}
        self.luts: dict[str, Lut] = {}
        self.curves: dict[tuple[str, int], Curve] = {}
        self.sweeps: dict[str, tuple[SweepRow, ...]] = {}

    def take(self, entry: dict[str, Any]) -> None:
        if entry.get("event") == "Sample":  # by far the most lines: not by way of the type hints
            sample = ev.Sample(**{name: value for name, value in entry.items() if name != "event"})
            self._now_s = max(self._now_s, sample.t_s)
            self._ledger.see(sample)
            self.book.sample(sample)
        elif "event" in entry:
            self._event(decode_event(entry))
        elif (name := entry.get("action")) in ACTIONS:
            self._action(decode(ACTIONS[str(name)], {k: v for k, v in entry.items() if k != "action"}))

    def _event(self, event: ev.Event) -> None:
        self._now_s = max(self._now_s, event.t_s)
        self._ledger.see(event)
        if isinstance(event, ev.BoardFound):
            self._board = event.board
        elif isinstance(event, ev.JobRegistered):
            self.registered[event.job] = event
            known = event.lut or event.prior
            if known is not None:
                self.luts[event.job] = known
            self.curves.update({(event.job, curve.batch_size): curve for curve in event.remembered})
            self.book.registered(event, event.workload, self._board)
            return
        if isinstance(event, ev.JobEnded):
            run = self.book.ended(event)
            if run is not None:
                self.ended[event.job] = run
            return
        self.book.see(event)

    def _action(self, action: act.Action) -> None:
        if isinstance(action, act.PersistLut):
            known = self.luts.get(action.job)
            fresh = known is None or action.replaces is not None
            self.luts[action.job] = action.lut if known is None or fresh else known.overlaid(action.lut)
        elif isinstance(action, act.PersistCurve):
            self.curves[action.job, action.curve.batch_size] = action.curve
        elif isinstance(action, act.PersistSweep):
            self.sweeps[action.job] = action.rows
        else:
            self._ledger.act(action)
            self.book.carry_out([action], self._now_s)

    def run(self, job: str) -> Run:
        """The run of ``job``; one that the recording does not see end was cut."""
        if job in self.ended:
            return self.ended[job]
        run = self.book.record(job, self._now_s)
        return replace(run, ended_s=self._now_s, end_reason="the recording ends before the job")


def from_recording(entries: Iterable[dict[str, Any]], job: str | None, name: str) -> Subject:
    """The run of ``job`` (a job or a workload; None: the last one) in a recording; ``name`` is what to call it.

    Raises ReportError, and ValueError for what is no recording.
    """
    reader: _Reader | None = None
    for entry in entries:
        if reader is None:
            reader = _Reader(entry)
        else:
            reader.take(entry)
    if reader is None:
        raise ValueError("recording: empty")
    names = [n for n, r in reader.registered.items() if job in (None, n, r.workload)]
    if not names:
        there = ", ".join(reader.registered) or "none"
        raise ReportError(f"{name}: no job {job or ''!r} in the recording; its jobs are: {there}")
    last = names[-1]
    run, registered = reader.run(last), reader.registered[last]
    return Subject(
        run=run, source=f"the recording {name}", wall=False, lut=reader.luts.get(last),
        curves=[curve for (owner, _), curve in sorted(reader.curves.items()) if owner == last],
        sweep=reader.sweeps.get(last, ()), relation=registered.relation, told=reader.told,
    )  # fmt: skip
