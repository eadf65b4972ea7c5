"""Energy and time at the present point against mode 0, from what was measured: never from anything else.

Two sources. An energy sweep measured both points, mode 0 among them (``traingov.sweep/1``). A lookup table knows the
batch size that the job came with at the highest clock, which stands for mode 0 and is not the same: an estimate. Batch
sizes compare by samples to accuracy, so where they differ and no relation vector is known, there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .lut import Lut
from .relation import RelationVector
from .sweep import SweepRow
from .values import OperatingPoint


@dataclass(frozen=True)
class Saving:
    """Shares saved, 0.2 for a fifth less; negative where it costs more. ``energy`` is ``power``'s: compute or input.

    ``source`` is "sweep" (measured at mode 0) or "table" (an estimate), ``against`` says against what.
    """

    energy: float | None
    time: float
    power: str
    source: str
    against: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(self.__dict__)


def from_sweep(rows: Sequence[SweepRow], gpu_frequency_hz: int) -> Saving | None:
    """What ``gpu_frequency_hz`` saves against the sweep's mode 0; None where either was not measured."""
    zero = next((row for row in rows if row.gpu_frequency_hz is None), None)
    here = next((row for row in rows if row.gpu_frequency_hz == gpu_frequency_hz), None)
    if zero is None or here is None or zero.time_s <= 0:
        return None
    for power, of_zero, of_here in (
        ("input", zero.input_energy_j, here.input_energy_j),
        ("compute", zero.compute_energy_j, here.compute_energy_j),
    ):
        if of_zero and of_here is not None:
            return Saving(1 - of_here / of_zero, 1 - here.time_s / zero.time_s, power, "sweep", "mode 0")
    return None


def from_table(lut: Lut, relation: RelationVector | None, start_batch_size: int, here: OperatingPoint) -> Saving | None:
    """What ``here`` saves against ``start_batch_size`` at the table's highest clock; None where it is not known.

    Both cells have to be measured. Energy is of input power.
    """
    there = OperatingPoint(start_batch_size, lut.gpu_frequencies_hz[-1])
    weight = 1.0
    if here.batch_size != there.batch_size:
        r = {} if relation is None else dict(zip(relation.batch_sizes, relation.relative_samples, strict=True))
        r_here, r_there = r.get(here.batch_size), r.get(there.batch_size)
        if r_here is None or r_there is None:
            return None
        weight = r_here / r_there
    try:
        cells = [lut.cell(point) for point in (there, here)]
    except (KeyError, ValueError):
        return None
    old, new = cells
    if old.time_s is None or new.time_s is None or any(cell.origin not in (None, "measured") for cell in cells):
        return None
    energy = None
    if old.mean_power_w and new.mean_power_w:
        energy = 1 - weight * new.mean_power_w * new.time_s / (old.mean_power_w * old.time_s)
    against = f"batch {there.batch_size} at {there.gpu_frequency_hz / 1e6:.0f} MHz, the highest clock"
    return Saving(energy, 1 - weight * new.time_s / old.time_s, "input", "table", against)
