"""Made-up trainings on which the settings of the sequential design were fixed, apart from those it is reported on.

Nothing here looks like what the design assumes: N(b) is a sum of three powers of b (many updates needed at small
batches' noise, a flat middle, the linear regime beyond a critical batch size), runs have their own spread per batch
size, epochs are whole numbers in some jobs, sizes at either end may miss; time is a saturating device behind a power
limit whose draw rises with the batch.
"""

from __future__ import annotations

import math

import numpy as np

from .zeus import CAP_SHARES, Floats, Training


def synthetic(count: int, seed: int = 0) -> list[Training]:
    """``count`` trainings; the same for the same ``seed``."""
    rng = np.random.default_rng([seed, 2026])
    return [_one(rng, i) for i in range(count)]


def _one(rng: np.random.Generator, number: int) -> Training:
    first, length = int(rng.integers(1, 5)), int(rng.integers(5, 13))
    exponents = [float(first + i) for i in range(length)]
    if rng.random() < 0.4:  # sizes in between, as people add them
        exponents += [e + math.log2(1.5) for e in exponents[:-1] if rng.random() < 0.5]
    sizes = np.array(sorted({round(2**e) for e in exponents}), dtype=float)
    critical = 2.0 ** rng.uniform(first, first + length + 2)
    small = 2.0 ** rng.uniform(first - 4, first + length / 2)
    mean = (
        1
        + (sizes / critical) ** rng.uniform(0.5, 1.2)
        + rng.choice([0.0, 1.0]) * (small / sizes) ** rng.uniform(0.5, 1.2)
    ) * rng.uniform(3, 40)
    mean = mean * np.exp(rng.normal(0, 0.03, len(sizes)))
    spread = rng.uniform(0.01, 0.15) * np.exp(rng.normal(0, 0.4, len(sizes)))
    whole = rng.random() < 0.6
    epochs: dict[int, tuple[float | None, ...]] = {}
    for b, m, s in zip(sizes, mean, spread, strict=True):
        runs = m * np.exp(rng.normal(0, s, int(rng.choice([4, 5, 10]))))
        epochs[int(b)] = tuple(float(max(1, round(n))) if whole else float(n) for n in runs)
    for end in (0, -1):
        if rng.random() < 0.2 and len(sizes) > 5:
            b = int(sizes[end])
            epochs[b] = (None, *epochs[b][1:])
    log_time = _times(rng, sizes)
    return Training(f"synthetic-{number}", "none", tuple(int(b) for b in sizes), log_time, log_time, epochs)


def _times(rng: np.random.Generator, sizes: Floats) -> Floats:
    """[cap][B]: log seconds per epoch at the fastest of eleven clocks below each cap."""
    clocks = np.linspace(0.3, 1.0, 11)
    host, half = rng.uniform(0.0, 0.5), 2.0 ** rng.uniform(np.log2(sizes[0]) - 3, np.log2(sizes[-1]) + 1)
    busy = sizes / (sizes + half)
    time = (1 / busy)[:, None] * (host + (1 - host) / clocks[None, :])
    watts = 1 + rng.uniform(1, 4) * busy[:, None] ** rng.uniform(0.2, 1.0) * clocks[None, :] ** rng.uniform(1.5, 3)
    time, watts = (x * np.exp(rng.normal(0, 0.01, x.shape)) for x in (time, watts))
    low, high = watts.min(), watts.max()
    caps = [low + share * (high - low) if share < 1 else math.inf for share in CAP_SHARES]
    out: Floats = np.array([np.log(np.where(watts < c, time, math.inf).min(axis=1)) for c in caps])
    return out
