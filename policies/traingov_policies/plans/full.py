"""Every point of the table."""

from __future__ import annotations

from ..lut import Cell, Lut
from ..values import OperatingPoint


class FullPlan:
    """Every point of the table, each batch size from the lowest frequency up."""

    def __init__(self, lut: Lut) -> None:
        self.lut = lut

    def next_point(self) -> OperatingPoint | None:
        """The first point without a measurement."""
        return next((p for p in self.lut.points() if self.lut.cell(p).origin in (None, "predicted")), None)

    def tell(self, point: OperatingPoint, cell: Cell) -> None:
        """Put the measurement into the table."""
        self.lut = self.lut.with_cell(point, cell)

    def drop_batch(self, batch_size: int) -> None:
        """Leave ``batch_size`` out."""
        self.lut = self.lut.restricted([b for b in self.lut.batch_sizes if b != batch_size])

    def at_most(self) -> int:
        """Points without a measurement."""
        return sum(self.lut.cell(p).origin in (None, "predicted") for p in self.lut.points())
