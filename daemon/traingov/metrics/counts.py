"""What is counted while the loop runs: a handful of integers, no lock, no object per sample.

Everything here belongs to the loop's thread. What governor, ledger and telemetry count themselves is not counted
again: collect.py reads it there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.ledger import JobSummary, Ledger

JOBS_KEPT = 20
"""So many jobs have a label of their own; the others, and older ones, are counted together as ``other``."""
OTHER = "other"
CAP_SOURCES = ("configuration", "schedule", "file", "battery", "command")
"""The kinds of source that a cap has, by the first word of what `traingov cap get` says."""
_NAMES_MOST = 64
_RUN_S = 5.0  # a longer silence between two samples is an end of sampling, not an interval


class Histogram:
    """Counts of values by bound; the last count is of those above all bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, *bounds: float) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Tally(dict[str, int]):
    """Counts by name, with a bound on the names; what comes after it is counted as ``other``."""

    def count(self, name: str, number: int = 1) -> None:
        """Count ``name``, once or ``number`` times."""
        if name not in self and len(self) >= _NAMES_MOST:
            name = OTHER
        self[name] = self.get(name, 0) + number


class Kept:
    """A fixed number of label values: the first that come stay, others are refused."""

    def __init__(self, most: int = _NAMES_MOST) -> None:
        self._most = most
        self._names: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether ``name`` is shown; it is taken in while there is room."""
        if name not in self._names and len(self._names) < self._most:
            self._names.add(name)
        return name in self._names


JOB_METRICS: dict[str, Callable[[JobSummary], float]] = {
    "traingov_job_energy_joules_total": lambda s: s.input_energy_j,
    "traingov_job_compute_energy_joules_total": lambda s: s.compute_energy_j,
    "traingov_job_duration_seconds_total": lambda s: s.elapsed_s,
    "traingov_job_idle_seconds_total": lambda s: s.idle_s,
    "traingov_job_idle_energy_joules_total": lambda s: s.idle_input_energy_j,
    "traingov_job_cap_exceeded_seconds_total": lambda s: s.above_cap_s,
    "traingov_job_samples_total": lambda s: s.samples,
    "traingov_job_steps_total": lambda s: s.steps,
}

Totals = list[float]


def totals_of(summary: JobSummary) -> Totals:
    """What is shown of a job, in the order of JOB_METRICS."""
    return [float(read(summary)) for read in JOB_METRICS.values()]


class JobTotals:
    """Which jobs have a label of their own, and the totals of those that ended. No total ever falls.

    While jobs share the board, their parts of its energy are revised as reports come in (``Ledger``); a total that was
    shown already waits where its part was revised downwards, since Prometheus takes a fall for a restart.
    """

    def __init__(self, most: int = JOBS_KEPT) -> None:
        self._most = most
        self._running: set[str] = set()
        self._ended: dict[str, Totals] = {}  # the longest ago first
        self._other = [0.0] * len(JOB_METRICS)
        self._shown: dict[str, Totals] = {}  # of running jobs

    def registered(self, job: str) -> None:
        """Give ``job`` a label of its own if one is free, or one that a job which ended leaves."""
        labels = self._running | self._ended.keys()
        if job not in labels and len(labels) >= self._most:
            oldest = next((name for name in self._ended if name not in self._running), None)
            if oldest is None:
                return
            self._add_to_other(self._ended.pop(oldest))
        self._running.add(job)

    def ended(self, summary: JobSummary) -> None:
        """Keep the totals of a job that ended."""
        totals = self._not_below_shown(summary)
        del self._shown[summary.job]
        if summary.job not in self._running:
            self._add_to_other(totals)
            return
        self._running.discard(summary.job)
        before = self._ended.pop(summary.job, None)  # an earlier job of the name
        self._ended[summary.job] = totals if before is None else _sum(before, totals)

    def by_job(self, running: list[JobSummary]) -> dict[str, Totals]:
        """Totals by label, those of the ``running`` jobs included; ``other`` only where there is one."""
        out = dict(self._ended)
        other = self._other
        for summary in running:
            totals = self._not_below_shown(summary)
            if summary.job not in self._running:
                other = _sum(other, totals)
            else:
                out[summary.job] = _sum(out[summary.job], totals) if summary.job in out else totals
        if any(other):
            out[OTHER] = _sum(out[OTHER], other) if OTHER in out else other
        return out

    def shows(self, job: str) -> bool:
        """Whether ``job`` has a label of its own."""
        return job in self._running

    def _not_below_shown(self, summary: JobSummary) -> Totals:
        totals = totals_of(summary)
        before = self._shown.get(summary.job)
        if before is not None:
            totals = [max(now, shown) for now, shown in zip(totals, before, strict=True)]
        self._shown[summary.job] = totals
        return totals

    def _add_to_other(self, totals: Totals) -> None:
        self._other = _sum(self._other, totals)


def _sum(one: Totals, two: Totals) -> Totals:
    return [a + b for a, b in zip(one, two, strict=True)]


class Counts:
    """Fed by the loop."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last_s = float("-inf")
        self.lag = Histogram(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
        self.interval = Histogram(2.5e-3, 5e-3, 7.5e-3, 0.01, 0.0125, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
        self.jobs = JobTotals()
        self.jobs_registered = 0
        self.jobs_ended = Tally()
        self.guard_steps = Tally(up=0, down=0)
        self.knob_writes = Tally(taken=0, snapped=0, refused=0)
        self.restores = Tally()
        self.decisions = Tally()
        self.conditions = Tally()
        self.bounds: ev.KnobReadBack | None = None
        self.over_current = Tally()
        self.cap_source = CAP_SOURCES[0]
        self.cooling: tuple[tuple[str, int], ...] = ()
        self.rails, self.zones, self.devices = Kept(), Kept(), Kept()
        self._notes: dict[type, Callable[[Any], None]] = {
            ev.JobRegistered: self._registered,
            ev.JobEnded: self._ended,
            ev.KnobReadBack: self._read_back,
            ev.CapChanged: self._cap_changed,
            ev.Thermals: self._thermals,
            ev.OverCurrentCounted: self._over_current,
        }

    def sampled(self, t_s: float, now_s: float) -> None:
        """A sample that arrived at ``t_s`` was handled, its actions handed on, by ``now_s``."""
        self.lag.add(now_s - t_s)
        since = t_s - self._last_s
        self._last_s = t_s
        if 0 < since < _RUN_S:
            self.interval.add(since)

    def see(self, event: ev.Event) -> None:
        """Count an event, after the ledger has seen it."""
        note = self._notes.get(type(event))
        if note is not None:
            note(event)

    def carried_out(self, action: act.Action) -> None:
        """Count an action."""
        match action:
            case act.Decided(_, kind):
                self.decisions.count(kind)
                if kind in ("guard-up", "guard-down"):
                    self.guard_steps.count(kind.removeprefix("guard-"))
            case act.RaiseCondition(name):
                self.conditions.count(name)
            case act.RestoreGpuBounds():
                self.bounds = None
            case _:
                pass

    def written(self, error: str | None, notes: tuple[str, ...]) -> None:
        """Count a write of the bounds by what became of it."""
        self.knob_writes.count("refused" if error is not None else "snapped" if notes else "taken")

    def _registered(self, event: ev.JobRegistered) -> None:
        self.jobs_registered += 1
        self.jobs.registered(event.job)

    def _ended(self, event: ev.JobEnded) -> None:
        self.jobs_ended.count(event.reason)
        newest = self._ledger.ended[-1:]
        if newest and newest[0].job == event.job:
            self.jobs.ended(newest[0])

    def _cap_changed(self, event: ev.CapChanged) -> None:
        kind = event.source.replace(",", " ").split(" ")[
            0
        ]  # "file /PATH", "command NAME, uid 0": the rest has no bound
        self.cap_source = kind if kind in CAP_SOURCES else OTHER

    def _thermals(self, event: ev.Thermals) -> None:
        self.cooling = event.cooling

    def _over_current(self, event: ev.OverCurrentCounted) -> None:
        for name, number in event.counts:
            self.over_current.count(name, number)

    def _read_back(self, event: ev.KnobReadBack) -> None:
        self.bounds = event
