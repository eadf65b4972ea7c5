"""How far a surface is from the published facts: a residual per fact, in units of its tolerance.

misfit = Σ residual² over the facts that are searched for (calibration and choice). Residuals are computed for a
whole population of parameter sets at once, through the same generator that the board runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .facts import (
    CHECK,
    BestClock,
    BusyShare,
    CappedTimeRatio,
    Case,
    Cell,
    ClockAbove,
    Fact,
    HighestClock,
    Irregularity,
    LevelPower,
    SafeClock,
    Samples,
    Saving,
    Shape,
    StepTime,
    TimeRatio,
)
from .generator import StepArrays, grid

Array = NDArray[np.float64]

# A feasible clock must lie this far below its cap, an infeasible one this far above, for a residual of 0: a surface
# on the edge would be of no use. A residual of 1 is still a violation by the stated tolerance.
MARGIN_W = 0.02
MARGIN_PERCENT = 0.5
MARGIN_RATIO = 0.01


@dataclass(frozen=True)
class Tables:
    """A population's tables for one case: arrays of shape [population, B, F].

    ``sample_s`` is seconds per sample, ``peak_w`` the peak of the 1 s mean. ``irregular`` is [population, F].
    """

    case: Case
    steps: StepArrays
    sample_s: Array
    peak_w: Array
    irregular: Array

    def index(self, batch_size: int, frequency_hz: int) -> tuple[int, int]:
        """Row and column of an operating point."""
        return self.case.batch_sizes.index(batch_size), self.case.clocks_hz.index(frequency_hz)

    def at(self, values: Array, batch_size: int, frequency_hz: int) -> Array:
        """``values`` at an operating point, one per member of the population."""
        i, j = self.index(batch_size, frequency_hz)
        return values[:, i, j]

    def energy_j(self) -> Array:
        """Compute energy (GPU and CPU rails) per step at the first batch size: [population, F]."""
        return np.asarray(self.steps.mean_compute_w() * self.steps.time_s())[:, 0, :]

    def highest(self, batch_size: int, cap_w: float) -> Array:
        """Column of the highest feasible clock per member; -1 where there is none."""
        feasible = self.peak_w[:, self.case.batch_sizes.index(batch_size), :] < cap_w
        last = feasible.shape[1] - 1 - np.argmax(feasible[:, ::-1], axis=1)
        return np.asarray(np.where(feasible.any(axis=1), last, -1))


def tables(case: Case, parameters: Mapping[str, Any], max_frequency_hz: int) -> Tables:
    """Evaluate a population: ``parameters`` are arrays of shape [population] (or numbers)."""
    wide = {name: np.atleast_1d(np.asarray(v, dtype=float))[:, None, None] for name, v in parameters.items()}
    batches = np.array(case.batch_sizes, dtype=float)
    shares = np.array(case.clocks_hz, dtype=float) / max_frequency_hz
    population = max(v.shape[0] for v in wide.values())
    irregular = np.ones((population, len(case.clocks_hz)))
    for j, hz in enumerate(case.clocks_hz):
        if (name := irregularity_name(hz)) in wide:
            irregular[:, j] = wide[name][:, 0, 0]
    steps = grid(wide, batches, shares, irregular[:, None, :])
    shape = (population, len(batches), len(shares))
    sample = np.broadcast_to(steps.time_s() / batches[:, None], shape)
    return Tables(case, steps, sample, np.broadcast_to(steps.peak_input_w(), shape), irregular)


def irregularity_name(frequency_hz: int) -> str:
    """Name of the parameter that holds the irregularity of a clock."""
    return f"irregular_{frequency_hz}"


def samples_to_accuracy(t: Tables, group: str) -> Array:
    """N in passes: what makes T_s · N meet the group's cells best (geometric mean), one per member."""
    logs, known = [], None
    for fact in t.case.facts:
        m = fact.measure
        if isinstance(m, Cell) and m.group == group:
            seconds_per_pass = t.at(t.sample_s, m.batch_size, m.frequency_hz) * t.case.pass_samples
            logs.append(np.log(m.seconds / seconds_per_pass))
            known = m.known_samples
    if not logs:
        raise KeyError(f"no cells of group {group!r} for {t.case.workload} on {t.case.board}")
    if known is not None:
        return np.full(t.sample_s.shape[0], known)
    return np.asarray(np.exp(np.mean(logs, axis=0)))


def _cell(t: Tables, m: Cell, tolerance: float) -> Array:
    seconds = t.at(t.sample_s, m.batch_size, m.frequency_hz) * t.case.pass_samples
    return np.asarray(np.log(seconds * samples_to_accuracy(t, m.group) / m.seconds) / tolerance)


def _samples(t: Tables, m: Samples, tolerance: float) -> Array:
    return np.asarray(np.log(samples_to_accuracy(t, m.group) / m.passes) / tolerance)


def _ratio(t: Tables, m: TimeRatio, tolerance: float) -> Array:
    ratio = t.at(t.sample_s, *m.first) / t.at(t.sample_s, *m.second)
    return np.log(ratio / m.ratio) / tolerance


def _hinge(violation: Array, tolerance: float, margin: float = MARGIN_W) -> Array:
    return np.maximum(0.0, violation + margin) / (tolerance + margin)


def _highest(t: Tables, m: HighestClock, tolerance: float) -> Array:
    i, j = t.index(m.batch_size, m.frequency_hz)
    row = t.peak_w[:, i, :]
    violation = row[:, j] - m.cap_w
    if not m.at_least and j + 1 < row.shape[1]:
        violation = np.maximum(violation, m.cap_w - row[:, j + 1 :].min(axis=1))
    return _hinge(violation, tolerance)


