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
from ..relation import RelationVector
from ..robust import violation
from ..values import Objective, OperatingPoint
from .model import FROM_PRIOR, POWER, TIME, Array, Estimate, coordinates, estimate

_MEASURED = ("measured", None)  # a table without origins holds measurements
_REPEATS = 4  # so many measurements of one point are considered at once
_VERY_LIKELY, _EXCLUDED = 0.9, 0.003
_GIVEN_UP_SD = 0.02  # a peak noted when a point was given up is a lower bound: so much may be missing
_erf = np.vectorize(math.erf, otypes=[float])


@dataclass(frozen=True)
class AdaptiveSettings:
    """How much to measure.

    ``max_points``: never more (a point that could not be measured counts). ``violation_probability``: the best point
    stays below the cap with at least 1 less this probability, given the measurements' noise. ``horizon_s``: seconds
    of training that a better point is taken to serve. ``switch_s``, ``batch_change_s``, ``window_s``: what a change
    of clock, a change of batch size and a measurement cost. ``overshoot``: a point expected above so many caps is
    not tried. ``neighbour_chance``: a neighbour of the best point with at least this chance to beat it is measured.
    ``doubt``: with n points measured, deviations of the score are widened by √(1 + doubt / n).
    """

    max_points: int = 12
    violation_probability: float = 0.05
    horizon_s: float = 3600.0
    switch_s: float = 1.0
    batch_change_s: float = 0.5
    window_s: float = 1.2
    overshoot: float = 1.05
    neighbour_chance: float = 0.01
    doubt: float = 5.0


@dataclass(frozen=True)
class Goal:
    """What a point is looked for: under ``cap_w`` watts (None: no cap), for ``objective``, weighed by ``relation``."""

    cap_w: float | None
    relation: RelationVector | None
    objective: Objective


@dataclass(frozen=True)
class Expected:
    """Time, peak and mean power of every cell as the model sees them (logarithms, flat [B·F]).

    ``time`` and ``mean`` are None where every point so far was given up above the cap.
    """

    time: Estimate | None
    peak: Estimate
    mean: Estimate | None


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
    start_batch: int | None = None,
) -> Outlook:
    """What to measure next in ``lut`` (see the module). ``last`` is the point that runs now, ``start_batch`` the
    batch size before anything was measured.
    """
    points = list(lut.points())
    cells = [lut.cell(p) for p in points]
    is_candidate = np.array([goal.relation is None or goal.relation.of(p.batch_size) is not None for p in points])
    opened = np.array([is_open(c, goal.cap_w) for c in cells]) & is_candidate
    expected = expect(lut, prior)
    if expected is None:
        if not opened.any():
            return Outlook(None, None, None)
        known = None if prior is None else expect(prior, of=lut)
        return Outlook(_first(lut, points, opened, goal, prior=known, start_batch=start_batch), None, None)
    noise = _typical_noise(cells)
    z = NormalDist().inv_cdf(1 - settings.violation_probability)
    known = is_candidate & np.array([c.origin in _MEASURED and c.time_s is not None for c in cells])
    risk = np.array([violation(c.peak_power_w, c.power_std_w or 0.0, goal.cap_w) for c in cells])
    safe = known & (risk < settings.violation_probability)
    # A point that was measured but is not safe may be so once it is measured again and its error is smaller.
    doubtful = known & ~safe & (risk < 1 - settings.violation_probability) & (noise > 0)

    def turns_out(times: int) -> Array:
        """Probability that each cell is found safe by so many measurements more."""
        precise = noise / math.sqrt(times)
        again = _fits_again(cells, expected.peak, goal.cap_w, precise, z)
        return np.where(doubtful, again, _fits(expected.peak, goal.cap_w, precise, z))

    best = _best(points, cells, safe, goal)
    if best is None or expected.time is None:
        down = _way_down(lut, points, opened | doubtful, turns_out(_REPEATS if noise > 0 else 1))
        return Outlook(down, None, expected)
    score, score_sd = _scores(expected, points, goal)
    # Few points say little of how well the model fits: its deviations are widened as long as they are few.
    score_sd = score_sd * math.sqrt(1 + settings.doubt / max(1, int(known.sum())))
    lead = score[best] - score
    tried = doubtful | (opened & _admissible(lut, cells, expected.peak, goal.cap_w, settings.overshoot))
    improvement = _expected_improvement(lead, score_sd) * settings.horizon_s
    price = _price(expected.time, points, lut.samples, last=last, behind=-lead, settings=settings)
    worth = np.full(len(points), -np.inf)
    for times in range(1, _REPEATS + 1 if noise > 0 else 2):  # one measurement more, or several of the same point
        worth = np.maximum(worth, np.where(tried, improvement * turns_out(times) - times * price, -np.inf))
    index = int(np.argmax(worth))
    if worth[index] <= 0:
        chance = _normal_cdf(lead / score_sd) * turns_out(1)
        near = tried & opened & _neighbours(lut, best) & (chance >= settings.neighbour_chance)
        if not near.any():
            return Outlook(None, points[best], expected)
        index = int(np.argmax(np.where(near, chance, -np.inf)))
    return Outlook(points[index], points[best], expected)


