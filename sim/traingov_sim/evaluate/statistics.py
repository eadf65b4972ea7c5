"""Distributions as plain values for ``--json``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def distribution(values: ArrayLike, digits: int = 4) -> dict[str, Any]:
    """Mean, median, 5 and 95 %, least and largest of ``values``, and their number. Raises ValueError for none."""
    v = np.asarray(values, dtype=float).ravel()
    if not v.size:
        raise ValueError("distribution: no values")
    low, middle, high = np.quantile(v, [0.05, 0.5, 0.95])
    named = {"mean": v.mean(), "median": middle, "p5": low, "p95": high, "least": v.min(), "largest": v.max()}
    return {**{name: round(float(x), digits) for name, x in named.items()}, "n": int(v.size)}


def quantile_of(value: float, values: ArrayLike) -> float:
    """The share of ``values`` below ``value``, 0 to 1; equal ones (to a millionth) count half."""
    v = np.asarray(values, dtype=float).ravel()
    near = np.isclose(v, value, rtol=1e-6)
    return round(float((np.sum((v < value) & ~near) + 0.5 * near.sum()) / v.size), 3)
