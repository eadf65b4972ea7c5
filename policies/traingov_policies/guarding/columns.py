"""What a table holds of one batch size, for the guard: measured cells only."""

from __future__ import annotations

from ..lut import Lut
from ..values import OperatingPoint
from .diagnosis import Column


def columns_of(table: Lut, batch_size: int) -> tuple[Column, ...]:
    """Time and mean power at each clock at which ``batch_size`` was measured."""
    found = []
    for point in table.points():
        if point.batch_size == batch_size:
            cell = table.cell(point)
            if cell.origin in (None, "measured") and cell.time_s and cell.mean_power_w:
                found.append(Column(point.gpu_frequency_hz, cell.time_s, cell.mean_power_w))
    return tuple(found)


def power_of(table: Lut | None, batch_size: int | None, hz: int) -> float | None:
    """The measured peak power in watts; None where there is none."""
    if table is None or batch_size not in table.batch_sizes or hz not in table.gpu_frequencies_hz:
        return None
    cell = table.cell(OperatingPoint(batch_size, hz))
    return cell.peak_power_w if cell.origin in (None, "measured") else None
