"""Replays a bare tegrastats log: samples only, the job described by options (DESIGN 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from traingov_policies.actions import Action
from traingov_policies.events import JobEnded, JobRegistered, Sample
from traingov_policies.governor import Governor
from traingov_policies.ledger import JobSummary, Ledger
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap

from ..telemetry.rails import RailTable
from ..telemetry.samples import Sampler
from ..telemetry.tegrastats import NotTegrastats, parse_line


@dataclass(frozen=True)
class LogReplay:
    """What the log's power meant for the job, and what the governor asked for; ``foreign`` lines were no tegrastats."""

    summary: JobSummary
    actions: tuple[tuple[float, Action], ...]
    lines: int
    foreign: int
    rails: str


def samples(lines: Iterable[str], sampler: Sampler, interval_s: float) -> Iterator[Sample | None]:
    """A sample a line (None for a foreign line). Time is the line's own where it has one, else ``interval_s`` a line.

    Lines of one printed second are spread by ``interval_s``; time never runs backward, as the log's clock may.
    """
    t_s, printed_s = 0.0, None
    for line in lines:
        try:
            reading = parse_line(line.rstrip("\n"))
        except NotTegrastats:
            yield None
            continue
        stamp_s = _seconds(reading.timestamp)
        step = interval_s
        if stamp_s is not None:
            if printed_s is not None and stamp_s > printed_s:
                step = max(interval_s, stamp_s - printed_s)
            printed_s = stamp_s
        t_s += step
        yield sampler.sample(t_s, reading)


def replay_log(
    lines: Iterable[str], board: Board, settings: Settings, cap: Cap | None, *, job: JobRegistered, table: RailTable
) -> LogReplay:
    """Feed the log to a fresh governor as if ``job`` had run all the while."""
    rule = [table.rule_for((), board.name)]
    sampler = Sampler(table, board.name, lambda chosen, unknown: rule.__setitem__(0, chosen))
    governor, ledger = Governor(board, settings, cap), Ledger(settings.sampling_interval_s, cap)
    out: list[tuple[float, Action]] = []
    ledger.see(job)
    out += [(job.t_s, action) for action in governor.handle(job)]
    count = foreign = 0
    now_s = job.t_s
    for sample in samples(lines, sampler, settings.sampling_interval_s):
        count += 1
        if sample is None:
            foreign += 1
            continue
        now_s = sample.t_s
        ledger.see(sample)
        out += [(now_s, action) for action in governor.handle(sample)]
    end = JobEnded(now_s, job.job)
    ledger.see(end)
    out += [(now_s, action) for action in governor.handle(end)]
    return LogReplay(ledger.ended[-1], tuple(out), count, foreign, rule[0].describe())


def _seconds(timestamp: str | None) -> float | None:
    if timestamp is None:
        return None
    try:
        return float(timestamp.rstrip("-"))
    except ValueError:
        pass
    try:
        return datetime.strptime(timestamp, "%m-%d-%Y %H:%M:%S").timestamp()
    except ValueError:
        return None