def expect(lut: Lut, prior: Lut | None = None, of: Lut | None = None) -> Expected | None:
    """What the measured cells of ``lut`` let one expect of every cell of ``of`` (default: of ``lut`` itself).

    ``prior`` is a table to start from in place of what is known of any board. None before any cell has a power.
    """
    points = list(lut.points())
    cells = [lut.cell(p) for p in points]
    timed = [i for i, c in enumerate(cells) if c.time_s and c.peak_power_w and c.origin != "predicted"]
    powered = [i for i, c in enumerate(cells) if c.peak_power_w and c.origin != "predicted"]
    if not powered:
        return None
    target = of or lut
    at, all_known = coordinates(target), coordinates(lut, target)
    from_prior = None if prior is None else expect(prior, of=lut)

    def fit(which: list[int], values: list[float], sds: list[float], quantity: str) -> Estimate:
        shape, mean = (TIME if quantity == "time" else POWER), None
        own: Estimate | None = None if from_prior is None else getattr(from_prior, quantity)
        if own is not None:
            shape, mean = FROM_PRIOR, np.concatenate([own.mean, own.mean[which]])
        return estimate(at, all_known[which], np.log(np.array(values)), np.array(sds), shape=shape, mean=mean)

    scale = target.samples / lut.samples
    time_sds = [_relative(cells[i].time_std_s, cells[i].time_s) for i in timed]
    power_sds = [_relative(cells[i].power_std_w, cells[i].peak_power_w) for i in powered]
    peak_sds = [sd if cells[i].time_s else max(sd, _GIVEN_UP_SD) for i, sd in zip(powered, power_sds, strict=True)]
    mean_sds = [_relative(cells[i].power_std_w, cells[i].peak_power_w) for i in timed]
    peak = fit(powered, [cells[i].peak_power_w or 0.0 for i in powered], peak_sds, "peak")
    if not timed:
        return Expected(None, peak, None)
    return Expected(
        fit(timed, [(cells[i].time_s or 0.0) * scale for i in timed], time_sds, "time"),
        peak,
        fit(timed, [cells[i].mean_power_w or cells[i].peak_power_w or 0.0 for i in timed], mean_sds, "mean"),
    )


def _relative(sd: float | None, value: float | None) -> float:
    return 0.0 if not sd or not value else sd / value


