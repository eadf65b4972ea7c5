"""What training runs so far tell about samples to accuracy N at every batch size (method A, section 4).

The model is a Wiener process: log N is a random walk over log2 b, whose posterior mean between two measured sizes is
the straight line between them. It is thus log-log interpolation with an uncertainty that grows between its nodes and
beyond the outermost ones; with noisy runs it also draws neighbours towards each other, so that one lucky run does not
decide. How far N walks per octave differs between jobs (many curves are nearly flat), so three walks are weighed by how
well they explain the runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Runs = Mapping[int, Sequence[float | None]]
"""N of each finished run by batch size; None where the run missed the target."""

WALK_SD_PER_OCTAVE = 0.3
"""Standard deviation of log N over a doubling of the batch size. Theory has the slope of log N between 0 (small
batches) and log 2 (large ones; McCandlish et al. 2018): over one octave that bends by at most 0.17 from a straight
line, and the walk allows 0.15 there (one standard deviation in the middle)."""
WALKS = ((0.1, 0.25), (WALK_SD_PER_OCTAVE, 0.5), (0.6, 0.25))
"""(standard deviation per octave, weight before any run): flat, usual and steep curves."""
NOISE_SD = 0.1
"""Standard deviation of log N from seed to seed before any run was repeated, worth NOISE_WEIGHT repetitions."""
NOISE_WEIGHT = 2.0
POOL_WEIGHT = 3.0
"""How many repetitions the noise of all sizes together is worth when the noise of one size is judged."""
LEAST_NOISE_SD = 0.02
"""N is counted in evaluations or epochs: equal counts do not prove equal N."""


@dataclass(frozen=True)
class Belief:
    """The posterior of log N over ``batch_sizes``: ``mean`` [B], ``covariance`` [B][B], run noise ``noise_sd`` [B]."""

    batch_sizes: tuple[int, ...]
    mean: Floats
    covariance: Floats
    noise_sd: Floats

    def sd(self) -> Floats:
        """Standard deviation of log N per batch size, [B]."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


def reached(runs: Runs) -> dict[int, bool]:
    """For each batch size with a finished run: whether every run reached the target."""
    return {b: None not in of_size for b, of_size in runs.items() if len(of_size)}


def noise_sd(batch_sizes: Sequence[int], runs: Runs) -> Floats:
    """Standard deviation of log N from run to run, [B]: each size's own, drawn towards that of all, and all towards
    NOISE_SD."""
    squares, repeats = {}, {}
    for b in batch_sizes:
        logs = np.log([n for n in runs.get(b, ()) if n is not None])
        squares[b] = float(np.sum((logs - logs.mean()) ** 2)) if len(logs) else 0.0
        repeats[b] = max(0, len(logs) - 1)
    pooled = (NOISE_WEIGHT * NOISE_SD**2 + sum(squares.values())) / (NOISE_WEIGHT + sum(repeats.values()))
    own = [(POOL_WEIGHT * pooled + squares[b]) / (POOL_WEIGHT + repeats[b]) for b in batch_sizes]
    out: Floats = np.maximum(np.sqrt(np.array(own)), LEAST_NOISE_SD)
    return out


def learn(batch_sizes: Sequence[int], runs: Runs) -> Belief:
    """The posterior over ``batch_sizes`` from ``runs``; sizes with a missed run say nothing of N.

    Raises ValueError where no batch size reached the target in every run.
    """
    sizes = tuple(batch_sizes)
    nodes = [b for b, ok in reached(runs).items() if ok and b in sizes]
    if not nodes:
        raise ValueError("no batch size reached the target in every run")
    noise = noise_sd(sizes, runs)
    values = np.array([math.log(float(np.mean([n for n in runs[b] if n is not None]))) for b in nodes])
    variance = np.array([noise[sizes.index(b)] ** 2 / len(runs[b]) for b in nodes])
    fits = [_fit(np.log2(sizes), np.log2(nodes), values, variance, walk) for walk, _ in WALKS]
    evidence = np.array([fit[2] + math.log(weight) for fit, (_, weight) in zip(fits, WALKS, strict=True)])
    shares = np.exp(evidence - evidence.max())
    shares /= shares.sum()
    mean = sum((w * m for w, (m, _, _) in zip(shares, fits, strict=True)), np.zeros(len(sizes)))
    covariance = np.zeros((len(sizes), len(sizes)))
    for w, (m, c, _) in zip(shares, fits, strict=True):
        covariance += w * (c + np.outer(m - mean, m - mean))
    return Belief(sizes, mean, 0.5 * (covariance + covariance.T), noise)


def _fit(x: Floats, x_nodes: Floats, values: Floats, variance: Floats, walk: float) -> tuple[Floats, Floats, float]:
    """Posterior mean and covariance at ``x`` = log2 b under one walk, and log evidence of the values."""
    # The level of log N is unknown: a wide prior about the mean of the measured values.
    level = 25.0 + walk**2 * float(x.max() - x.min())

    def kernel(left: Floats, right: Floats) -> Floats:
        gaps: Floats = np.abs(left[:, None] - right[None, :])
        return level - 0.5 * walk**2 * gaps

    among = kernel(x_nodes, x_nodes) + np.diag(variance)
    across = kernel(x, x_nodes)
    gain = np.linalg.solve(among, across.T).T
    off = values - values.mean()
    evidence = -0.5 * float(off @ np.linalg.solve(among, off)) - 0.5 * float(np.linalg.slogdet(among)[1])
    return values.mean() + gain @ off, kernel(x, x) - gain @ across.T, evidence


def usable(batch_sizes: Sequence[int], reached_by_size: Mapping[int, bool]) -> set[int]:
    """The sizes of which N is known: trained and never missed, or between two such with no missed one in between."""
    nodes = sorted(reached_by_size)
    out = {b for b, ok in reached_by_size.items() if ok}
    for i in range(len(nodes) - 1):
        if reached_by_size[nodes[i]] and reached_by_size[nodes[i + 1]]:
            out |= {b for b in batch_sizes if nodes[i] < b < nodes[i + 1]}
    return out


def worth_trying(batch_sizes: Sequence[int], reached_by_size: Mapping[int, bool]) -> set[int]:
    """Untrained sizes that may reach the target: those that no missed size parts from every size that reached it."""
    good = [b for b, ok in reached_by_size.items() if ok]
    bad = [b for b, ok in reached_by_size.items() if not ok]
    rest = [b for b in batch_sizes if b not in reached_by_size]
    if not good:
        return set(rest)
    return {b for b in rest if any(not any(min(b, g) < m < max(b, g) for m in bad) for g in good)}
