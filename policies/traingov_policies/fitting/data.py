"""From sweeps to what a tree is fitted to: features, labels and costs of workloads (method B, section III-C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..sweep import Curve

Array = NDArray[np.float64]
FEATURES = ("model_type", "layers", "hidden_size", "seq_len_avg", "gpu_utilization")


@dataclass(frozen=True)
class Dataset:
    """n workloads over k clocks.

    ``x`` [n, columns]: a 0/1 column per model type but the last ("model_type=bert"), then the numeric features; nan
    where a feature is not known. ``cost`` [n, k]: cost over the best clock's, minus 1 (0 at the best). ``labels`` [n]:
    index of the best clock. ``saving`` [n, k]: share of the baseline saved, nan without one. ``groups`` [n]: what
    stands before the first slash of the workload's name (the model), for grouped folds.
    """

    workloads: tuple[str, ...]
    groups: tuple[str, ...]
    columns: tuple[str, ...]
    x: Array
    clocks_hz: tuple[int, ...]
    cost: Array
    saving: Array

    @property
    def labels(self) -> NDArray[np.int64]:
        """The paper's labels: the energy-optimal clock of each workload, as an index."""
        return np.asarray(self.cost.argmin(axis=1))

    def __len__(self) -> int:
        return len(self.workloads)


def dataset(curves: Sequence[Curve], features: Sequence[str] = FEATURES) -> Dataset:
    """The data of ``curves``. Raises ValueError for fewer than three workloads, or where no clock is common to all.

    Clocks that not every workload was measured at are left out: their cost is unknown.
    """
    if len(curves) < 3:
        raise ValueError(f"{len(curves)} workloads are too few to fit a tree: sweep at least 3")
    common = set(curves[0].cost).intersection(*(c.cost for c in curves[1:]))
    if len(common) < 2:
        raise ValueError("fewer than 2 clocks were measured for every workload: sweep the same clocks everywhere")
    clocks = tuple(sorted(common))
    columns: list[str] = []
    values: list[list[float]] = [[] for _ in curves]
    for name in features:
        if name == "model_type":
            kinds = sorted({c.model_type for c in curves if c.model_type is not None})
            for kind in kinds[:-1]:
                columns.append(f"model_type={kind}")
                for row, c in zip(values, curves, strict=True):
                    row.append(np.nan if c.model_type is None else float(c.model_type == kind))
            continue
        columns.append(name)
        for row, c in zip(values, curves, strict=True):
            value = c.features[name]
            row.append(np.nan if value is None else value)
    cost = np.array([[c.cost[hz] for hz in clocks] for c in curves])
    baseline = np.array([[np.nan if c.baseline is None else c.baseline] for c in curves])
    return Dataset(
        tuple(c.workload for c in curves),
        tuple(c.workload.split("/")[0] for c in curves),
        tuple(columns),
        np.array(values, dtype=float).reshape(len(curves), len(columns)),
        clocks,
        cost / cost.min(axis=1, keepdims=True) - 1.0,
        1.0 - cost / baseline,
    )


def folds(data: Dataset, kind: str) -> list[NDArray[np.int64]]:
    """Test rows of each fold: "loo", one workload a fold; "grouped", one group a fold (no model in both parts)."""
    if kind == "loo":
        return [np.array([i]) for i in range(len(data))]
    names = sorted(set(data.groups))
    if len(names) < 2:
        raise ValueError(f"grouped folds need at least 2 groups, there is only {names[0]!r}: use --folds loo")
    return [np.array([i for i, g in enumerate(data.groups) if g == name]) for name in names]
