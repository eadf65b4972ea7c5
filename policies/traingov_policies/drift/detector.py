"""The passive test: is a quantity that should be what the table says still that? (method A, "Validation")

A two-sided CUSUM of prewhitened residuals. What comes in is x = ln(live / table), one value a second. What the table
is off by anyway, and what wanders slowly, is followed as a level, but only within ``LEVEL_MOST``; the rest,
y = x - level, is prewhitened as e_t = y_t - rho·y_{t-1} and summed as the log-likelihood ratio of "shifted by
``shift``" against "shifted by ``tolerance``". Residuals are clipped, so that no single second decides: a stall has to
last longer than ``THRESHOLD`` over the largest summand (about nine seconds) to look like a shift.

Standard deviation and rho are estimated from differences over one and over two seconds: a shift of the level, which
is what is looked for, does not disturb them. Noise below what makes a shift of ``shift`` obvious counts as that.

All channels of a ``Detector`` are independent: a governor has two (time and power), an evaluation thousands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .settings import DriftSettings

Array = NDArray[np.float64]

THRESHOLD = 24.0  # nats; set on the tuning seeds of `traingov-sim evaluate drift`, reported on others
LEVEL_MOST = 0.018  # what a level may be off by and still be no drift
_LEVEL_S = 600.0  # memory of the level
_LEVEL_FIRST_S = 20.0  # seconds that the first guess of it, 0, counts for
_NOISE_S = 900.0  # memory of the noise
_NOISE_FIRST_S = 120.0  # seconds that the first guess of it counts for
_FIRST_SD, _FIRST_RHO = 0.01, 0.7
_RHO_LEAST, _RHO_MOST = 0.3, 0.9
_CLIP = 3.0  # standard deviations
_DOUBT = 0.4  # share of the threshold from which on the level is not followed
_JUMP = 3.5  # standard deviations of a difference, from which on it is no noise
_OBVIOUS = 2.1  # a shift of so many standard deviations of the residual is obvious enough
_LEVEL_CLIP = 2.0
_THRESHOLD_MOST = 3.0  # of the threshold, where noise is large


class Detector:
    """Tests ``channels`` series at once; ``step`` takes one value of each."""

    def __init__(self, settings: DriftSettings, channels: int, threshold: float = THRESHOLD) -> None:
        self._shift, self._tolerance = settings.shift, settings.tolerance
        self._threshold = threshold
        self.seen: Array = np.zeros(channels)
        self.level: Array = np.zeros(channels)
        self.up: Array = np.zeros(channels)
        self.down: Array = np.zeros(channels)
        first = 2 * _FIRST_SD**2
        self._one = np.full(channels, first * (1 - _FIRST_RHO))  # mean square of y_t - y_{t-1}
        self._two = np.full(channels, first * (1 - _FIRST_RHO**2))  # and of y_t - y_{t-2}
        self._last = np.full(channels, np.nan)
        self._before = np.full(channels, np.nan)

    @property
    def rho(self) -> Array:
        """Autocorrelation from one second to the next, as estimated: [channels]."""
        result: Array = np.clip(self._two / self._one - 1.0, _RHO_LEAST, _RHO_MOST)
        return result

    @property
    def sd(self) -> Array:
        """Standard deviation of the values, as estimated: [channels]."""
        result: Array = np.sqrt(self._one / (2 * (1 - self.rho)))
        return result

    def step(self, x: Array) -> NDArray[np.int8]:
        """Take x = ln(live / table) [channels], nan where there is none; 1 where it is shifted up, -1 down, else 0."""
        rho, sd = self.rho, self.sd
        here = np.isfinite(x)
        most = np.maximum(4 * sd, 1.5 * self._shift)
        y = np.where(here, np.clip(x - self.level, -most, most), np.nan)
        joined = np.isfinite(y - self._last)
        # Prewhitened; the first value after a gap stands for itself.
        residual = np.where(joined, y - rho * self._last, (1 - rho) * y)
        own, least = sd * np.sqrt(1 - rho**2), (1 - rho) * self._shift / _OBVIOUS
        scale = np.maximum(own, least)
        z = np.where(here, np.clip(residual / scale, -_CLIP, _CLIP), 0.0)
        mu0, mu1 = (1 - rho) * self._tolerance / scale, (1 - rho) * self._shift / scale
        weight, middle = mu1 - mu0, (mu0 + mu1) / 2
        self.up = np.where(here, np.maximum(0.0, self.up + weight * (z - middle)), self.up)
        self.down = np.where(here, np.maximum(0.0, self.down - weight * (z + middle)), self.down)
        self._learn(y, here, joined, sd, rho)
        # Where noise is large, what is slower than one second's correlation tells adds up: more has to be summed.
        limit = self._threshold * np.clip(own / least, 1.0, _THRESHOLD_MOST)
        return (self.up >= limit).astype(np.int8) - (self.down >= limit).astype(np.int8)

    def _learn(self, y: Array, here: NDArray[np.bool_], joined: NDArray[np.bool_], sd: Array, rho: Array) -> None:
        gain = 1 / np.minimum(_LEVEL_FIRST_S + self.seen, _LEVEL_S)
        most = np.maximum(_LEVEL_CLIP * sd, self._tolerance)
        doubt = np.maximum(self.up, self.down) > _DOUBT * self._threshold  # it may be what is looked for
        move = np.where(doubt, 0.0, gain * np.clip(y, -most, most))
        level = np.clip(self.level + np.where(here, move, 0.0), -LEVEL_MOST, LEVEL_MOST)
        moved = level - self.level
        gain = 1 / np.minimum(_NOISE_FIRST_S + self.seen, _NOISE_S)
        for differences, square, of in (
            (y - self._last, "_one", 2 * (1 - rho)),
            (y - self._before, "_two", 2 * (1 - rho**2)),
        ):
            known = joined & (np.abs(differences) <= _JUMP * np.sqrt(of) * sd)  # a stall's jumps are no noise
            old: Array = getattr(self, square)
            setattr(self, square, np.where(known, old + gain * (differences**2 - old), old))
        self._one = np.maximum(self._one, 1e-10)
        self._two = np.maximum(self._two, 1e-10)
        self.level = level
        self._before = self._last - moved
        self._last = y - moved
        self.seen = self.seen + here
