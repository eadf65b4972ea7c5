"""Search for parameters that meet the facts: differential evolution, and a Metropolis walk around what it finds.

Both are plain NumPy, seeded and evaluate whole populations at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array], Array]  # [population, parameters] in the unit cube -> misfit [population]


def evolve(
    objective: Objective,
    dimensions: int,
    seed: int,
    *,
    population: int = 120,
    generations: int = 600,
    goal: float = 0.0,
) -> tuple[Array, float]:
    """Differential evolution (current-to-best/1/bin, settings drawn per member); the best point and its misfit.

    Stops early at a misfit of ``goal`` or below.
    """
    rng = np.random.default_rng(seed)
    points = rng.random((population, dimensions))
    values = objective(points)
    for _ in range(generations):
        order = np.argsort(values)
        if values[order[0]] <= goal:
            break
        elite = points[order[rng.integers(0, max(2, population // 8), population)]]
        a, b = points[rng.integers(0, population, (2, population))]
        scale = rng.uniform(0.3, 0.9, (population, 1))
        trial = points + scale * (elite - points) + scale * (a - b)
        cross = rng.random(points.shape) < rng.choice([0.3, 0.9], (population, 1))
        trial = np.where(cross, trial, points)
        # Back into the cube, half way between the old point and the wall that was crossed.
        trial = np.where(trial < 0, points / 2, np.where(trial > 1, (points + 1) / 2, trial))
        found = objective(trial)
        better = found <= values
        points[better], values[better] = trial[better], found[better]
    best = int(np.argmin(values))
    return points[best], float(values[best])


def walk(objective: Objective, start: Array, seed: int, steps: int, walkers: int = 40) -> tuple[Array, Array]:
    """Differential-evolution Metropolis (ter Braak 2006) on exp(-misfit / 2), from a ball around ``start``.

    Returns the walkers' points and misfits after ``steps`` steps: a sample of surfaces consistent with the facts.
    """
    rng = np.random.default_rng(seed)
    n = start.size
    points = np.clip(start + rng.normal(0, 0.02, (walkers, n)), 0, 1)
    values = objective(points)
    gamma = 2.38 / np.sqrt(2 * n)
    for k in range(steps):
        a, b = points[rng.integers(0, walkers, (2, walkers))]
        jump = 1.0 if k % 10 == 9 else gamma
        trial = points + jump * (a - b) + rng.normal(0, 1e-3, points.shape)
        inside = ((trial >= 0) & (trial <= 1)).all(axis=1)
        found = np.where(inside, objective(np.clip(trial, 0, 1)), np.inf)
        accept = np.log(rng.random(walkers)) < (values - found) / 2
        points[accept], values[accept] = trial[accept], found[accept]
    return points, values
