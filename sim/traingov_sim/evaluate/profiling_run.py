"""What profiling costs and how good the choice from it is: full table, staircase and adaptive plan (DESIGN 8).

Two kinds of surfaces:

- LoudVA's measured tables of a real Nano and a real Xavier NX (iloudaros/LoudVA, MIT; inference, power and throughput
  by batch and clock), raw: "measured-data". The adaptive plan's settings were chosen on the Nano's table (other caps
  than those drawn here); the Xavier NX's was left out of it.
- The virtual boards' calibrated surfaces, under the published caps, against the published training times of the joint
  choice: "predicted", for nothing about profiling was fitted.

A measurement is the surface's value with relative normal noise, independent from one to the next. Time is counted as
on a board: a clock settles, a job changes its batch size at the end of a step, a point lasts for whole steps. A step
that straddles a change is waited for and not measured. Each step is taken to be reported on its own. Gross cost is all
time until the choice; net cost is what the same time at the best point would have trained beyond that. Net does not
count a point above the cap as gain. Losses are relative to the best point of the true, full table below the cap.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traingov_policies.lut import Cell, Lut
from traingov_policies.plans import AdaptivePlan, AdaptiveSettings, Plan, StaircasePlan
from traingov_policies.relation import RelationVector
from traingov_policies.robust import VIOLATION_PROBABILITY, choose
from traingov_policies.values import Objective, OperatingPoint

from ..surface import mean_power_w, peak_power_w, step_time_s
from ..surfaces import USABLE_MEMORY_BYTES, load
from ..surfaces.published import BATCHES

Floats = NDArray[np.float64]

PLANS = ("full", "staircase", "adaptive")
UNGUARDED = "adaptive without guard band"
SAMPLES = 4096
SETTLE_S = 1.0  # 0.65 s until the Nano's clock has switched (measured by others over HTTP), the rest for the sensor
BATCH_CHANGE_S = 0.5
WINDOW_S = 1.2  # least duration of a measurement
GIVE_UP_S = (0.4, 1.0)  # clearly above the cap, and within twice the allowed error of it
LONG_JOB_S = 9000.0  # 2.5 h
NOISES = (0.0, 0.01, 0.02)
_FIELDS = ("time_s", "peak_power_w", "mean_power_w", "origin", "time_std_s", "power_std_w")
_RELATION_SHAPES = (None, 0.15, 0.5, 1.5)  # critical batch size as a share of the largest; None: r = 1
LOUDVA = {"nano": "jetson_nano.csv", "xavier-nx": "xavier_nx.csv"}


@dataclass(frozen=True)
class Table:
    """A true surface: arrays [B, F] of seconds for SAMPLES samples, peak and mean watts."""

    name: str
    batch_sizes: tuple[int, ...]
    clocks_hz: tuple[int, ...]
    time_s: Floats
    peak_w: Floats
    mean_w: Floats

    def part(self, batch_sizes: Sequence[int], clocks_hz: Sequence[int]) -> Table:
        """Only those batch sizes and clocks."""
        rows = [i for i, b in enumerate(self.batch_sizes) if b in set(batch_sizes)]
        columns = [j for j, f in enumerate(self.clocks_hz) if f in set(clocks_hz)]
        at = np.ix_(rows, columns)
        return Table(
            self.name, tuple(self.batch_sizes[i] for i in rows), tuple(self.clocks_hz[j] for j in columns),
            self.time_s[at], self.peak_w[at], self.mean_w[at],
        )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What is to be chosen on a table. ``job_s``: published seconds of the training, where there are any."""

    table: Table
    relation: RelationVector | None
    cap_w: float | None
    objective: Objective = Objective.TIME
    job_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """One profiling run. ``loss`` is None where no point was found below the cap although there is one.

    ``beyond``: the same loss against the best point that is below the cap by one measurement's guard band, which any
    profiling with this noise has to give up.
    """

    points: int
    same: bool
    loss: float | None
    beyond: float | None
    violates: bool
    excess: float
    highest: float
    gross_s: float
    net_s: float


