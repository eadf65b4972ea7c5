"""What a half-measured table lets one expect, and which point to measure next: a pure function of the table.

Scores are logarithms of what the objective minimises, so that differences are relative: ln T + ln r for time, with
ln P added for energy, and 2 ln T + 2 ln r + ln P for EDP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..lut import Cell, Lut
from ..robust import violation
from ..values import Objective, OperatingPoint
from .chances import (
    AdaptiveSettings,
    Goal,
    admissible,
    expected_improvement,
    fits_again,
    fits_below,
    neighbours,
    normal_cdf,
    price_s,
)
from .model import Array
from .view import Expected, expect, relative

_MEASURED = ("measured", None)  # a table without origins holds measurements
_ENDLESS = 50.0  # logarithm of a score that nothing beats for the worse
_VERY_LIKELY, _EXCLUDED = 0.9, 0.003


@dataclass(frozen=True)
class Outlook:
    """``next_point`` to measure (None: nothing repays it), the ``best`` measured point, and what is expected."""

    next_point: OperatingPoint | None
    best: OperatingPoint | None
    expected: Expected | None


def is_open(cell: Cell, cap_w: float | None) -> bool:
    """Whether a cell still is to be measured: never measured, or given up under a cap lower than the present one."""
    if cell.origin == "infeasible" or (cell.time_s is None and cell.peak_power_w is not None):
        return cap_w is None or (cell.peak_power_w or 0.0) < cap_w
    return cell.origin in (None, "predicted")


def look(
    lut: Lut,
    goal: Goal,
    settings: AdaptiveSettings,
    *,
    prior: Lut | None = None,
    last: OperatingPoint | None = None,
) -> Outlook:
    """What to measure next in ``lut`` (see the module). ``last`` is the point that runs now."""
    points = list(lut.points())
    cells = [lut.cell(p) for p in points]
    is_candidate = np.array([goal.relation is None or goal.relation.of(p.batch_size) is not None for p in points])
    opened = np.array([is_open(c, goal.cap_w) for c in cells]) & is_candidate
    expected = expect(lut, prior)
    if expected is None:
        if not opened.any():
            return Outlook(None, None, None)
        from_prior = None if prior is None else expect(prior, of=lut)
        return Outlook(_first(lut, points, opened, goal, prior=from_prior), None, None)
    noise = _typical_noise(cells)
    z = NormalDist().inv_cdf(1 - settings.violation_probability)
    known = is_candidate & np.array([c.origin in _MEASURED and c.time_s is not None for c in cells])
    risk = np.array([violation(c.peak_power_w, c.power_std_w or 0.0, goal.cap_w) for c in cells])
    safe = known & (risk < settings.violation_probability)
    # A point that was measured but is not safe may be so once it is measured again and its error is smaller.
    repeats = settings.repeats if noise > 0 else 0
    doubtful = known & ~safe & (risk < 1 - settings.violation_probability) & (repeats > 0)

    def turns_out(times: int) -> Array:
        """Probability that each cell is found safe by so many measurements more."""
        precise = noise / math.sqrt(times)
        again = fits_again(cells, expected.peak, goal.cap_w, precise, z)
        return np.where(doubtful, again, fits_below(expected.peak, goal.cap_w, precise, z))

    best = _best(points, cells, safe, goal)
    if best is None or expected.time is None:
        down = _way_down(lut, points, opened | doubtful, turns_out(max(1, repeats)))
        return Outlook(down, None, expected)
    score, score_sd = _scores(expected, points, goal)
    # Few points say little of how well the model fits: its deviations are widened as long as they are few.
    score_sd = score_sd * math.sqrt(1 + settings.doubt / max(1, int(known.sum())))
    lead = score[best] - score
    tried = doubtful | (opened & admissible(lut, cells, expected.peak, goal.cap_w, settings.overshoot))
    improvement = expected_improvement(lead, score_sd) * settings.horizon_s
    price = price_s(expected.time, points, lut.samples, last=last, behind=-lead, settings=settings)
    worth = np.full(len(points), -np.inf)
    for times in range(1, max(1, repeats) + 1):  # one measurement more, or several of the same point
        worth = np.maximum(worth, np.where(tried, improvement * turns_out(times) - times * price, -np.inf))
    index = int(np.argmax(worth))
    if worth[index] <= 0:
        chance = normal_cdf(lead / score_sd) * turns_out(1)
        near = tried & opened & neighbours(lut, best) & (chance >= settings.neighbour_chance)
        if not near.any():
            return Outlook(None, points[best], expected)
        index = int(np.argmax(np.where(near, chance, -np.inf)))
    return Outlook(points[index], points[best], expected)


def _first(
    lut: Lut,
    points: list[OperatingPoint],
    opened: NDArray[np.bool_],
    goal: Goal,
    *,
    prior: Expected | None,
) -> OperatingPoint:
    """Low in power where a cap is known, the top clock without one; with a prior table, one clock below its choice."""
    count = len(lut.gpu_frequencies_hz)
    batches = sorted({p.batch_size for p, free in zip(points, opened, strict=True) if free})
    batch = batches[len(batches) // 2]
    column = count - 1 if goal.cap_w is None else count // 4
    if prior is not None and prior.time is not None:
        score, _ = _scores(prior, points, goal)
        within = fits_below(prior.peak, goal.cap_w, 0.0, 0.0) >= 0.5
        if (within & opened).any():
            chosen = points[int(np.argmin(np.where(within & opened, score, np.inf)))]
            batch = chosen.batch_size
            column = lut.gpu_frequencies_hz.index(chosen.gpu_frequency_hz)
            column -= 0 if goal.cap_w is None or column == 0 else 1
    wanted = OperatingPoint(batch, lut.gpu_frequencies_hz[column])
    free = [p for p, is_free in zip(points, opened, strict=True) if is_free]
    return min(free, key=lambda p: (p != wanted, p.batch_size != batch, abs(points.index(p) - points.index(wanted))))


def _way_down(lut: Lut, points: list[OperatingPoint], open_: NDArray[np.bool_], fits: Array) -> OperatingPoint | None:
    """Nothing is safe yet: the highest clock that very likely is, else the point that most likely is.

    None once that is as good as excluded for every point: then the cap is not to be kept.
    """
    clocks = np.array([lut.gpu_frequencies_hz.index(p.gpu_frequency_hz) for p in points])
    likely = open_ & (fits >= _VERY_LIKELY)
    if likely.any():
        return points[int(np.argmax(np.where(likely, clocks + fits, -np.inf)))]
    if not (open_ & (fits >= _EXCLUDED)).any():
        return None
    return points[int(np.argmax(np.where(open_, fits - 1e-6 * clocks, -np.inf)))]


def _scores(expected: Expected, points: list[OperatingPoint], goal: Goal) -> tuple[Array, Array]:
    r = [1.0 if goal.relation is None else goal.relation.of(p.batch_size) for p in points]
    assert expected.time is not None
    assert expected.mean is not None
    time = expected.time.mean + np.array([math.log(x) if x else _ENDLESS for x in r])
    if goal.objective is Objective.TIME:
        return time, expected.time.sd
    weight = 1.0 if goal.objective is Objective.ENERGY else 2.0
    return weight * time + expected.mean.mean, np.hypot(weight * expected.time.sd, expected.mean.sd)


def _best(points: list[OperatingPoint], cells: list[Cell], safe: NDArray[np.bool_], goal: Goal) -> int | None:
    """The safe measured point with the best measured score: what the live choice takes."""
    scores = []
    for point, cell, is_safe in zip(points, cells, safe, strict=True):
        r = 1.0 if goal.relation is None else goal.relation.of(point.batch_size)
        time = (cell.time_s or 0.0) * (r or 0.0)
        power = cell.mean_power_w or cell.peak_power_w or 0.0
        value = time if goal.objective is Objective.TIME else time * power
        if goal.objective is Objective.EDP:
            value *= time
        scores.append(value if is_safe and value > 0 else math.inf)
    index = int(np.argmin(scores))
    return index if scores[index] < math.inf else None


def _typical_noise(cells: list[Cell]) -> float:
    """Median relative standard deviation of the measured peak powers; 0 where they state none."""
    sds = [relative(c.power_std_w, c.peak_power_w) for c in cells if c.origin == "measured"]
    return float(np.median(sds)) if sds else 0.0
