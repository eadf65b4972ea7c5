"""Fitting decision trees to energy sweeps (method B): by label as the paper does, or by energy regret.

Offline only: the governor evaluates the files that come out without this package. ``labels`` alone needs scikit-learn,
and loads it when it is used.
"""

from .data import FEATURES, Dataset, dataset
from .labels import MissingFitterError
from .nodes import Node, to_tree
from .search import Fitted, Score, grid_search

__all__ = [
    "FEATURES",
    "Dataset",
    "Fitted",
    "MissingFitterError",
    "Node",
    "Score",
    "dataset",
    "grid_search",
    "to_tree",
]