def _clock_above(t: Tables, m: ClockAbove, tolerance: float) -> Array:
    higher = t.peak_w[:, t.case.batch_sizes.index(m.higher), :]
    lower = t.peak_w[:, t.case.batch_sizes.index(m.lower), :]
    # Some clock is feasible for the one, and neither it nor any above it for the other.
    ceiling = np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1]
    return _hinge(np.maximum(higher - m.cap_w, m.cap_w - ceiling).min(axis=1), tolerance)


def _safe(t: Tables, m: SafeClock, tolerance: float) -> Array:
    return _hinge(t.peak_w[:, :, t.case.clocks_hz.index(m.frequency_hz)].max(axis=1) - m.cap_w, tolerance)


def _capped_ratio(t: Tables, m: CappedTimeRatio, tolerance: float) -> Array:
    times = []
    for b in (m.first, m.second):
        column = np.maximum(0, t.highest(b, m.cap_w))
        row = t.sample_s[:, t.case.batch_sizes.index(b), :]
        times.append(np.take_along_axis(row, column[:, None], axis=1)[:, 0])
    ratio = times[0] / times[1]
    return _hinge(np.maximum(np.log(m.low / ratio), np.log(ratio / m.high)), tolerance, MARGIN_RATIO)


def _step_time(t: Tables, m: StepTime, tolerance: float) -> Array:
    return np.log(t.at(t.sample_s, m.batch_size, m.frequency_hz) * m.batch_size / m.seconds) / tolerance


def _saving(t: Tables, m: Saving, tolerance: float) -> Array:
    energy = t.energy_j()
    saved = 100 * (1 - energy[:, t.case.clocks_hz.index(m.frequency_hz)] / energy[:, -1])
    return (saved - m.percent) / tolerance


def _best(t: Tables, m: BestClock, tolerance: float) -> Array:
    energy = t.energy_j()
    inside = np.array([hz in m.frequencies_hz for hz in t.case.clocks_hz])
    worse = 100 * (energy[:, inside].min(axis=1) / energy[:, ~inside].min(axis=1) - 1)
    return _hinge(worse, tolerance, MARGIN_PERCENT)


def _busy(t: Tables, m: BusyShare, tolerance: float) -> Array:
    busy: Array = np.asarray(t.steps.gpu_busy_share())[:, 0, -1]
    return (100 * busy - m.percent) / tolerance


def _level(t: Tables, m: LevelPower, tolerance: float) -> Array:
    watts = t.steps.mean_compute_w() if m.compute else t.steps.mean_input_w()
    return (t.at(np.broadcast_to(watts, t.peak_w.shape), m.batch_size, m.frequency_hz) - m.watts) / tolerance


def _shape(t: Tables, m: Shape, tolerance: float) -> Array:
    watts = np.asarray(t.steps.mean_input_w())[:, t.case.batch_sizes.index(m.batch_size), :]
    row = watts[:, [t.case.clocks_hz.index(hz) for hz in m.frequencies_hz]]
    scaled = (row - row[:, :1]) / (row[:, -1:] - row[:, :1])
    return np.asarray(np.abs(scaled - np.array(m.values)).max(axis=1) / tolerance)


def _irregularity(t: Tables, m: Irregularity, tolerance: float) -> Array:
    return np.asarray((np.sqrt(np.mean((t.irregular - 1) ** 2, axis=1)) - m.rms) / tolerance)


_MEASURES: dict[type, Callable[[Tables, Any, float], Array]] = {
    Cell: _cell,
    Samples: _samples,
    TimeRatio: _ratio,
    HighestClock: _highest,
    ClockAbove: _clock_above,
    SafeClock: _safe,
    CappedTimeRatio: _capped_ratio,
    StepTime: _step_time,
    Saving: _saving,
    BestClock: _best,
    BusyShare: _busy,
    LevelPower: _level,
    Shape: _shape,
    Irregularity: _irregularity,
}


def residual(t: Tables, fact: Fact) -> Array:
    """The fact's residual in units of its tolerance, one per member of the population."""
    return _MEASURES[type(fact.measure)](t, fact.measure, fact.tolerance)


def residuals(t: Tables) -> Array:
    """Residuals of every fact of the case: [facts, population]."""
    return np.stack([residual(t, fact) for fact in t.case.facts])


def misfit(t: Tables, values: Array | None = None) -> Array:
    """Σ residual² over the facts that are searched for, one per member."""
    values = residuals(t) if values is None else values
    searched = np.array([fact.kind != CHECK for fact in t.case.facts])
    return np.asarray((values[searched] ** 2).sum(axis=0))


_MARGINS: dict[type, float] = {
    HighestClock: MARGIN_W,
    ClockAbove: MARGIN_W,
    SafeClock: MARGIN_W,
    CappedTimeRatio: MARGIN_RATIO,
    BestClock: MARGIN_PERCENT,
}


def strict_misfit(t: Tables) -> Array:
    """The misfit with inequalities in units of their margin: below 1 every one of them holds without tolerance.

    What a shipped surface is searched with; the stated tolerances are for judging it, and for families.
    """
    scale = np.array([(f.tolerance + m) / m if (m := _MARGINS.get(type(f.measure))) else 1.0 for f in t.case.facts])
    return misfit(t, residuals(t) * scale[:, None])