def measured_table(path: Path) -> Table:
    """A table of LoudVA's. Raises OSError where it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = {(int(r["concurrency_batch"]), int(r["gpu_hz"])): r for r in csv.DictReader(file)}
    sizes, clocks = sorted({b for b, _ in rows}), sorted({f for _, f in rows})
    grid = [[rows[b, f] for f in clocks] for b in sizes]
    time_s = np.array([[SAMPLES / float(r["throughput_inf_per_s"]) for r in row] for row in grid])
    power_w = np.array([[float(r["mean_power_w"]) for r in row] for row in grid])
    return Table(path.stem, tuple(sizes), tuple(clocks), time_s, power_w, power_w)


def virtual_table(board: str, workload: str, clocks_hz: Sequence[int]) -> Table:
    """A virtual board's surface at the batch sizes that fit into its memory."""
    surface = load(board, workload)
    sizes = tuple(b for b in BATCHES[workload].sizes if surface.memory_bytes(b) <= USABLE_MEMORY_BYTES[board])
    time_s = np.array([[step_time_s(surface, b, f) / b * SAMPLES for f in clocks_hz] for b in sizes])
    peak = np.array([[peak_power_w(surface, b, f) for f in clocks_hz] for b in sizes])
    mean = np.array([[mean_power_w(surface, b, f) for f in clocks_hz] for b in sizes])
    return Table(f"{board}/{workload}", sizes, tuple(clocks_hz), time_s, peak, mean)


def relation_vectors(batch_sizes: Sequence[int]) -> list[RelationVector | None]:
    """r = 1, and r growing as 1 + b / b_crit for three critical batch sizes."""
    top = batch_sizes[-1]
    vectors: list[RelationVector | None] = []
    for share in _RELATION_SHAPES:
        if share is None:
            vectors.append(None)
            continue
        r = [(1 + b / (share * top)) / (1 + 1 / share) for b in batch_sizes]
        vectors.append(RelationVector("evaluation", tuple(batch_sizes), tuple(r)))
    return vectors


def profile(case: Case, plan_name: str, noise: float, seed: int) -> Outcome | None:
    """Profile one case and choose; None where no point of the table is below the cap."""
    table, rng = case.table, random.Random(seed)
    truth = _truth(case)
    below = np.ones_like(truth, bool) if case.cap_w is None else table.peak_w < case.cap_w
    if not below.any():
        return None
    allowed = np.where(below, truth, np.inf)
    best = float(allowed.min())
    probed = _probe(case, plan_name, noise, rng)
    points, gross, net, highest = len(probed), 0.0, 0.0, 0.0
    last: OperatingPoint | None = None
    for point, lasts_s in probed:
        i, j = table.batch_sizes.index(point.batch_size), table.clocks_hz.index(point.gpu_frequency_hz)
        wait_s, change_s = _switch(point, last, table.time_s[i, j] * point.batch_size / SAMPLES)
        gross += change_s + wait_s + lasts_s
        net += change_s + (wait_s + lasts_s) * max(0.0, 1 - best / truth[i, j])
        highest = max(highest, 0.0 if case.cap_w is None else table.peak_w[i, j] / case.cap_w)
        last = point
    chosen = probed.chosen
    if chosen is None:
        return Outcome(points, False, None, None, False, 0.0, highest, gross, net)
    score = float(truth[chosen])
    guarded = best
    if case.cap_w is not None:
        band = NormalDist().inv_cdf(1 - VIOLATION_PROBABILITY) * noise
        inside = np.where(table.peak_w < case.cap_w * (1 - band), truth, np.inf)
        guarded = float(inside.min()) if np.isfinite(inside).any() else score
    excess = 0.0 if case.cap_w is None else max(0.0, table.peak_w[chosen] / case.cap_w - 1)
    same = score <= best * (1 + 1e-12) and bool(below[chosen])
    loss, beyond = max(0.0, score / best - 1), max(0.0, score / guarded - 1)
    return Outcome(points, same, loss, beyond, not below[chosen], excess, highest, gross, net)


class _Probed(list[tuple[OperatingPoint, float]]):
    """The points in the order measured, each with its seconds; ``chosen`` is the choice's row and column."""

    chosen: tuple[int, int] | None = None


