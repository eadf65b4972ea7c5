"""Ways to find a curve's best level from noisy readings, ours and those it is compared with.

Each is given ``read(i)`` (ln(cost) at level i with noise, a new draw each time) and says where it ends and how many
readings away from where the job trains anyway (probes) it took.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traingov_policies.search.process import Mixture, Reading
from traingov_policies.search.search import Search, Stakes

Read = Callable[[int], float]

READING_S = 8.8
"""A reading as the service takes it at this noise: settling and window."""

BLOCKED_S = 120.0
"""How long the service waits before it goes on with a search that would have cost more than it may."""


@dataclass(frozen=True)
class Found:
    """Level ``index`` after ``probes`` probes and ``readings`` readings; ``visited`` are all of these, in order."""

    index: int
    probes: int
    visited: tuple[int, ...]


def searched(
    read: Read, prior: Mixture, start: int, noise: float, probes_most: int, *,
    job_s: float, loss_share: float, loss_s: float,
) -> Found:  # fmt: skip
    """Ours: the service's own ``Search``, over a job of ``job_s`` seconds, with the service's rule of what may be lost.

    Joules are in units of what the start draws in a second; what was lost is taken from the readings themselves.
    """
    search = Search(prior, start, probes_most=probes_most, noise_sd=noise)
    now_s, spent_s = 0.0, 0.0

    def stakes() -> Stakes:
        return Stakes(job_s - now_s, READING_S, loss_share * now_s + loss_s - spent_s)

    levels = range(len(prior.beliefs[0].mean))
    while now_s < job_s / 2:
        step = search.next(levels, stakes)
        if step is None and search.blocked:  # as the service does: train on until more may be lost
            now_s += BLOCKED_S
            search.resume()
            continue
        if step is None:
            break
        value = read(step.index)
        now_s += READING_S
        search.tell(Reading(step.index, now_s, value, noise))
        if step.index != start:
            at_start = np.mean([r.value for r in search.readings if r.index == start])
            spent_s += READING_S * max(1 - math.exp(at_start - value), 0.0)
    return Found(search.incumbent, search.probes, tuple(r.index for r in search.readings))


def exhaustive(read: Read, levels: int) -> Found:
    """Every level once."""
    values = [read(i) for i in range(levels)]
    return Found(int(np.argmin(values)), levels - 1, tuple(range(levels)))


def golden_section(read: Read, levels: int) -> Found:
    """Golden-section search over the levels' indices, which takes the curve for a smooth valley."""
    ratio = (math.sqrt(5) - 1) / 2
    seen: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in seen:
            seen[i] = read(i)
        return seen[i]

    low, high = 0, levels - 1
    while high - low > 2:
        a, b = round(high - ratio * (high - low)), round(low + ratio * (high - low))
        if a == b:
            b = a + 1
        if at(a) <= at(b):
            high = b
        else:
            low = a
    for i in range(low, high + 1):
        at(i)
    return Found(min(seen, key=lambda i: seen[i]), len(seen) - 1, tuple(seen))


def patience_descent(read: Read, levels: int, start: int, patience: int = 2) -> Found:
    """Down from the start, then up, each until ``patience`` levels in a row are no better than the best."""
    seen = {start: read(start)}
    for step in (-1, 1):
        worse, i = 0, start + step
        while 0 <= i < levels and worse < patience:
            better = min(seen.values())
            seen[i] = read(i)
            worse = 0 if seen[i] < better else worse + 1
            i += step
    return Found(min(seen, key=lambda i: seen[i]), len(seen) - 1, tuple(seen))
