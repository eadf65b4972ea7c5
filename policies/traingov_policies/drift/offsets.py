"""What training differs by from measuring: a manner of the job, noted in its table, and no drift.

While points are measured the device is synchronised at the edges of every window; while a job trains it is not, and
steps overlap a little with the work of the host. So a job with short steps trains some percent faster than its table
says, at every point a little differently. The difference is noted right after a table was measured, under
``conditions["training"]``: by point, the logarithms of time and power.
"""

from __future__ import annotations

from dataclasses import replace

from ..lut import Lut
from ..values import OperatingPoint

_KEY = "training"
MOST = 0.25  # a larger difference is no manner of a job


def offset_of(lut: Lut, point: OperatingPoint) -> tuple[float, float] | None:
    """ln(training / table) of time and power at ``point``; where it is not known, the mean of where it is.

    None where no job has trained by this table yet.
    """
    known = lut.conditions.get(_KEY)
    if not isinstance(known, dict):
        return None
    own = _pair(known.get(_name(point)))
    if own is not None:
        return own
    pairs = [pair for value in known.values() if (pair := _pair(value)) is not None]
    return (sum(t for t, _ in pairs) / len(pairs), sum(p for _, p in pairs) / len(pairs)) if pairs else None


def _pair(pair: object) -> tuple[float, float] | None:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        return None
    time, power = pair
    if not isinstance(time, (int, float)) or not isinstance(power, (int, float)):
        return None
    return (float(time), float(power)) if max(abs(time), abs(power)) <= MOST else None


def with_offset(lut: Lut, point: OperatingPoint, time: float, power: float) -> Lut:
    """``lut`` with the offset of ``point`` noted; one larger than MOST is not."""
    if max(abs(time), abs(power)) > MOST:
        return lut
    known = lut.conditions.get(_KEY)
    pairs = dict(known) if isinstance(known, dict) else {}
    pairs[_name(point)] = [round(time, 5), round(power, 5)]
    return replace(lut, conditions={**lut.conditions, _KEY: pairs})


def _name(point: OperatingPoint) -> str:
    return f"{point.batch_size} @ {point.gpu_frequency_hz}"
