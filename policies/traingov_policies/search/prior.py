"""What is believed of a job's energy curve before it is measured, from the board's other jobs (method B).

ln(cost) of job j at clock f, with u = ln(f / f_max):

    g_j(u) = level_j + common(u) + own_j(u)

``common`` is the board's curve: a broad valley to begin with, learnt from what the other jobs measured, with an oddity
per clock, since a board's spikes tend to be the board's. ``own_j`` is how a job differs from it: a tilt, a bend, a
smooth remainder and oddities. Everything is normal, so curves of which only a few clocks were measured count too. How
large ``own`` is, is not known beforehand: a small grid of values is weighted by how likely the other jobs' curves
are under each, and then by the readings of the job itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .process import Array, Belief, Mixture, Reading

_LEVEL = 3.0  # sd of a job's level: nothing is known of it


@dataclass(frozen=True)
class Shape:
    """Standard deviations, in ln(cost), of what makes up a curve, and lengths in e-folds of the clock."""

    tilt: float = 0.10
    bend: float = 0.08
    smooth: float = 0.03
    oddity: float = 0.02
    length: float = 0.35


@dataclass(frozen=True)
class Known:
    """Another job's measured curve: ``u`` [k] = ln(f / f_max), ``value`` [k] = ln(cost), ``sd`` [k] its errors."""

    u: Array
    value: Array
    sd: Array


COMMON = Shape(tilt=0.6, bend=0.5, smooth=0.15, oddity=0.03, length=0.5)
VALLEY = 0.35
"""Curvature of the valley that stands for the common curve while no other job is known: VALLEY · (u − u_start)²."""

OWN = ((0.02, 0.02, 0.01), (0.05, 0.05, 0.02), (0.12, 0.10, 0.03), (0.3, 0.25, 0.06))
"""Tilt, bend and smooth remainder of jobs from much like the common curve to quite unlike it."""


def kernel(first: Array, second: Array, shape: Shape) -> Array:
    """Covariance [a, b] of a curve of this shape between clocks ``first`` [a] and ``second`` [b], without a level."""
    apart = first[:, None] - second[None, :]
    tilt = shape.tilt**2 * np.outer(first, second)
    bend = shape.bend**2 * np.outer(first**2, second**2)
    smooth = shape.smooth**2 * np.exp(-0.5 * (apart / shape.length) ** 2)
    out: Array = tilt + bend + smooth + shape.oddity**2 * (np.abs(apart) < 1e-6)
    return out


_SESSION = 0.2  # sd of a job's level from one session to the next, once its curve is known


def remembered(base: Mixture, index: Sequence[int], own: Known) -> Mixture:
    """``base`` after this job's own curve of an earlier run, known at clocks ``index``: its shape, not its level."""
    readings = [Reading(i, 0.0, float(v), float(sd)) for i, v, sd in zip(index, own.value, own.sd, strict=True)]
    updated = [belief.given(readings) for belief in base.beliefs]
    logs = np.log(base.weights) + np.array([likelihood for _, likelihood in updated])
    w = np.exp(logs - logs.max())
    weights = tuple(float(x) for x in np.maximum(w / w.sum(), 1e-12))
    return Mixture(weights, tuple(Belief(b.mean, b.covariance + _SESSION**2) for b, _ in updated))


@dataclass(frozen=True)
class PriorSettings:
    """``odd_jobs``: share of jobs that may differ from the common curve in another way than those known do.

    ``length``: e-folds of the clock over which a job's smooth difference keeps its sign.
    ``oddity``: standard deviation of single clocks of the most erratic jobs.
    """

    odd_jobs: float = 0.3
    length: float = 0.35
    oddity: float = 0.05


def prior(u: Array, others: Sequence[Known], u_start: float, settings: PriorSettings | None = None) -> Mixture:
    """What to believe over clocks ``u`` [n], given the board's other jobs; ``u_start`` is the tree's clock.

    One belief per way in which a job may differ from the common curve. Those under which the other jobs' curves are
    likely weigh more, but each keeps a share: the next job may be the first of its kind.
    """
    s = settings or PriorSettings()
    own_shapes = [
        Shape(tilt, bend, smooth, oddity, s.length) for tilt, bend, smooth in OWN for oddity in (0.01, 0.025, s.oddity)
    ]
    valley = VALLEY * (u - u_start) ** 2
    if not others:
        even = tuple(Belief(valley, kernel(u, u, COMMON) + kernel(u, u, shape) + _LEVEL**2) for shape in own_shapes)
        return Mixture((1 / len(even),) * len(even), even)
    at = np.concatenate([k.u for k in others])
    job = np.repeat(np.arange(len(others)), [len(k.u) for k in others])
    same = job[:, None] == job[None, :]
    noise = np.concatenate([k.sd for k in others]) ** 2
    y = np.concatenate([k.value for k in others]) - VALLEY * (at - u_start) ** 2
    # Levels are unknown: centring the values keeps the numbers small, the wide prior does the rest.
    y = y - (np.bincount(job, y) / np.bincount(job))[job]
    common = kernel(at, at, COMMON) + same * _LEVEL**2 + np.diag(noise + 1e-9)
    cross, own = kernel(at, u, COMMON), kernel(u, u, COMMON) + _LEVEL**2
    right = np.column_stack([y, cross])
    beliefs, logs = [], []
    for shape in own_shapes:
        factor = np.linalg.cholesky(common + same * kernel(at, at, shape))
        solved = np.linalg.solve(factor, right)
        white, half = solved[:, 0], solved[:, 1:]
        logs.append(-0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum()))
        beliefs.append(Belief(valley + half.T @ white, own + kernel(u, u, shape) - half.T @ half))
    likely = np.exp(np.array(logs) - max(logs))
    weights = (1 - s.odd_jobs) * likely / likely.sum() + s.odd_jobs / len(own_shapes)
    return Mixture(tuple(float(w) for w in weights), tuple(beliefs))
