"""Sampling of surfaces consistent with the facts: independent ensembles of a differential-evolution Metropolis walk.

``search.walk`` gives where one ensemble ends; here several run side by side, keep thinned draws, and are compared
(Gelman-Rubin over the ensembles), so that a family can say how well it mixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .search import Array, Objective


@dataclass(frozen=True)
class Draws:
    """``points`` [ensembles, kept, walkers, parameters] in the unit cube; ``misfits`` [ensembles, kept, walkers]."""

    points: Array
    misfits: Array
    accepted: float


def walk_ensembles(
    objective: Objective, starts: Array, seed: int, *, steps: int, keep: int, walkers: int = 60, spread: float = 0.02
) -> Draws:
    """Walk from each of ``starts`` [ensembles, parameters] on exp(−misfit / 2); the second half is kept, thinned.

    ter Braak's DE-MC with snooker-free jumps: γ (a − b) with a and b of the walker's own ensemble, γ = 2.38 / √(2 d)
    scaled by a random factor, a tenth of the jumps with γ = 1, a fifth in a few random directions only. Points outside
    the unit cube have no probability. ``keep`` moments are kept, evenly spaced over the second half of ``steps``.
    """
    rng = np.random.default_rng(seed)
    ensembles, d = starts.shape
    points = np.clip(starts[:, None, :] + rng.normal(0, spread, (ensembles, walkers, d)), 0.0, 1.0)
    values = objective(points.reshape(-1, d)).reshape(ensembles, walkers)
    rows = np.arange(ensembles)[:, None]
    kept, kept_values, moves = [], [], 0.0
    moments = set(np.linspace(steps // 2, steps - 1, keep).astype(int).tolist())
    for k in range(steps):
        a, b = rng.integers(0, walkers, (2, ensembles, walkers))
        mask = np.ones((ensembles, walkers, d))
        if k % 5 == 4:
            mask = (rng.random(mask.shape) < 4.0 / d).astype(float)
        used = np.maximum(1.0, mask.sum(axis=2, keepdims=True))
        scale = rng.choice([0.3, 0.6, 1.0], (ensembles, walkers, 1))
        gamma = np.ones_like(used) if k % 10 == 9 else scale * 2.38 / np.sqrt(2 * used)
        trial = points + mask * (gamma * (points[rows, a] - points[rows, b]) + rng.normal(0, 1e-3, points.shape))
        inside = ((trial >= 0) & (trial <= 1)).all(axis=2)
        found = objective(np.clip(trial, 0, 1).reshape(-1, d)).reshape(ensembles, walkers)
        accept = inside & (np.log(rng.random((ensembles, walkers))) < (values - found) / 2)
        points[accept], values[accept] = trial[accept], found[accept]
        moves += float(accept.mean())
        if k in moments:
            kept.append(points.copy())
            kept_values.append(values.copy())
    return Draws(np.stack(kept, axis=1), np.stack(kept_values, axis=1), moves / steps)


def gelman_rubin(chains: Array) -> float:
    """R-hat of one quantity: ``chains`` [chains, draws], each chain split in two halves. 1 is perfect mixing."""
    half = chains.shape[1] // 2
    split = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within = float(split.var(axis=1, ddof=1).mean())
    between = float(split.mean(axis=1).var(ddof=1))
    if within <= 0:
        return 1.0 if between <= 0 else float("inf")
    return float(np.sqrt((half - 1) / half + between / within))


def effective_draws(chains: Array) -> float:
    """Independent draws that ``chains`` [chains, draws] are worth, their disagreement counted (Gelman et al., BDA3)."""
    m, n = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    within = float((centred**2).sum()) / (m * (n - 1))
    total_variance = within * (n - 1) / n + float(chains.mean(axis=1).var(ddof=1))
    if total_variance <= 0:
        return float(m * n)
    correlated = 0.0
    for lag in range(1, n):
        covariance = float((centred[:, :-lag] * centred[:, lag:]).mean())
        rho = 1.0 - (within - covariance) / total_variance
        if rho < 0.05:
            break
        correlated += rho
    return float(m * n / (1 + 2 * correlated))
