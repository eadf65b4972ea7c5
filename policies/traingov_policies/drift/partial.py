"""Partial re-profiling: a few points are measured again, the others follow by ln(new / old) over (ln b, ln f).

Points are asked for one after another: the present one, then those that the interpolation knows least of. Where the
first three changed alike, the whole table is scaled and nothing more is measured. Otherwise more points are measured,
at most a share of the table, the last two of them to verify: they are compared with what was expected of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..lut import Cell, Lut
from ..plans.adaptive import averaged
from ..plans.model import Array, Estimate, Shape, coordinates, estimate
from ..plans.view import relative
from ..select import below_cap
from ..values import OperatingPoint
from .settings import DriftSettings

# Of ln(new / old): a common factor, a slope over clock and batch size, a little of everything else.
_SHAPE = Shape((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.5, 0.15, 0.15, 0.08, 0.1, 0.06), (0.5, 0.3, 0.14, 0.05, 0.01))
_LEAST_SD = 0.003
_FIRST = 3  # points after which it is known whether all changed alike
_VERIFY = 2
_SURE = 2.0

CONFIRMED, RESCALED, PARTIAL, FAILED = "confirmed", "rescaled", "partial", "failed"


@dataclass(frozen=True)
class Remeasured:
    """One point measured again: the new cell, and logarithms of new / old with their standard deviations."""

    point: OperatingPoint
    cell: Cell
    time: float
    time_sd: float
    peak: float
    mean: float
    power_sd: float


@dataclass(frozen=True)
class Outcome:
    """What came of it: one of CONFIRMED, RESCALED, PARTIAL, FAILED; the table to use from now on; why, in words."""

    result: str
    lut: Lut
    text: str


class PartialPlan:
    """``lut`` is the table in doubt; ``first`` are the point that runs and those that raised the doubt.

    ``best`` chooses from a table (None: nothing). Only points with a measured time are measured again, and none but
    ``first`` that would last longer than ``probe_most_s``, if there are enough others; every value of the table is
    corrected.
    """

    def __init__(
        self,
        lut: Lut,
        cap_w: float | None,
        first: Sequence[OperatingPoint],
        settings: DriftSettings,
        best: Callable[[Lut], OperatingPoint | None],
    ) -> None:
        self.lut, self._cap_w, self._settings, self._best = lut, cap_w, settings, best
        known = [p for p in lut.points() if lut.cell(p).time_s and lut.cell(p).origin != "predicted"]
        self._first = [p for p in dict.fromkeys(first) if p in known]
        quick = [p for p in known if _lasts_s(lut, p) <= settings.probe_most_s]
        self._points = known if len(quick) < _FIRST + _VERIFY else [p for p in known if p in quick or p in self._first]
        cells = len(lut.batch_sizes) * len(lut.gpu_frequencies_hz)
        self.most = max(_FIRST + _VERIFY, math.floor(settings.points_share * cells))
        self._done: list[Remeasured] = []
        self._out: set[OperatingPoint] = set()
        self._above: dict[OperatingPoint, float] = {}
        self._misses: list[tuple[OperatingPoint, float, float]] = []
        self._expected: tuple[OperatingPoint, float, float] | None = None
        self._at = coordinates(lut)
        self._row = {p: k for k, p in enumerate(lut.points())}

    @property
    def measured(self) -> int:
        """Points measured so far."""
        return len(self._done)

    def next_point(self) -> OperatingPoint | None:
        """The point to measure now; None when there is an outcome."""
        self._expected = None
        for point in self._first:
            if point in self._safe(None):
                return point
        if not self._done or self._alike() or self._missed() or self.measured >= self.most:
            return None if self._done else self._farthest(None)
        known = self._estimates()
        if self.measured < self.most - _VERIFY:
            return self._farthest(known)
        return self._to_verify(known)

    def tell(self, point: OperatingPoint, cell: Cell) -> None:
        """The new measurement of ``point``; one without a time (given up above the cap) is left out."""
        old = self.lut.cell(point)
        if not cell.time_s or not cell.peak_power_w or not old.time_s or not old.peak_power_w:
            self.leave_out(point, cell.peak_power_w)
            return
        time = math.log(cell.time_s / old.time_s)
        new_mean, old_mean = cell.mean_power_w or cell.peak_power_w, old.mean_power_w or old.peak_power_w
        found = Remeasured(
            point,
            cell,
            time,
            max(_LEAST_SD, math.hypot(relative(cell.time_std_s, cell.time_s), relative(old.time_std_s, old.time_s))),
            math.log(cell.peak_power_w / old.peak_power_w),
            math.log(new_mean / old_mean),
            max(
                _LEAST_SD,
                math.hypot(relative(cell.power_std_w, cell.peak_power_w), relative(old.power_std_w, old.peak_power_w)),
            ),
        )
        if self._expected is not None and self._expected[0] == point:
            _, expected_time, expected_peak = self._expected
            self._misses.append((point, found.time - expected_time, found.peak - expected_peak))
        self._done.append(found)

    def set_cap(self, cap_w: float | None) -> None:
        """Another cap is in force: points above it are not measured."""
        self._cap_w = cap_w

    def allows(self, point: OperatingPoint) -> bool:
        """Whether ``point`` may be measured under the present cap, as the table has it."""
        return point in self._safe(None)

    def of(self, point: OperatingPoint) -> Remeasured | None:
        """The new measurement of ``point``, if there is one."""
        return next((d for d in self._done if d.point == point), None)

    def leave_out(self, point: OperatingPoint, above_w: float | None = None) -> None:
        """``point`` cannot be measured now; ``above_w``: since its power is above that."""
        self._out.add(point)
        if above_w is not None:
            self._above[point] = above_w

    def drop_batch(self, batch_size: int) -> None:
        """The job cannot use ``batch_size``: its points are not measured."""
        self._out |= {p for p in self._points if p.batch_size == batch_size}

    def outcome(self) -> Outcome:
        """To be called when ``next_point`` has none."""
        s, n = self._settings, self.measured
        if not self._done:
            return Outcome(FAILED, self.lut, "no point of the table could be measured again")
        if self._alike():
            time, peak, mean = (self._common(name) for name in ("time", "peak", "mean"))
            said = f"time {_percent(time)}, power {_percent(peak)} at {_count(n)} alike"
            if max(abs(time), abs(peak)) <= s.tolerance + self._noise():
                return Outcome(CONFIRMED, self.lut, f"the table holds: {said}")
            flat = np.zeros(len(self._row))
            spread = np.full(len(self._row), self._noise())
            known = [Estimate(flat + value, spread) for value in (time, peak, mean)]
            return Outcome(RESCALED, self._corrected(*known), f"the whole table is scaled: {said}")
        missed = self._missed()
        if missed is not None:
            return Outcome(FAILED, self.lut, missed)
        known = list(self._estimates())
        text = f"{_count(n)} measured again, the others follow"
        if self._misses:
            worst = max(abs(t) for _, t, _ in self._misses)
            text += f"; {len(self._misses)} verified within {100 * worst:.1f} %"
        else:  # a small table: nothing is left that may be measured under this cap
            text += "; no other point of the table may be measured now"
        return Outcome(PARTIAL, self._corrected(*known), text)

    # -- inside --------------------------------------------------------------------------------------------------
    def _common(self, name: str) -> float:
        """Mean of a logarithm over the measured points, the more certain ones weighing more."""
        sds = np.array([d.time_sd if name == "time" else d.power_sd for d in self._done])
        values = np.array([getattr(d, name) for d in self._done])
        return float(np.average(values, weights=1 / sds**2))

    def _noise(self) -> float:
        return float(np.mean([max(d.time_sd, d.power_sd) for d in self._done]))

    def _alike(self) -> bool:
        """Whether the first points, spread over the table, all changed by the same factor."""
        if len(self._done) < min(_FIRST, len(self._left()) + len(self._done)):
            return False
        if self._misses:
            return False
        for name in ("time", "peak"):
            common = self._common(name)
            for d in self._done:
                sd = d.time_sd if name == "time" else d.power_sd
                if abs(getattr(d, name) - common) > self._settings.uniform / 2 + _SURE * sd * 0.5:
                    return False
        return True

    def _missed(self) -> str | None:
        """Which verification went wrong, in words. All but the last may be off twice as much: they are learned from."""
        for k, (point, time, peak) in enumerate(self._misses):
            found = self.of(point)
            assert found is not None
            last = k == len(self._misses) - 1 and self.measured >= self.most
            allowed = self._settings.verified * (1 if last else 2)
            for noun, miss, sd in (("time", time, found.time_sd), ("power", peak, found.power_sd)):
                if abs(miss) > allowed + sd:
                    return f"{point}: {noun} is {_percent(miss)} off what was expected after {_count(self.measured)}"
        return None

    def _left(self) -> list[OperatingPoint]:
        return [p for p in self._points if p not in self._out and self.of(p) is None]

    def _estimates(self) -> tuple[Estimate, Estimate, Estimate]:
        known = self._at[[self._row[d.point] for d in self._done]]

        def fit(values: list[float], sds: list[float]) -> Estimate:
            return estimate(self._at, known, np.array(values), np.array(sds), shape=_SHAPE)

        powers = [d.power_sd for d in self._done]
        return (
            fit([d.time for d in self._done], [d.time_sd for d in self._done]),
            fit([d.peak for d in self._done], powers),
            fit([d.mean for d in self._done], powers),
        )

    def _safe(self, known: tuple[Estimate, Estimate, Estimate] | None) -> list[OperatingPoint]:
        if self._cap_w is None:
            return self._left()
        out = []
        for p in self._left():
            cell, k = self.lut.cell(p), self._row[p]
            more = 0.0 if known is None else float(known[1].mean[k]) + min(0.03, float(known[1].sd[k]))
            if below_cap((cell.peak_power_w or 0.0) * math.exp(more) + (cell.power_std_w or 0.0), self._cap_w):
                out.append(p)
        return out

    def _farthest(self, known: tuple[Estimate, Estimate, Estimate] | None) -> OperatingPoint | None:
        """The safe point that is least known."""
        safe = self._safe(known)
        if not safe:
            return None
        if known is None:
            return safe[-1]
        doubt: Array = known[0].sd + 0.5 * known[1].sd
        return max(safe, key=lambda p: (float(doubt[self._row[p]]), p))

    def _to_verify(self, known: tuple[Estimate, Estimate, Estimate]) -> OperatingPoint | None:
        """What would be chosen now, where it was not measured again yet; else the point that is least known."""
        chosen = self._best(self._corrected(*known))
        safe = self._safe(known)
        point = chosen if chosen in safe else self._farthest(known)
        if point is not None:
            k = self._row[point]
            self._expected = (point, float(known[0].mean[k]), float(known[1].mean[k]))
        return point

    def _corrected(self, time: Estimate, peak: Estimate, mean: Estimate) -> Lut:
        """The table with every value brought up to date; measured cells take their new measurements as well."""
        lut = self.lut
        new = {d.point: d.cell for d in self._done}
        for point in self.lut.points():
            k, old = self._row[point], self.lut.cell(point)
            if old.time_s is None and old.peak_power_w is None:
                continue
            t, p, m = (math.exp(float(e.mean[k])) for e in (time, peak, mean))
            cell = Cell(
                None if old.time_s is None else old.time_s * t,
                None if old.peak_power_w is None else max(old.peak_power_w * p, self._above.get(point, 0.0)),
                None if old.mean_power_w is None else old.mean_power_w * m,
                old.origin,
                _widened(old.time_s, old.time_std_s, t, float(time.sd[k])),
                _widened(old.peak_power_w, old.power_std_w, p, float(peak.sd[k])),
            )
            if point in new:
                cell = averaged(cell, new[point]) if self._alike() else new[point]
            lut = lut.with_cell(point, cell)
        drifts = lut.conditions.get("drifts", 0)
        count = (drifts if isinstance(drifts, int) else 0) + 1
        return replace(lut, conditions={**lut.conditions, "drifts": count})


def _lasts_s(lut: Lut, point: OperatingPoint) -> float:
    """Seconds that measuring ``point`` takes at the least: two steps."""
    return 2 * (lut.cell(point).time_s or 0.0) * point.batch_size / lut.samples


def _widened(value: float | None, std: float | None, factor: float, sd: float) -> float | None:
    """The standard deviation of ``value · factor``, where the factor's is ``sd`` (relative)."""
    if value is None:
        return None
    return value * factor * math.hypot(relative(std, value), sd)


def _percent(log_ratio: float) -> str:
    return f"{100 * math.expm1(log_ratio):+.1f} %"


def _count(number: int) -> str:
    return f"{number} point" + ("" if number == 1 else "s")
