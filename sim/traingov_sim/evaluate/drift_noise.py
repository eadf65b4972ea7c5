"""Seconds of a job as a drift detector sees them: ln(live / table) of step time and power, many jobs side by side.

Made so as not to share what the detector takes for granted (one autoregressive process, normal, of constant size,
around a constant level): three components of different memory, innovations of Student's t with five degrees of
freedom, a size that itself wanders, a table that is off by 1 % all the time, a level that wanders over hours, seconds
in which the job stalls (a data loader, a checkpoint), and seconds without any value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """``sd`` of a one-second mean, and shares and memories (correlation from second to second) of its components.

    The default has the correlation 0.7 from one second to the next; a ten-second mean varies by a fifth more than that
    of an autoregressive process with 0.7.
    """

    sd: float = 0.01
    shares: tuple[float, ...] = (0.05, 0.35, 0.60)
    memories: tuple[float, ...] = (0.0, 0.55, 0.85)
    size_sd: float = 0.2
    size_memory_s: float = 600.0
    bias: float = 0.01
    wander_sd: float = 0.005
    wander_s: float = 3600.0
    tide: float = 0.005
    stalls_a_second: float = 1 / 300
    stall_mean_s: float = 1.5
    stall_most_s: int = 6
    missing: float = 0.002
    pauses_a_second: float = 1 / 3600

    @property
    def correlation(self) -> float:
        """From one second to the next."""
        return sum(share * memory for share, memory in zip(self.shares, self.memories, strict=True))


class Jobs:
    """``jobs`` independent jobs; ``second`` gives the next second of all: [2 (time, power)][jobs], nan for none."""

    def __init__(self, jobs: int, noise: Noise, rng: np.random.Generator) -> None:
        self._n, self._noise, self._rng = jobs, noise, rng
        shape = (2, jobs)
        self._parts = rng.standard_normal((len(noise.shares), *shape))
        self._size = noise.size_sd * rng.standard_normal(shape)
        self._bias = noise.bias * rng.choice([-1.0, 1.0], shape)
        self._wander = noise.wander_sd * rng.standard_normal(shape)
        self._period_s = rng.uniform(2 * 3600, 8 * 3600, shape)
        self._phase = rng.uniform(0, 2 * math.pi, shape)
        self._stalled = np.zeros(jobs)
        self._stall = np.zeros(shape)
        self._paused = np.zeros(jobs)
        self._t = 0

    def second(self) -> Array:
        """The next second."""
        n, rng, shape = self._noise, self._rng, (2, self._n)
        self._t += 1
        t5 = rng.standard_normal((len(n.shares), *shape)) / np.sqrt(rng.chisquare(5, (len(n.shares), *shape)) / 5)
        t5 /= math.sqrt(5 / 3)
        memory = np.asarray(n.memories)[:, None, None]
        self._parts = memory * self._parts + np.sqrt(1 - memory**2) * t5
        self._size += -self._size / n.size_memory_s + n.size_sd * math.sqrt(2 / n.size_memory_s) * rng.standard_normal(
            shape
        )
        x: Array = (
            n.sd
            * np.exp(self._size - n.size_sd**2)
            * np.einsum("c,cij->ij", np.sqrt(np.asarray(n.shares)), self._parts)
        )
        self._wander += -self._wander / n.wander_s + n.wander_sd * math.sqrt(2 / n.wander_s) * rng.standard_normal(
            shape
        )
        x += self._bias + self._wander + n.tide * np.sin(2 * math.pi * self._t / self._period_s + self._phase)
        self._begin_stalls()
        x += np.where(self._stalled > 0, self._stall, 0.0)
        self._stalled = np.maximum(self._stalled - 1, 0)
        begins = rng.random(self._n) < n.pauses_a_second
        self._paused = np.where(begins, rng.integers(10, 31, self._n), np.maximum(self._paused - 1, 0))
        gone = (self._paused > 0) | (rng.random(self._n) < n.missing)
        x[:, gone] = np.nan
        return x

    def _begin_stalls(self) -> None:
        n, rng = self._noise, self._rng
        begins = (self._stalled == 0) & (rng.random(self._n) < n.stalls_a_second)
        lasts = np.minimum(rng.geometric(1 / n.stall_mean_s, self._n), n.stall_most_s)
        self._stalled = np.where(begins, lasts, self._stalled)
        slower, weaker = np.log(rng.uniform(1.3, 4.0, self._n)), np.log(rng.uniform(0.6, 0.95, self._n))
        self._stall = np.where(begins, np.stack([slower, weaker]), self._stall)
