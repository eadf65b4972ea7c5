"""The paper's tree: classify the energy-optimal clock (method B, section III-C). The only user of scikit-learn."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Array
from .nodes import Node, settled


class MissingFitterError(Exception):
    """scikit-learn cannot be loaded; the message says what to do."""


@dataclass(frozen=True)
class LabelSettings:
    """What the grid search varies; the names are scikit-learn's."""

    criterion: str = "gini"
    max_depth: int = 3
    min_samples_leaf: int = 1


GRID = tuple(
    LabelSettings(criterion, depth, leaf)
    for criterion in ("gini", "entropy")
    for depth in (1, 2, 3, 4, 5)
    for leaf in (1, 2, 3, 4)
)


def fit_labels(x: Array, cost: Array, settings: LabelSettings) -> Node:
    """A classification tree for the cheapest clock of each row, as our own nodes. Raises MissingFitterError.

    scikit-learn before 1.3 takes no unknown values, so the median of the column stands for them in fitting; the
    branch for unknown values is chosen afterwards, by cost.
    """
    classifier = _classifier(settings)
    with np.errstate(all="ignore"):
        medians = np.array([np.median(v[~np.isnan(v)]) if (~np.isnan(v)).any() else 0.0 for v in x.T])
    filled = np.where(np.isnan(x), medians, x)
    # float32 as scikit-learn has it inside, so that a threshold means the same on both sides of the export.
    classifier.fit(filled.astype(np.float32), cost.argmin(axis=1))
    return settled(_nodes(classifier.tree_, classifier.classes_, 0), x, cost)


def _nodes(tree: Any, classes: NDArray[np.int64], at: int) -> Node:
    clock = int(classes[int(tree.value[at][0].argmax())])
    if tree.children_left[at] < 0:
        return Node(clock)
    le = _nodes(tree, classes, int(tree.children_left[at]))
    gt = _nodes(tree, classes, int(tree.children_right[at]))
    return Node(clock, int(tree.feature[at]), float(tree.threshold[at]), le, gt)


def _classifier(settings: LabelSettings) -> Any:
    try:
        module = importlib.import_module("sklearn.tree")
    except ImportError as error:
        raise MissingFitterError(
            f"fitting by label needs scikit-learn ({error}): pip install 'traingov[fit]', or use --cost-sensitive"
        ) from None
    return module.DecisionTreeClassifier(
        criterion=settings.criterion,
        max_depth=settings.max_depth,
        min_samples_leaf=settings.min_samples_leaf,
        random_state=0,
    )
