"""Whose energy it was, while several jobs share the board (docs/jobs.md). Shares always add up to the board's energy.

The board's idle power is nobody's doing: it is split equally among the jobs registered. What is above it is split by
the work each job did: its samples times the seconds that a sample takes the job alone (measured while it ran alone,
else its table's at the highest clock measured). GPU time by process would be better; Tegra shows none. Where a job that
worked has neither, the jobs that worked get equal parts; where none worked, all do.
"""

from __future__ import annotations

from collections.abc import Mapping

from .lut import Lut

_NEW = 0.2  # weight of a new report in the mean of a job's own sample time


def split(energy_j: float, idle_j: float, work_s: Mapping[str, float | None]) -> dict[str, float]:
    """Each job's part of ``energy_j`` joules, of which ``idle_j`` are the idle board's.

    ``work_s``: seconds of work by job, 0 for a job that did none, None where it worked and nothing says how much.
    """
    if not work_s:
        return {}
    idle_j = min(max(idle_j, 0.0), energy_j)
    known = [seconds for seconds in work_s.values() if seconds is not None]
    if len(known) < len(work_s):
        weights = {job: 0.0 if seconds == 0 else 1.0 for job, seconds in work_s.items()}
    else:
        weights = {job: seconds or 0.0 for job, seconds in work_s.items()}
    total = sum(weights.values())
    if total <= 0:
        weights, total = dict.fromkeys(work_s, 1.0), float(len(work_s))
    each = idle_j / len(work_s)
    parts = {job: each + (energy_j - idle_j) * weight / total for job, weight in weights.items()}
    last = next(reversed(parts))
    parts[last] = energy_j - sum(part for job, part in parts.items() if job != last)  # rounding is nobody's
    return parts


class Work:
    """What one job did in the present span, and how long a sample takes it when it is alone."""

    def __init__(self, table: Lut | None) -> None:
        self._table = table
        self._alone_s: dict[int, float] = {}
        self._samples: dict[int, float] = {}

    def add(self, batch_size: int, samples: int, elapsed_s: float, *, share: float, alone: bool) -> None:
        """Take a report; ``share`` of it lies in the present span. ``alone``: no other job ran meanwhile."""
        self._samples[batch_size] = self._samples.get(batch_size, 0.0) + share * samples
        if alone and samples > 0 and elapsed_s > 0:
            before, new = self._alone_s.get(batch_size), elapsed_s / samples
            self._alone_s[batch_size] = new if before is None else before + _NEW * (new - before)

    def seconds(self) -> float | None:
        """Seconds of work in the span; None where a sample's time is unknown."""
        total = 0.0
        for batch_size, samples in self._samples.items():
            if samples > 0:
                sample_s = self._alone_s.get(batch_size) or self._from_table(batch_size)
                if sample_s is None:
                    return None
                total += samples * sample_s
        return total

    def clear(self) -> None:
        """A new span begins."""
        self._samples.clear()

    def _from_table(self, batch_size: int) -> float | None:
        table = self._table
        if table is None:
            return None
        times = [
            (point.gpu_frequency_hz, time_s)
            for point in table.points()
            if point.batch_size == batch_size and (time_s := table.cell(point).time_s) is not None
        ]
        return max(times)[1] / table.samples if times else None
