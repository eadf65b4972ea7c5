"""Grid search with exhaustive folds, and what a fitted tree is worth: accuracy, confusion, energy regret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import labels, regret
from .data import Array, Dataset, folds
from .nodes import Node

Fit = Callable[[Array, Array], Node]
Choices = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """Of choices [n] on held-out workloads: share of labels hit, share of energy above the best clock's (mean, worst),
    and mean share of the baseline's energy saved (None without a baseline).
    """

    accuracy: float
    regret_mean: float
    regret_worst: float
    saving_mean: float | None

    @classmethod
    def of(cls, data: Dataset, choices: Choices) -> Score:
        """Score of one clock index per workload."""
        rows = np.arange(len(data))
        cost, saving = data.cost[rows, choices], data.saving[rows, choices]
        known = saving[~np.isnan(saving)]
        return cls(
            float((choices == data.labels).mean()),
            float(cost.mean()),
            float(cost.max()),
            float(known.mean()) if known.size else None,
        )


@dataclass(frozen=True)
class _Method:
    """A way to fit: its grid, and what a score is judged by (less is better, first to last)."""

    name: str
    grid: Sequence[Any]
    fit: Callable[[Array, Array, Any], Node]
    first: Callable[[Score], tuple[float, ...]]


_LABELS = _Method("labels", labels.GRID, labels.fit_labels, lambda score: (-score.accuracy, score.regret_mean))
_REGRET = _Method("regret", regret.GRID, regret.fit_regret, lambda score: (score.regret_mean,))


@dataclass(frozen=True)
class Fitted:
    """The tree over all rows with the settings that did best in cross-validation, and how it did there.

    ``score``: with the settings chosen on the same folds, as the paper does it. ``nested``: with settings chosen anew
    inside each fold, which is free of that choice's optimism (None: not asked for). ``training``: on its own rows.
    ``majority``: what the fold's commonest label does (FFG). ``confusion``: best clock → chosen clock → workloads.
    """

    method: str
    folds: str
    settings: labels.LabelSettings | regret.RegretSettings
    node: Node
    choices: tuple[int, ...]
    score: Score
    nested: Score | None
    training: Score
    majority: Score
    confusion: dict[int, dict[int, int]]


def grid_search(
    data: Dataset, fold_kind: str = "loo", *, cost_sensitive: bool = False, nested: bool = False,
    told: Callable[[int, int], None] | None = None,
) -> Fitted:  # fmt: skip
    """Fit by label (scikit-learn) or, ``cost_sensitive``, by regret. Raises MissingFitterError, ValueError.

    By label the most accurate settings win, then those of least regret; by regret those of least regret. Ties go to the
    tree of fewer leaves, then the earlier in the grid. ``told`` gets (settings tried, of how many) after each.
    """
    parts = folds(data, fold_kind)
    method = _REGRET if cost_sensitive else _LABELS
    if told is not None:
        method = _counted(method, len(method.grid) * (1 + nested * len(parts)), told)
    fit = method.fit
    settings, choices = _best(data, parts, method)
    node = fit(data.x, data.cost, settings)
    confusion: dict[int, dict[int, int]] = {}
    for truth, chosen in zip(data.labels, choices, strict=True):
        row = confusion.setdefault(data.clocks_hz[truth], {})
        row[data.clocks_hz[chosen]] = row.get(data.clocks_hz[chosen], 0) + 1
    return Fitted(
        method.name,
        fold_kind,
        settings,
        node,
        tuple(data.clocks_hz[c] for c in choices),
        Score.of(data, choices),
        Score.of(data, _nested(data, parts, fold_kind, method)) if nested else None,
        Score.of(data, node.predict(data.x)),
        Score.of(data, cross_validated(data, parts, _majority)),
        confusion,
    )


def _counted(method: _Method, total: int, told: Callable[[int, int], None]) -> _Method:
    """``method``, which tells of each judged setting."""
    done = 0

    def first(score: Score) -> tuple[float, ...]:
        nonlocal done
        done += 1
        told(done, total)
        return method.first(score)

    return replace(method, first=first)


def cross_validated(data: Dataset, parts: Sequence[NDArray[np.int64]], fit: Fit) -> Choices:
    """The clock index for each workload, from a tree that has not seen its fold."""
    choices = np.zeros(len(data), dtype=np.int64)
    for test in parts:
        train = np.setdiff1d(np.arange(len(data)), test)
        choices[test] = fit(data.x[train], data.cost[train]).predict(data.x[test])
    return choices


def _best(data: Dataset, parts: Sequence[NDArray[np.int64]], method: _Method) -> tuple[Any, Choices]:
    """The settings that do best on the held-out folds, and what they chose there."""
    found: list[tuple[tuple[float, ...], Any, Choices]] = []
    for number, settings in enumerate(method.grid):

        def fit(x: Array, cost: Array, chosen: Any = settings) -> Node:
            return method.fit(x, cost, chosen)

        choices = cross_validated(data, parts, fit)
        first = method.first(Score.of(data, choices))
        key = (*(round(v, 9) for v in first), fit(data.x, data.cost).leaves(), number)
        found.append((key, settings, choices))
    _, settings, choices = min(found, key=lambda entry: entry[0])
    return settings, choices


def _nested(data: Dataset, parts: Sequence[NDArray[np.int64]], fold_kind: str, method: _Method) -> Choices:
    choices = np.zeros(len(data), dtype=np.int64)
    for test in parts:
        inner = subset(data, np.setdiff1d(np.arange(len(data)), test))
        settings, _ = _best(inner, folds(inner, fold_kind), method)
        choices[test] = method.fit(inner.x, inner.cost, settings).predict(data.x[test])
    return choices


def subset(data: Dataset, rows: NDArray[np.int64]) -> Dataset:
    """The dataset of some of its workloads."""
    return replace(
        data,
        workloads=tuple(data.workloads[i] for i in rows),
        groups=tuple(data.groups[i] for i in rows),
        x=data.x[rows],
        cost=data.cost[rows],
        saving=data.saving[rows],
    )


def _majority(x: Array, cost: Array) -> Node:
    """FFG: the label that most workloads have; of equally common ones the cheaper."""
    counts = np.bincount(cost.argmin(axis=1), minlength=cost.shape[1])
    common = np.flatnonzero(counts == counts.max())
    return Node(int(common[cost[:, common].mean(axis=0).argmin()]))
