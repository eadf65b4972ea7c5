"""Measured energy curves to hold the search against; the files stay outside the project.

LouDVA's boards (MIT): joules per item = mean power / throughput, by GPU clock, one curve per batch size. Zeus's
trainings (Apache-2.0): joules per epoch = time × mean power, by GPU power limit, one curve per job and batch size; the
limit is read as a second kind of clock.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FFG_RATIO = 714 / 1300.5
"""The fixed governor's clock over the highest, on the board it was made for (method B)."""


@dataclass(frozen=True)
class MeasuredCurve:
    """``cost_j`` [n] at each of ``levels`` [n] (Hz or watts, ascending); ``job`` is what a prior must leave out."""

    job: str
    batch_size: int
    levels: Floats
    cost_j: Floats

    @property
    def u(self) -> Floats:
        """ln(level / highest level), [n]."""
        return np.asarray(np.log(self.levels / self.levels[-1]))

    @property
    def start(self) -> int:
        """Where the search begins: the fixed governor's clock by ratio, nearest level."""
        return int(np.argmin(np.abs(self.u - np.log(FFG_RATIO))))

    def gap(self, index: int) -> float:
        """How much more than the best level this one costs, as a share."""
        return float(self.cost_j[index] / self.cost_j.min() - 1)

    def smoothed(self) -> MeasuredCurve:
        """A quartic in ln(level) through the curve: without the single cells' own errors of measurement."""
        degree = min(4, len(self.levels) - 2)
        fit = np.polyval(np.polyfit(self.u, np.log(self.cost_j), degree), self.u)
        return MeasuredCurve(self.job, self.batch_size, self.levels, np.asarray(np.exp(fit)))


def loudva(path: Path) -> list[MeasuredCurve]:
    """The curves of one of LouDVA's boards; each batch size is a job of its own. Raises OSError where it is absent."""
    table: dict[int, dict[int, float]] = defaultdict(dict)
    for row in _rows(path):
        joules = float(row["mean_power_w"]) / float(row["throughput_inf_per_s"])
        table[int(row["concurrency_batch"])][int(row["gpu_hz"])] = joules
    return [_curve(f"batch-{b}", b, table[b]) for b in sorted(table)]


def zeus(path: Path) -> list[MeasuredCurve]:
    """The curves of one of Zeus's GPUs; a job is network and data set. Raises OSError where the file is absent."""
    table: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
    for row in _rows(path):
        job = f"{row['network']}/{row['dataset']}"
        joules = float(row["time_per_epoch"]) * float(row["average_power"])
        table[job, row["optimizer"], int(row["batch_size"])][int(row["power_limit"])] = joules
    most = max(len(curve) for curve in table.values())
    return [_curve(job, b, curve) for (job, _, b), curve in sorted(table.items()) if len(curve) == most]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _curve(job: str, batch_size: int, points: dict[int, float]) -> MeasuredCurve:
    levels = sorted(points)
    return MeasuredCurve(job, batch_size, np.array(levels, float), np.array([points[x] for x in levels]))
