"""Trees of least energy regret: what a wrong clock costs counts, not whether the label was hit.

Of all trees up to a depth, the one of least summed cost is found exactly: over a few dozen workloads every partition
that a threshold can make is tried at every node. A leaf takes the clock that minimises

    Σ cost of its rows + shrink · mean cost of all rows,

so that a leaf of few rows follows them only as far as they outweigh what holds for all, and each leaf has a price.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .data import Array
from .nodes import Node, settled

_THRESHOLDS = 24  # at most, per column: with more rows the quantiles are tried


@dataclass(frozen=True)
class RegretSettings:
    """Depth of the tree, rows that a leaf must have, and how strongly leaves are drawn to what is good for all."""

    depth: int = 2
    min_leaf: int = 2
    shrink: float = 1.0


GRID = tuple(RegretSettings(d, leaf, shrink) for d in (0, 1, 2, 3) for leaf in (1, 2, 3) for shrink in (0.0, 1.0, 3.0))


def fit_regret(x: Array, cost: Array, settings: RegretSettings) -> Node:
    """The tree of least cost on rows ``x`` [n, columns] with ``cost`` [n, clocks]. Exact up to ``settings.depth``."""
    return settled(_Exact(x, cost, settings).tree(), x, cost)


class _Exact:
    def __init__(self, x: Array, cost: Array, settings: RegretSettings) -> None:
        self._cost, self._settings = cost, settings
        self._pull = settings.shrink * cost.mean(axis=0)
        self._splits, rows = _partitions(x)
        self._left = np.array(rows, dtype=float).reshape(len(rows), len(x))
        # The leaves of depth 2 as sets of rows, [p · p, n]: on either side of the first partition, left and right of
        # the second one.
        first, second = self._left[:, None, :], self._left[None, :, :]
        sides = ((first * second, first * (1 - second)), ((1 - first) * second, (1 - first) * (1 - second)))
        self._quarters = [tuple(quarter.reshape(-1, len(x)) for quarter in side) for side in sides]

    def tree(self) -> Node:
        """The best tree over all rows."""
        return self._best(np.ones(len(self._cost)), self._settings.depth)[1]

    def _leaf(self, rows: Array) -> tuple[float, Node]:
        total = rows @ self._cost + self._pull
        clock = int(total.argmin())
        return float(total[clock]), Node(clock)

    def _best(self, rows: Array, depth: int) -> tuple[float, Node]:
        """Least value over trees of at most ``depth`` on the rows with 1 in ``rows``."""
        value, node = self._leaf(rows)
        if depth == 0 or not len(self._left) or rows.sum() < 2 * self._settings.min_leaf:
            return value, node
        if depth == 2:
            return self._two(rows, value, node)
        for p, left in enumerate(self._left):
            inside, outside = rows * left, rows * (1 - left)
            if min(inside.sum(), outside.sum()) < self._settings.min_leaf:
                continue
            if depth == 1:
                (a, le), (b, gt) = self._leaf(inside), self._leaf(outside)
            else:
                (a, le), (b, gt) = self._best(inside, depth - 1), self._best(outside, depth - 1)
            if a + b < value - 1e-12:
                value, node = a + b, self._split(p, le, gt)
        return value, node

    def _two(self, rows: Array, value: float, node: Node) -> tuple[float, Node]:
        """Depth 2 at once: for every first partition the best second one on either side."""
        p = len(self._left)
        sides = []
        for within, quarters in zip((self._left, 1 - self._left), self._quarters, strict=True):
            pairs = sum(self._values(quarter, rows) for quarter in quarters)
            pairs = np.asarray(pairs).reshape(p, p)
            second = pairs.argmin(axis=1)
            split, alone = pairs[np.arange(p), second], self._values(within, rows)
            take = split < alone - 1e-12
            sides.append((np.where(take, split, alone), np.where(take, second, -1)))
        values = sides[0][0] + sides[1][0]
        best = int(values.argmin())
        if not values[best] < value - 1e-12:
            return value, node
        children = []
        for (_, second), within in zip(sides, (self._left[best], 1 - self._left[best]), strict=True):
            inside = rows * within
            q = int(second[best])
            children.append(
                self._leaf(inside)[1]
                if q < 0
                else self._split(q, self._leaf(inside * self._left[q])[1], self._leaf(inside * (1 - self._left[q]))[1])
            )
        return float(values[best]), self._split(best, *children)

    def _values(self, members: Array, rows: Array) -> Array:
        """Least cost of a leaf for each row set in ``members`` [sets, n] among ``rows``; infinite for too few rows."""
        least = (members @ (rows[:, None] * self._cost) + self._pull).min(axis=1)
        return np.asarray(np.where(members @ rows < self._settings.min_leaf, np.inf, least))

    def _split(self, p: int, le: Node, gt: Node) -> Node:
        column, threshold = self._splits[p]
        return Node(le.clock, column, threshold, le, gt)


def _partitions(x: Array) -> tuple[list[tuple[int, float]], list[Array]]:
    """Every different partition that a threshold makes: (column, threshold) and the rows to its left.

    Unknown values stand right of every threshold.
    """
    splits: list[tuple[int, float]] = []
    rows: list[Array] = []
    seen: set[bytes] = set()
    for column in range(x.shape[1]):
        values = np.unique(x[:, column][~np.isnan(x[:, column])])
        middles = (values[1:] + values[:-1]) / 2
        if len(middles) > _THRESHOLDS:
            middles = middles[np.linspace(0, len(middles) - 1, _THRESHOLDS).round().astype(int)]
        for threshold in middles:
            left = np.where(np.isnan(x[:, column]), False, x[:, column] <= threshold)
            if left.tobytes() not in seen and left.any() and not left.all():
                seen.add(left.tobytes())
                splits.append((column, float(threshold)))
                rows.append(left.astype(float))
    return splits, rows
