"""What a calibrated surface predicts of the cells that were held out (method A).

Held out: the joint cells of the calibration data set, and every cell of the second data set. N of the baselines'
batch sizes comes from their own cells (one N per batch size and data set); N of any other batch size between them is
log-log interpolated, and for ResNet18's batch 32 also taken from figure 2 (N(32) = 1.5 · N(8), another target).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from traingov_sim.surface import Surface, mean_power_w, peak_power_w, step_time_s

from .published import BASELINE_HZ, BATCHES, CAPS_W, FIG2_SAMPLES_RATIO, Batches, Row

CAP_NAMES = ("4.5 W", "7 W", "no cap")


@dataclass(frozen=True)
class Prediction:
    """A published cell against what a surface says; ``point`` is (b, f in Hz) of the prediction."""

    name: str
    published: float
    predicted: float
    point: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """As plain values, with the error in percent."""
        return {
            "name": self.name,
            "published": self.published,
            "predicted": round(self.predicted, 1),
            "error_percent": round(100 * (self.predicted / self.published - 1), 1),
            "batch_size": self.point[0],
            "gpu_frequency_hz": self.point[1],
        }


def pass_seconds(surface: Surface, samples: int, b: int, hz: int) -> float:
    """Seconds for one pass over ``samples`` training samples."""
    return float(step_time_s(surface, b, hz) * samples / b)


def samples_to_accuracy(
    surface: Surface, r: Row, batches: Batches, clocks_hz: tuple[int, int, int] = BASELINE_HZ
) -> dict[int, float]:
    """N in passes of the two baselines' batch sizes: the geometric mean over their cells of ``r``."""
    result = {}
    for b, cells in ((batches.baseline1, r.baseline1), (batches.baseline2, r.baseline2)):
        ratios = [
            s / pass_seconds(surface, batches.pass_samples, b, hz)
            for hz, s in zip(clocks_hz, cells, strict=True)
            if s is not None
        ]
        result[b] = math.exp(sum(math.log(x) for x in ratios) / len(ratios))
    return result


def interpolated(samples: dict[int, float], b: int) -> float:
    """N of a batch size between the two known ones, log-log."""
    (b0, n0), (b1, n1) = sorted(samples.items())
    share = math.log(b / b0) / math.log(b1 / b0)
    return float(n0 * (n1 / n0) ** share)


def highest_clock(surface: Surface, b: int, cap_w: float | None, clocks_hz: tuple[int, ...]) -> int | None:
    """The highest clock with peak power below the cap, None where there is none."""
    feasible = [hz for hz in clocks_hz if cap_w is None or peak_power_w(surface, b, hz) < cap_w]
    return max(feasible) if feasible else None


def baseline_cells(surface: Surface, r: Row, clocks_hz: tuple[int, int, int] = BASELINE_HZ) -> list[Prediction]:
    """The baselines' cells of a row, with one N per batch size taken from the same cells."""
    batches = BATCHES[r.workload]
    samples = samples_to_accuracy(surface, r, batches, clocks_hz)
    found = []
    for name, b, cells in (("1", batches.baseline1, r.baseline1), ("2", batches.baseline2, r.baseline2)):
        for cap, hz, seconds in zip(CAP_NAMES, clocks_hz, cells, strict=True):
            if seconds is not None:
                t = pass_seconds(surface, batches.pass_samples, b, hz) * samples[b]
                found.append(Prediction(f"{r.dataset} baseline {name}, {cap}", seconds, t, (b, hz)))
    return found


def joint_cells(
    surface: Surface,
    r: Row,
    clocks_hz: tuple[int, ...],
    baseline_hz: tuple[int, int, int] = BASELINE_HZ,
    samples: dict[int, float] | None = None,
) -> list[Prediction]:
    """The joint cells of a row: the least predicted time over batch sizes, each at its highest feasible clock.

    Three sets of batch sizes: the two whose N the baselines' cells give; all between them, with N interpolated;
    and for ResNet18 the two and batch 32, with N by figure 2.
    """
    batches = BATCHES[r.workload]
    known = samples_to_accuracy(surface, r, batches, baseline_hz) if samples is None else samples
    found = []
    between = {b: interpolated(known, b) for b in batches.sizes if min(known) <= b <= max(known)}
    variants = [("the baselines' batch sizes", dict(known)), ("N interpolated", {**between, **known})]
    if batches.third is not None:
        n = known[batches.baseline2] * FIG2_SAMPLES_RATIO
        variants.append((f"and {batches.third}, N of figure 2", {**known, batches.third: n}))
    for text, candidates in variants:
        for cap_name, cap, seconds in zip(CAP_NAMES, CAPS_W, r.joint, strict=True):
            best: tuple[float, tuple[int, int]] | None = None
            for b, n in candidates.items():
                hz = highest_clock(surface, b, cap, clocks_hz)
                if hz is None:
                    continue
                t = n * pass_seconds(surface, batches.pass_samples, b, hz)
                if best is None or t < best[0]:
                    best = (t, (b, hz))
            if best is not None:
                name = f"{r.dataset} joint, {cap_name} ({text})"
                found.append(Prediction(name, seconds, best[0], best[1]))
    return found


def energy_ratios(surface: Surface, r: Row) -> dict[str, float]:
    """Energy of baselines 1 and 2 over that of the joint choice per cap (section 5.3), at the published seconds
    and the clocks and batch sizes taken for them.
    """
    batches = BATCHES[r.workload]
    ratios = {}
    for k, cap in enumerate(CAP_NAMES):
        ours = r.joint[k] * mean_power_w(surface, batches.joint_batch[k], batches.joint_hz[k])
        for name, b, cells in (("1", batches.baseline1, r.baseline1), ("2", batches.baseline2, r.baseline2)):
            seconds = cells[k]
            if seconds is not None:
                ratios[f"baseline {name}, {cap}"] = seconds * mean_power_w(surface, b, BASELINE_HZ[k]) / ours
    return ratios
