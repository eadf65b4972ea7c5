"""Points between two known ones: what a job may be put on unmeasured while its cap changes.

A table is measured under a cap or two; under others the best clock lies between two measured ones, and to run at the
lower of them until somebody measures wastes what lies between. Interpolation is another thing than prediction at
large: power between two known powers of one batch size is known to a percent or two, and its uncertainty is stated, so
that ``robust.choose`` keeps the guard band that it asks for.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..lut import Cell, Lut
from ..values import OperatingPoint
from .adaptive import filled, with_cells
from .view import expect


def between(lut: Lut) -> Lut:
    """What was measured in ``lut``, and its points between two known powers of one batch size; all others unknown.

    The latter are as the model has them: origin "predicted", with standard deviations. A point that was given up above
    a lower cap has a known power and no time: it is one of them where a clock above it has a known power too.
    """
    expected = expect(lut)
    guess = lut if expected is None else filled(_open(lut), expected)
    wide, cells = len(lut.gpu_frequencies_hz), [lut.cell(point) for point in lut.points()]
    kept = []
    for row in range(len(lut.batch_sizes)):
        own = cells[row * wide : (row + 1) * wide]
        powered = [j for j, c in enumerate(own) if c.peak_power_w and c.origin != "predicted"]
        timed = any(is_measured(c) for c in own)
        for j, (cell, hz) in enumerate(zip(own, lut.gpu_frequencies_hz, strict=True)):
            inside = timed and min(powered) < j < max(powered) and cell.origin != "failed"
            if is_measured(cell):
                kept.append(cell)
            else:
                kept.append(guess.cell(OperatingPoint(lut.batch_sizes[row], hz)) if inside else Cell())
    return with_cells(lut, kept)


def is_measured(cell: Cell) -> bool:
    """Whether a cell holds a measured time and power (a table without origins holds measurements)."""
    return cell.origin in ("measured", None) and cell.time_s is not None and cell.peak_power_w is not None


def refreshed(lut: Lut) -> Lut:
    """``lut`` with its predictions made anew from what is measured now."""
    return filled(lut, expect(lut))


def in_table_terms(cell: Cell, scale: float, offset: tuple[float, float]) -> Cell:
    """What was seen while training, as the table has it: times ``scale``, and without the offset of training.

    ``offset``: by what the logarithms of time and power differ while the job trains (``drift.offsets``). The peak stays
    as it was seen: training is what has to stay below the cap.
    """
    time, power = scale * math.exp(-offset[0]), math.exp(-offset[1])

    def by(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    return replace(
        cell,
        time_s=by(cell.time_s, time),
        time_std_s=by(cell.time_std_s, time),
        mean_power_w=by(cell.mean_power_w, power),
    )


def _open(lut: Lut) -> Lut:
    """``lut`` with only its measured cells: the rest is for the model to fill in."""
    cells = [lut.cell(point) for point in lut.points()]
    return with_cells(lut, [c if is_measured(c) else Cell() for c in cells])
