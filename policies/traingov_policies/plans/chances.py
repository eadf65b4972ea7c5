"""Chances and prices: how likely a point is to stay below the cap, what it may gain, and what measuring it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..lut import Cell, Lut
from ..relation import RelationVector
from ..values import Objective, OperatingPoint
from .model import Array, Estimate
from .view import relative

_erf = np.vectorize(math.erf, otypes=[float])


@dataclass(frozen=True)
class AdaptiveSettings:
    """How much to measure.

    ``max_points``: never more (a point that could not be measured counts). ``violation_probability``: the best point
    stays below the cap with at least 1 less this probability, given the measurements' noise. ``horizon_s``: seconds
    of training that a better point is taken to serve. ``switch_s``, ``batch_change_s``, ``window_s``: what a change
    of clock, a change of batch size and a measurement cost. ``overshoot``: a point expected above so many caps is
    not tried. ``repeats``: so many measurements more of one point are considered at once; 0: a point is measured
    once. ``neighbour_chance``: a neighbour of the best point with at least this chance to beat it is measured.
    ``doubt``: with n points measured, deviations of the score are widened by √(1 + doubt / n).
    """

    max_points: int = 12
    violation_probability: float = 0.05
    horizon_s: float = 3600.0
    switch_s: float = 1.0
    batch_change_s: float = 0.5
    window_s: float = 1.2
    overshoot: float = 1.05
    repeats: int = 4
    neighbour_chance: float = 0.01
    doubt: float = 5.0


@dataclass(frozen=True)
class Goal:
    """What a point is looked for: under ``cap_w`` watts (None: no cap), for ``objective``, weighed by ``relation``."""

    cap_w: float | None
    relation: RelationVector | None
    objective: Objective


def fits_below(peak: Estimate, cap_w: float | None, noise: float, z: float) -> Array:
    """Probability that each cell, measured with ``noise``, turns out below the cap by ``z`` of its deviations."""
    if cap_w is None:
        return np.ones_like(peak.mean)
    return normal_cdf((math.log(cap_w) - z * noise - peak.mean) / np.hypot(peak.sd, noise))


def fits_again(cells: list[Cell], peak: Estimate, cap_w: float | None, noise: float, z: float) -> Array:
    """The same for cells that were measured already, and would be averaged with the new measurement."""
    if cap_w is None or noise <= 0:
        return np.ones_like(peak.mean)
    value = np.log(np.array([c.peak_power_w or cap_w for c in cells]))
    old = np.maximum(np.array([relative(c.power_std_w, c.peak_power_w) for c in cells]), 1e-6)
    share = old**2 / (old**2 + noise**2)  # weight of the new measurement
    after = np.sqrt(share) * noise
    expected = (1 - share) * value + share * peak.mean
    return normal_cdf((math.log(cap_w) - z * after - expected) / (share * np.hypot(peak.sd, noise)))


def admissible(lut: Lut, cells: list[Cell], peak: Estimate, cap_w: float | None, overshoot: float) -> NDArray[np.bool_]:
    """Points that may be tried under the cap: expected near or below it even if power is one deviation higher; or
    expected so and one clock above a point measured below it, or at a clock that some batch size was measured below it
    at (power varies little over the batch size, so that doubt about the model must not rule such points out)."""
    if cap_w is None:
        return np.ones(len(cells), bool)
    limit = math.log(cap_w * overshoot)
    wide = len(lut.gpu_frequencies_hz)
    below = np.array([c.time_s is not None and (c.peak_power_w or math.inf) < cap_w for c in cells]).reshape(-1, wide)
    step_up = np.zeros_like(below)
    step_up[:, 1:] = below[:, :-1]
    proven: NDArray[np.bool_] = np.maximum.accumulate(np.any(below, axis=0)[::-1])[::-1]  # this clock or a higher one
    careful: NDArray[np.bool_] = peak.mean + peak.sd <= limit
    return careful | ((step_up | np.broadcast_to(proven, step_up.shape)).ravel() & (peak.mean <= limit))


def expected_improvement(lead: Array, sd: Array) -> Array:
    """Mean of what a normal quantity (``lead``, ``sd``) has above 0."""
    z = lead / sd
    density = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / math.sqrt(2 * math.pi)
    result: Array = np.maximum(lead * normal_cdf(z) + sd * density, 0.0)
    return result


def price_s(
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


def neighbours(lut: Lut, best: int) -> NDArray[np.bool_]:
    """The eight cells around ``best``."""
    wide = len(lut.gpu_frequencies_hz)
    i, j = divmod(best, wide)
    near = np.zeros((len(lut.batch_sizes), wide), bool)
    near[max(0, i - 1) : i + 2, max(0, j - 1) : j + 2] = True
    near[i, j] = False
    return near.ravel()


def normal_cdf(z: Array) -> Array:
    """Standard normal distribution function."""
    result: Array = 0.5 * (1.0 + _erf(z / math.sqrt(2.0)))
    return result
