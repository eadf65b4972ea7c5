"""Fitted trees before they become ``traingov.tree/1``: nodes over columns, prediction, pruning, the missing branch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..tree import Leaf, Split, Tree
from .data import Array, Dataset


@dataclass(frozen=True)
class Node:
    """A leaf when ``column`` is -1: clock index ``clock``. Else ``x[column] <= threshold`` goes to ``le``.

    ``missing_le``: a row whose value is not known goes to ``le``.
    """

    clock: int
    column: int = -1
    threshold: float = 0.0
    le: Node | None = None
    gt: Node | None = None
    missing_le: bool = False

    def predict(self, x: Array) -> NDArray[np.int64]:
        """Clock index for each row of ``x`` [n, columns]."""
        if self.column < 0 or self.le is None or self.gt is None:
            return np.full(len(x), self.clock)
        left = self.goes_left(x)
        return np.where(left, self.le.predict(x), self.gt.predict(x))

    def goes_left(self, x: Array) -> NDArray[np.bool_]:
        """Which rows go to ``le``."""
        value = x[:, self.column]
        return np.asarray(np.where(np.isnan(value), self.missing_le, value <= self.threshold), dtype=bool)

    def leaves(self) -> int:
        """Number of leaves."""
        return 1 if self.le is None or self.gt is None else self.le.leaves() + self.gt.leaves()


def settled(node: Node, x: Array, cost: Array) -> Node:
    """``node`` with equal leaves joined and, at each split, the missing branch of least cost.

    The rows that reached the split in fitting stand for those that will come without the feature: all of them are sent
    down either branch, and the cheaper one is taken.
    """
    if node.le is None or node.gt is None:
        return node
    left = node.goes_left(x)
    le, gt = settled(node.le, x[left], cost[left]), settled(node.gt, x[~left], cost[~left])
    if le.le is None and gt.le is None and le.clock == gt.clock:
        return le
    rows = np.arange(len(x))
    costs = [float(cost[rows, branch.predict(x)].sum()) for branch in (le, gt)]
    return Node(node.clock, node.column, node.threshold, le, gt, missing_le=costs[0] <= costs[1])


def to_tree(node: Node, data: Dataset, name: str, board: str) -> Tree:
    """The tree as ``traingov.tree/1`` has it. Thresholds are cut to four digits where that sends no row elsewhere."""

    def build(n: Node) -> Leaf | Split:
        if n.le is None or n.gt is None:
            return Leaf(data.clocks_hz[n.clock])
        missing = "le" if n.missing_le else "gt"
        feature, _, kind = data.columns[n.column].partition("=")
        if kind:  # the 0/1 column of a model type: above 0.5 is that type
            return Split(feature, 0.0, build(n.gt), build(n.le), {"le": "gt", "gt": "le"}[missing], values=(kind,))
        values = data.x[:, n.column]
        return Split(feature, _short(n.threshold, values), build(n.le), build(n.gt), missing)

    return Tree(name, board, max(data.clocks_hz), build(node))


def _short(threshold: float, values: Array) -> float:
    known = values[~np.isnan(values)]
    for digits in (2, 3, 4, 6):
        rounded = float(f"{threshold:.{digits}g}")
        if math.isfinite(rounded) and bool(((known <= rounded) == (known <= threshold)).all()):
            return rounded
    return threshold