def _probe(case: Case, plan_name: str, noise: float, rng: random.Random) -> _Probed:
    probed, table = _Probed(), case.table
    lut = Lut.empty(table.name, "evaluation", SAMPLES, table.batch_sizes, table.clocks_hz)
    level = 0.5 if plan_name == UNGUARDED else VIOLATION_PROBABILITY
    if plan_name == "full":  # FullPlan's order, put together at once: a table is copied with every cell told
        cells = []
        for point in lut.points():
            cell, lasts_s = _measure(case, point, noise, rng)
            cells.append(cell)
            probed.append((point, lasts_s))
        wide = len(table.clocks_hz)
        grids: dict[str, Any] = {
            name: tuple(tuple(getattr(c, name) for c in cells[k : k + wide]) for k in range(0, len(cells), wide))
            for name in _FIELDS
        }
        probed.chosen = _chosen(replace(lut, **grids), case, level)
        return probed
    plan: Plan
    if plan_name == "staircase":
        plan = StaircasePlan(lut, case.cap_w)
    else:
        settings = AdaptiveSettings(violation_probability=level)
        plan = AdaptivePlan(lut, case.cap_w, case.relation, case.objective, settings=settings)
    while (next_point := plan.next_point()) is not None:
        cell, lasts_s = _measure(case, next_point, noise, rng)
        plan.tell(next_point, cell)
        probed.append((next_point, lasts_s))
    probed.chosen = _chosen(plan.lut, case, level)
    return probed


def _truth(case: Case) -> Floats:
    table, relation = case.table, case.relation
    r = np.array([1.0 if relation is None else relation.of(b) or np.inf for b in table.batch_sizes])[:, None]
    time: Floats = table.time_s * r
    if case.objective is Objective.TIME:
        return time
    energy: Floats = time * table.mean_w
    return energy if case.objective is Objective.ENERGY else energy * time


def _measure(case: Case, point: OperatingPoint, noise: float, rng: random.Random) -> tuple[Cell, float]:
    """The cell that a measurement gives, and the seconds that it takes once the point has settled."""
    table = case.table
    i, j = table.batch_sizes.index(point.batch_size), table.clocks_hz.index(point.gpu_frequency_hz)
    step_s = table.time_s[i, j] * point.batch_size / SAMPLES
    peak = float(table.peak_w[i, j] * (1 + noise * rng.gauss(0, 1)))
    time_s = float(table.time_s[i, j] * (1 + noise * rng.gauss(0, 1)))
    std_w = noise * peak or None
    if case.cap_w is not None and peak >= case.cap_w * (1 + 2 * noise):
        early = peak > case.cap_w * (1.04 + 2 * noise) and step_s <= GIVE_UP_S[0] / 2
        return Cell(None, peak, None, "infeasible", None, std_w), GIVE_UP_S[0 if early else 1]
    mean = float(table.mean_w[i, j]) * peak / float(table.peak_w[i, j])
    lasts_s = step_s * math.ceil(WINDOW_S / step_s - 1e-9)
    return Cell(time_s, peak, mean, "measured", noise * time_s or None, std_w), lasts_s


def _switch(point: OperatingPoint, last: OperatingPoint | None, step_s: float) -> tuple[float, float]:
    """Seconds of settling and of waiting for a straddling step to end; seconds without training."""
    if point == last:
        return 0.0, 0.0
    if last is not None and last.batch_size == point.batch_size:
        return SETTLE_S + 0.5 * step_s, 0.0
    if last is not None and point.gpu_frequency_hz <= last.gpu_frequency_hz:
        return SETTLE_S, BATCH_CHANGE_S  # the clock falls while the job still changes its batch size
    return max(SETTLE_S, step_s) if step_s > SETTLE_S else SETTLE_S + 0.5 * step_s, BATCH_CHANGE_S


def _chosen(lut: Lut, case: Case, level: float) -> tuple[int, int] | None:
    """Where the live choice falls, with its guard band; None where it finds nothing below the cap."""
    try:
        choice = choose(lut, case.relation, case.cap_w, case.objective, violation_probability=level, measured_only=True)
    except ValueError:
        return None
    return lut.index(choice.selection.chosen.point) if choice.selection.feasible else None
