"""A small Gaussian process over a board's clocks, in NumPy: what is believed of one job's energy curve.

The curve is g[i] = ln(cost at clock i), with ``mean`` and ``covariance`` before anything was measured. A reading adds
two errors of its own: noise, and drift of the job's whole level since the first reading (data and temperature
change; a random walk). Readings taken close to each other in time share their drift, so a difference between clocks
that were visited in turn is known better than either level: that is what interleaving buys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Gauss-Hermite quadrature of 15 nodes for a standard normal (Abramowitz and Stegun 25.4.46, x times the root of two):
# those above 0, and 0 itself. A table, since numpy.polynomial takes 0.7 MB in the service.
_ABOVE = (
    (6.363947888829839, 2.1531059307602043e-09),
    (5.190093591304781, 1.4978155716931977e-06),
    (4.1962077112690155, 0.00014142763708854477),
    (3.2890824243987664, 0.003928782634853378),
    (2.432436827009758, 0.04352954135285795),
    (1.6067100690287297, 0.2241371742044197),
    (0.799129068324548, 0.5826965579477281),
)
_MIDDLE = 0.7977583071397493
_NODES = np.array([*(-x for x, _ in _ABOVE), 0.0, *(x for x, _ in reversed(_ABOVE))])
_WEIGHTS = np.array([*(w for _, w in _ABOVE), _MIDDLE, *(w for _, w in reversed(_ABOVE))])
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Reading:
    """ln(cost) as one window showed it: clock index, mid time in seconds, value, and its standard error."""

    index: int
    t_s: float
    value: float
    sd: float


@dataclass(frozen=True)
class Belief:
    """A normal distribution over the curve: ``mean`` [n] and ``covariance`` [n, n] of ln(cost)."""

    mean: Array
    covariance: Array

    @property
    def sd(self) -> Array:
        """Standard deviation of each clock's ln(cost), [n]."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def given(self, readings: Sequence[Reading], drift_per_s: float = 0.0) -> tuple[Belief, float]:
        """The belief after ``readings`` and how likely they were (a logarithm).

        ``drift_per_s`` is the variance that the level gains in a second.
        """
        if not readings:
            return self, 0.0
        at = np.array([r.index for r in readings])
        t = np.array([r.t_s for r in readings])
        y = np.array([r.value for r in readings])
        noise = np.array([r.sd**2 for r in readings])
        # The walk is tied to the last reading: the curve is wanted as it is now.
        back = t.max() - t
        own = drift_per_s * np.minimum(back[:, None], back[None, :])
        among = self.covariance[np.ix_(at, at)] + own + np.diag(noise + 1e-12)
        cross = self.covariance[:, at]
        factor = np.linalg.cholesky(among)
        half = np.linalg.solve(factor, cross.T)
        white = np.linalg.solve(factor, y - self.mean[at])
        likelihood = -0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum())
        return Belief(self.mean + half.T @ white, self.covariance - half.T @ half), likelihood

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Mean and standard deviation of g[first] − g[second]."""
        c = self.covariance
        variance = c[first, first] + c[second, second] - 2 * c[first, second]
        return float(self.mean[first] - self.mean[second]), float(np.sqrt(max(variance, 0.0)))


@dataclass(frozen=True)
class Mixture:
    """Beliefs that may each be the right one, with their ``weights`` (sum 1): a job may be unlike the others."""

    weights: tuple[float, ...]
    beliefs: tuple[Belief, ...]

    def given(self, readings: Sequence[Reading], drift_per_s: float = 0.0) -> Belief:
        """One belief after ``readings``: each is updated, weighted by how well it foresaw them, and all are matched."""
        updated = [belief.given(readings, drift_per_s) for belief in self.beliefs]
        logs = np.log(self.weights) + np.array([likelihood for _, likelihood in updated])
        w = np.exp(logs - logs.max())
        w /= w.sum()
        means = np.array([belief.mean for belief, _ in updated])
        mean = w @ means
        away = means - mean
        covariance = np.einsum("k,kij->ij", w, np.array([belief.covariance for belief, _ in updated]))
        return Belief(mean, covariance + np.einsum("k,ki,kj->ij", w, away, away))


def gains(belief: Belief, allowed: Sequence[int], noise_sd: float) -> Array:
    """What one more reading at each of ``allowed`` is expected to lower the least expected ln(cost) by (≥ 0).

    The knowledge gradient: after a reading at i the means move by c_i·z with z standard normal and
    c_i = Σ[:, i] / √(Σ_ii + noise²); the expectation of the new minimum is taken over z by quadrature.
    """
    index = np.asarray(allowed)
    mean = belief.mean[index]
    c = belief.covariance[np.ix_(index, index)]
    moves = c / np.sqrt(np.maximum(np.diag(c), 1e-16) + noise_sd**2)[None, :]
    # [candidate, node]: the least mean after each outcome.
    least = (mean[:, None, None] + moves[:, :, None] * _NODES).min(axis=0)
    return np.asarray(np.maximum(mean.min() - least @ _WEIGHTS, 0.0))
