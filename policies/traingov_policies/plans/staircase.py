"""The paper's profiling under a known cap (method A, "staircase")."""

from __future__ import annotations

from ..lut import Cell, Lut
from ..values import OperatingPoint
from .full import FullPlan


class StaircasePlan(FullPlan):
    """The paper's profiling when the cap is known (method A, "staircase").

    The largest batch size climbs from the lowest frequency to the first one that is not below the cap. Each smaller
    batch size starts one step above the highest feasible frequency of the one before (power rises with the batch, so
    what was feasible stays so) and climbs on; only when that first step is infeasible is the step below measured too.
    The paper's rule measures at most 2B + F − 2 points, and so does this one, mostly fewer. Where power is not
    monotone and that step is infeasible as well, it descends as far as the bound leaves room.

    Without a cap only the highest frequency of each batch size is measured: B points.
    """

    def __init__(self, lut: Lut, cap_w: float | None) -> None:
        super().__init__(lut)
        self.cap_w = cap_w
        self.told = 0
        b, f = len(lut.batch_sizes), len(lut.gpu_frequencies_hz)
        self._bound = b if cap_w is None else 2 * b + f - 2

    def tell(self, point: OperatingPoint, cell: Cell) -> None:
        """Put the measurement into the table."""
        super().tell(point, cell)
        self.told += 1

    def next_point(self) -> OperatingPoint | None:
        """The first point on the staircase whose feasibility or time is not known."""
        if self.told >= self._bound:
            return None
        top = len(self.lut.gpu_frequencies_hz) - 1
        if self.cap_w is None:
            column = [OperatingPoint(b, self.lut.gpu_frequencies_hz[top]) for b in reversed(self.lut.batch_sizes)]
            return next((p for p in column if self._unknown(p)), None)
        start = 0
        for smaller, b in reversed(list(enumerate(self.lut.batch_sizes))):
            wanted, highest = self._climb(b, start, smaller)
            if wanted is not None:
                return wanted
            start = min(top, highest + 1)
        return None

    def _climb(self, batch_size: int, start: int, smaller: int) -> tuple[OperatingPoint | None, int]:
        """The next unknown point of one batch size, or (None, index of its highest feasible frequency, −1 if none).

        ``smaller`` batch sizes are still to come; each may need two points besides the climb to the top.
        """
        clocks = self.lut.gpu_frequencies_hz
        points = [OperatingPoint(batch_size, f) for f in clocks]
        j = start
        while j < len(points):
            if self._unknown(points[j]):
                return points[j], -1
            if not self._feasible(points[j]):
                break
            j += 1
        # points[j] is infeasible or off the table; the highest feasible one is below: measured, or to be measured.
        j -= 1
        while j >= 0:
            if self._unknown(points[j]):
                room = self._bound - self.told - 2 * smaller - (len(points) - 1 - j)
                return (points[j], -1) if j == start - 1 or room > 0 else (None, j)
            if self._feasible(points[j]):
                return None, j
            j -= 1
        return None, -1

    def _unknown(self, point: OperatingPoint) -> bool:
        cell = self.lut.cell(point)
        if cell.origin == "failed":
            return False
        if cell.origin in (None, "predicted"):
            return True
        # A point given up early is known to reach the power noted; under a higher cap it has to be measured.
        given_up = cell.time_s is None and cell.peak_power_w is not None
        return given_up and (self.cap_w is None or (cell.peak_power_w or 0.0) < self.cap_w)

    def _feasible(self, point: OperatingPoint) -> bool:
        cell = self.lut.cell(point)
        return (
            cell.time_s is not None
            and cell.peak_power_w is not None
            and (self.cap_w is None or cell.peak_power_w < self.cap_w)
        )

    def at_most(self) -> int:
        """What the paper's bound, 2B + F − 2 (B without a cap), leaves."""
        return self._bound - self.told
