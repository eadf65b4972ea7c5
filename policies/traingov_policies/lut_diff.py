"""What differs between two lookup tables, cell by cell, and whether the choice would."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from .lut import Grid, Lut
from .values import OperatingPoint

QUANTITIES = ("time_s", "peak_power_w", "mean_power_w")


@dataclass(frozen=True)
class GridDifference:
    """Relative differences ``new / old − 1`` of one quantity over the cells that both tables have.

    ``cells`` has the common points in the old table's order, None where either lacks the value (or the old is 0).
    """

    quantity: str
    cells: tuple[tuple[OperatingPoint, float | None], ...]

    @property
    def compared(self) -> tuple[tuple[OperatingPoint, float], ...]:
        """The cells with a difference."""
        return tuple((point, d) for point, d in self.cells if d is not None)

    @property
    def largest(self) -> tuple[OperatingPoint, float] | None:
        """The cell with the largest absolute difference; None where none was compared."""
        return max(self.compared, key=lambda entry: abs(entry[1]), default=None)

    @property
    def mean(self) -> float | None:
        """Mean difference, with its sign: a bias."""
        return fmean(d for _, d in self.compared) if self.compared else None

    @property
    def mean_absolute(self) -> float | None:
        """Mean absolute difference."""
        return fmean(abs(d) for _, d in self.compared) if self.compared else None

    def to_json(self) -> dict[str, Any]:
        """Plain values, the cells too."""
        largest = self.largest
        return {
            "compared": len(self.compared),
            "mean": self.mean,
            "mean_absolute": self.mean_absolute,
            "largest": None if largest is None else {**vars(largest[0]), "difference": largest[1]},
            "cells": [{**vars(point), "difference": d} for point, d in self.compared],
        }


@dataclass(frozen=True)
class LutDifference:
    """``only_old`` and ``only_new`` count points that the other table does not have at all."""

    grids: tuple[GridDifference, ...]
    only_old: int
    only_new: int


def lut_difference(old: Lut, new: Lut) -> LutDifference:
    """Compare two tables at their common points.

    ``time_s`` is compared per sample, so that tables made for different ``samples`` compare.
    """
    common = [
        p for p in old.points() if p.batch_size in new.batch_sizes if p.gpu_frequency_hz in new.gpu_frequencies_hz
    ]
    grids = []
    for quantity in QUANTITIES:
        scale = old.samples / new.samples if quantity == "time_s" else 1.0
        cells = []
        for point in common:
            before, after = _value(old, quantity, point), _value(new, quantity, point)
            cells.append((point, scale * after / before - 1 if before and after is not None else None))
        grids.append(GridDifference(quantity, tuple(cells)))
    return LutDifference(tuple(grids), len(list(old.points())) - len(common), len(list(new.points())) - len(common))


def _value(lut: Lut, quantity: str, point: OperatingPoint) -> float | None:
    grid: Grid = getattr(lut, quantity)
    i, j = lut.index(point)
    return grid[i][j]
