"""The best that could be done under a changing cap, by one who knows everything. Pure.

A clairvoyant knows the true surface (step times, and window-peak power at the temperature that each point settles
at), the relation vector, and every future cap. At each change of the cap it may choose any point of the board's clock
table and of the job's batch sizes whose settled peak power lies below the cap, and no other; it holds that point until
the next change (it does not mix clocks within one cap). The clock follows at once and costs nothing. A change of the
batch size costs ``batch_change_s`` without progress, as it does the governor; stalls strike it as often. It measures
nothing, has no guard band and no profiling. Where no point fits, it runs at the point of least power. Found exactly,
by dynamic programming over cap intervals and batch sizes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .caps_over_time import CapSeries

Array = NDArray[np.float64]


def best_progress(
    rates: Array, peak_w: Array, caps: CapSeries, *, batch_change_s: float, stay: bool = False
) -> tuple[float, int]:
    """Progress over the series (in units of ``rates`` × seconds), and how often the batch size changed.

    ``rates`` and ``peak_w`` are [B, F]. ``stay``: only one batch size all the time, the best one: what following with
    the clock alone can reach.
    """
    bounds = [*(begin for begin, _ in caps.steps), caps.seconds]
    lengths = np.diff(np.minimum(bounds, caps.seconds))
    sizes = len(rates)
    least = np.unravel_index(int(np.argmin(peak_w)), peak_w.shape)
    value = np.zeros(sizes)
    changes = np.zeros(sizes, dtype=int)
    for (_, cap_w), length in zip(caps.steps, lengths, strict=True):
        if length <= 0:
            continue
        fits = np.where(peak_w < cap_w, rates, -np.inf)
        rate = fits.max(axis=1)
        if not np.isfinite(rate).any():
            rate[least[0]] = rates[least]
        gain = rate * length
        lost = np.where(np.isfinite(rate), rate, 0.0) * min(batch_change_s, length)
        if stay:
            value = value + np.where(np.isfinite(gain), gain, 0.0)  # a size that does not fit this cap waits
            continue
        source = int(np.argmax(value))
        switched = value[source] + gain - lost
        kept = value + gain
        take = switched > kept
        changes = np.where(take, changes[source] + 1, changes)
        value = np.where(take, switched, kept)
    best = int(np.argmax(value))
    return float(value[best]), int(changes[best])