def _first(
    lut: Lut,
    points: list[OperatingPoint],
    opened: NDArray[np.bool_],
    goal: Goal,
    *,
    prior: Expected | None,
    start_batch: int | None,
) -> OperatingPoint:
    """Low in power where a cap is known, the top clock without one; with a prior table, one clock below its choice."""
    count = len(lut.gpu_frequencies_hz)
    batches = sorted({p.batch_size for p, free in zip(points, opened, strict=True) if free})
    batch = start_batch if start_batch in batches else batches[len(batches) // 2]
    column = count - 1 if goal.cap_w is None else count // 4
    if prior is not None and prior.time is not None:
        score, _ = _scores(prior, points, goal)
        within = _fits(prior.peak, goal.cap_w, 0.0, 0.0) >= 0.5
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
    time = expected.time.mean + np.array([math.log(x) if x else math.inf for x in r])
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
    sds = [_relative(c.power_std_w, c.peak_power_w) for c in cells if c.origin == "measured"]
    return float(np.median(sds)) if sds else 0.0


def _fits(peak: Estimate, cap_w: float | None, noise: float, z: float) -> Array:
    """Probability that each cell, measured with ``noise``, turns out below the cap by ``z`` of its deviations."""
    if cap_w is None:
        return np.ones_like(peak.mean)
    return _normal_cdf((math.log(cap_w) - z * noise - peak.mean) / np.hypot(peak.sd, noise))


def _fits_again(cells: list[Cell], peak: Estimate, cap_w: float | None, noise: float, z: float) -> Array:
    """The same for cells that were measured already, and would be averaged with the new measurement."""
    if cap_w is None or noise <= 0:
        return np.ones_like(peak.mean)
    value = np.log(np.array([c.peak_power_w or cap_w for c in cells]))
    old = np.maximum(np.array([_relative(c.power_std_w, c.peak_power_w) for c in cells]), 1e-6)
    share = old**2 / (old**2 + noise**2)  # weight of the new measurement
    after = np.sqrt(share) * noise
    expected = (1 - share) * value + share * peak.mean
    return _normal_cdf((math.log(cap_w) - z * after - expected) / (share * np.hypot(peak.sd, noise)))


def _admissible(
    lut: Lut, cells: list[Cell], peak: Estimate, cap_w: float | None, overshoot: float
) -> NDArray[np.bool_]:
    """Points that may be tried under the cap: expected near or below it even if power is one deviation higher, or
    one clock above a point measured below it."""
    if cap_w is None:
        return np.ones(len(cells), bool)
    limit = math.log(cap_w * overshoot)
    wide = len(lut.gpu_frequencies_hz)
    below = np.array([c.time_s is not None and (c.peak_power_w or math.inf) < cap_w for c in cells]).reshape(-1, wide)
    step_up = np.zeros_like(below)
    step_up[:, 1:] = below[:, :-1]
    careful: NDArray[np.bool_] = peak.mean + peak.sd <= limit
    return careful | (step_up.ravel() & (peak.mean <= limit))


def _expected_improvement(lead: Array, sd: Array) -> Array:
    z = lead / sd
    density = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / math.sqrt(2 * math.pi)
    result: Array = np.maximum(lead * _normal_cdf(z) + sd * density, 0.0)
    return result


def _price(
    time: Estimate,
    points: list[OperatingPoint],
    samples: int,
    *,
    last: OperatingPoint | None,
    behind: Array,
    settings: AdaptiveSettings,
) -> Array:
    """Seconds of training at the best point that measuring each point costs: what its own steps do not make up for."""
    steps_s = np.exp(time.mean) * np.array([p.batch_size for p in points]) / samples
    changes = np.array([last is None or p.batch_size != last.batch_size for p in points])
    switches = np.array([p != last for p in points])
    # Without a change of batch size the step under way is waited for; the point that runs is only measured on.
    lasts = np.where(switches, settings.switch_s + np.where(changes, 0.0, 0.5 * steps_s), 0.0)
    lasts = lasts + np.maximum(settings.window_s, steps_s)
    lost: Array = np.where(changes, settings.batch_change_s, 0.0) + lasts * np.clip(1 - np.exp(-behind), 0.05, 1.0)
    return lost


def _neighbours(lut: Lut, best: int) -> NDArray[np.bool_]:
    """The eight cells around ``best``."""
    wide = len(lut.gpu_frequencies_hz)
    i, j = divmod(best, wide)
    near = np.zeros((len(lut.batch_sizes), wide), bool)
    near[max(0, i - 1) : i + 2, max(0, j - 1) : j + 2] = True
    near[i, j] = False
    return near.ravel()


def _normal_cdf(z: Array) -> Array:
    result: Array = 0.5 * (1.0 + _erf(z / math.sqrt(2.0)))
    return result
