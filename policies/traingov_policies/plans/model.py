"""A model of a table: time and power of every operating point from the few that were measured (method A).

Each quantity is a Gaussian process over u = ln(f / f_max) and v = ln(b / b_max) of the quantity's logarithm:

    ln y(u, v) = bilinear and quadratic terms + a smooth remainder + a cell's own oddity + noise

The terms 1, u, v, uv, u², v² have a normal prior that says what is known of any board before it is measured: time
falls with the clock and less than in proportion (host and memory do not follow it), a sample costs less in a larger
batch, power rises with the clock, faster at the top (the voltage curve), and hardly with the batch size. The smooth
remainder has a squared-exponential covariance. How large remainder and oddity are is not known beforehand: a small
grid of values is weighted by how well each explains what was measured.

A table of another release, or a vendor's, takes the place of the prior mean (``prior``): then the terms describe how
this board differs from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..lut import Lut

Array = NDArray[np.float64]

_LENGTH_U = 0.8  # e-folds of the clock over which the smooth remainder keeps its sign
_LENGTH_V = 1.2  # the same of the batch size


@dataclass(frozen=True)
class Shape:
    """What is known before a quantity is measured.

    ``mean`` and ``sd`` of the coefficients of 1, u, v, uv, u², v²; ``odd``: how likely each of _ODDITIES is.
    """

    mean: tuple[float, float, float, float, float, float]
    sd: tuple[float, float, float, float, float, float]
    odd: tuple[float, float, float, float, float]


# The constant is taken from the data: its prior is centred on their mean and wide.
TIME = Shape((0.0, -0.7, -0.15, 0.0, 0.06, 0.05), (3.0, 0.15, 0.2, 0.12, 0.05, 0.06), (0.3, 0.3, 0.2, 0.17, 0.03))
POWER = Shape((0.0, 0.55, 0.04, 0.02, 0.15, 0.0), (3.0, 0.3, 0.06, 0.05, 0.15, 0.02), (0.4, 0.4, 0.14, 0.05, 0.01))
# Differences from a prior table: a common factor, and little else.
FROM_PRIOR = Shape((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.5, 0.15, 0.06, 0.05, 0.05, 0.02), (0.35, 0.3, 0.2, 0.1, 0.05))

_REMAINDERS = (0.01, 0.03, 0.08)
_ODDITIES = (0.001, 0.006, 0.015, 0.035, 0.15)


@dataclass(frozen=True)
class Estimate:
    """Mean and standard deviation of a quantity's logarithm: arrays of one length."""

    mean: Array
    sd: Array


def coordinates(lut: Lut, reference: Lut | None = None) -> Array:
    """(u, v) of every cell of ``lut``, row by row: shape [B·F, 2]; f_max and b_max are ``reference``'s."""
    top = lut if reference is None else reference
    u = np.log(np.asarray(lut.gpu_frequencies_hz, float) / top.gpu_frequencies_hz[-1])
    v = np.log(np.asarray(lut.batch_sizes, float) / top.batch_sizes[-1])
    return np.stack([np.tile(u, len(v)), np.repeat(v, len(u))], axis=1)


def estimate(
    at: Array, known: Array, values: Array, noise: Array, *, shape: Shape, mean: Array | None = None
) -> Estimate:
    """The posterior at every row of ``at`` [n, 2], given ``values`` [m] (logarithms) at ``known`` [m, 2].

    ``noise`` [m] is the standard deviation of each value (relative, since values are logarithms). ``mean`` [n + m]:
    logarithms that a prior table expects at ``at`` and then at ``known``, in place of the terms' own mean. The
    result describes the cell's true value, its own oddity included. Raises ValueError without any value.
    """
    if len(values) == 0:
        raise ValueError("model: nothing was measured yet")
    n = len(at)
    both = np.concatenate([at, known])
    u, v = both[:, 0], both[:, 1]
    terms = np.stack([np.ones_like(u), u, v, u * v, u * u, v * v], axis=1)
    if mean is None:
        mean = terms @ np.asarray(shape.mean)
        # Centred on what was measured: the constant then only makes up for where the points lie.
        mean = mean + float(np.mean(values - mean[n:]))
    scaled = terms * np.asarray(shape.sd)
    apart = ((u[:, None] - u[None, n:]) / _LENGTH_U) ** 2 + ((v[:, None] - v[None, n:]) / _LENGTH_V) ** 2
    linear, smooth, same = scaled @ scaled[n:].T, np.exp(-0.5 * apart), apart < 1e-12
    own = (scaled[:n] ** 2).sum(axis=1)
    residual = values - mean[n:]
    weights, means, variances = [], [], []
    for remainder in _REMAINDERS:
        for oddity, likely in zip(_ODDITIES, shape.odd, strict=True):
            cross = linear + remainder**2 * smooth + oddity**2 * same
            factor = np.linalg.cholesky(cross[n:] + np.diag(noise**2 + 1e-10))
            half = np.linalg.solve(factor, cross[:n].T)
            white = np.linalg.solve(factor, residual)
            weights.append(-0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum()) + math.log(likely))
            means.append(mean[:n] + half.T @ white)
            variances.append(np.maximum(own + remainder**2 + oddity**2 - (half * half).sum(axis=0), 1e-12))
    logs = np.asarray(weights)
    w = np.exp(logs - logs.max())
    w /= w.sum()
    mixed = np.einsum("h,hn->n", w, np.asarray(means))
    spread = np.asarray(variances) + (np.asarray(means) - mixed) ** 2
    return Estimate(mixed, np.sqrt(np.einsum("h,hn->n", w, spread)))
