"""The gradient-noise scale (McCandlish et al. 2018, arXiv:1812.06162), a check on a relation vector that does not fit.

A training run can estimate, from gradients it computes anyway, the batch size B_simple = tr(Σ) / |G|² at which noise
and signal of the gradient are equal (Σ: covariance of one sample's gradient, G: the true gradient). Below it N hardly
depends on the batch size; beyond it N grows in proportion: N(b) ∝ 1 + b / B. Where a fetched vector says otherwise, it
is of another task. This is a hint, not a vector: the law is for a learning rate tuned at each batch size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .relation import RelationVector


@dataclass(frozen=True)
class NoiseScale:
    """Estimates from many steps: |G|² and tr(Σ), and ``batch_size`` B_simple.

    None where |G|² is not distinguishable from 0: the noise drowns the gradient, more steps are needed.
    """

    squared_gradient: float
    trace: float
    batch_size: float | None


def noise_scale(small_batch: int, small: Sequence[float], large_batch: int, large: Sequence[float]) -> NoiseScale:
    """The noise scale from squared gradient norms at two batch sizes (McCandlish et al., appendix A.1).

    ``small`` are |G_b|² of single gradients over ``small_batch`` samples (such as those of the micro-batches that are
    accumulated), ``large`` over ``large_batch`` (their mean): E|G_b|² = |G|² + tr(Σ)/b. Both parts are averaged over
    the steps before the ratio is taken, since the ratio of averages is far less biased. Raises ValueError.
    """
    if not 1 <= small_batch < large_batch:
        raise ValueError(f"noise scale: needs two batch sizes, the smaller first, not {small_batch} and {large_batch}")
    if not small or not large or not all(math.isfinite(x) and x >= 0 for x in (*small, *large)):
        raise ValueError("noise scale: squared gradient norms must be numbers of at least 0, one or more of each size")
    mean_small, mean_large = math.fsum(small) / len(small), math.fsum(large) / len(large)
    squared = (large_batch * mean_large - small_batch * mean_small) / (large_batch - small_batch)
    trace = (mean_small - mean_large) / (1 / small_batch - 1 / large_batch)
    if squared <= 0:
        return NoiseScale(squared, trace, None)
    return NoiseScale(squared, trace, max(0.0, trace) / squared)


def expected_samples(batch_size: float, noise_batch_size: float) -> float:
    """N(b) up to a factor: 1 + b / B (McCandlish et al., section 2.3). ``noise_batch_size`` B > 0."""
    if noise_batch_size <= 0:
        raise ValueError(f"noise scale: must be above 0, not {noise_batch_size}")
    return 1.0 + batch_size / noise_batch_size


def disagreement(relation: RelationVector, noise_batch_size: float) -> float | None:
    """How far r and the noise scale disagree: the largest factor between their ratios r(b)/r(b'), at least 1.

    Beyond about 2 the vector should be doubted (the scale itself is good to a factor, and drifts upward as training
    goes on). None where fewer than two batch sizes are candidates.
    """
    pairs = [(b, r) for b, r in zip(relation.batch_sizes, relation.relative_samples, strict=True) if r is not None]
    if len(pairs) < 2:
        return None
    logs = [math.log(r) - math.log(expected_samples(b, noise_batch_size)) for b, r in pairs]
    return math.exp(max(logs) - min(logs))
