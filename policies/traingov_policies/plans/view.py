"""What the measured cells of a table let one expect of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..lut import Lut
from .model import FROM_PRIOR, POWER, TIME, Estimate, coordinates, estimate

_GIVEN_UP_SD = 0.02  # a peak noted when a point was given up is a lower bound: so much may be missing


@dataclass(frozen=True)
class Expected:
    """Time, peak and mean power of every cell as the model sees them (logarithms, flat [B·F]).

    ``time`` and ``mean`` are None where every point so far was given up above the cap.
    """

    time: Estimate | None
    peak: Estimate
    mean: Estimate | None


def expect(lut: Lut, prior: Lut | None = None, of: Lut | None = None) -> Expected | None:
    """What the measured cells of ``lut`` let one expect of every cell of ``of`` (default: of ``lut`` itself).

    ``prior`` is a table to start from in place of what is known of any board. None before any cell has a power.
    """
    points = list(lut.points())
    cells = [lut.cell(p) for p in points]
    timed = [i for i, c in enumerate(cells) if c.time_s and c.peak_power_w and c.origin != "predicted"]
    powered = [i for i, c in enumerate(cells) if c.peak_power_w and c.origin != "predicted"]
    if not powered:
        return None
    target = of or lut
    at, all_known = coordinates(target), coordinates(lut, target)
    from_prior = None if prior is None else expect(prior, of=lut)

    def fit(which: list[int], values: list[float], sds: list[float], quantity: str) -> Estimate:
        shape, mean = (TIME if quantity == "time" else POWER), None
        own: Estimate | None = None if from_prior is None else getattr(from_prior, quantity)
        if own is not None:
            shape, mean = FROM_PRIOR, np.concatenate([own.mean, own.mean[which]])
        return estimate(at, all_known[which], np.log(np.array(values)), np.array(sds), shape=shape, mean=mean)

    scale = target.samples / lut.samples
    time_sds = [relative(cells[i].time_std_s, cells[i].time_s) for i in timed]
    power_sds = [relative(cells[i].power_std_w, cells[i].peak_power_w) for i in powered]
    peak_sds = [sd if cells[i].time_s else max(sd, _GIVEN_UP_SD) for i, sd in zip(powered, power_sds, strict=True)]
    mean_sds = [relative(cells[i].power_std_w, cells[i].peak_power_w) for i in timed]
    peak = fit(powered, [cells[i].peak_power_w or 0.0 for i in powered], peak_sds, "peak")
    if not timed:
        return Expected(None, peak, None)
    return Expected(
        fit(timed, [(cells[i].time_s or 0.0) * scale for i in timed], time_sds, "time"),
        peak,
        fit(timed, [cells[i].mean_power_w or cells[i].peak_power_w or 0.0 for i in timed], mean_sds, "mean"),
    )


def relative(sd: float | None, value: float | None) -> float:
    """Relative standard deviation; 0 where none is stated."""
    return 0.0 if not sd or not value else sd / value
