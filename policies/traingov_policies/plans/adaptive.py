"""Profiling that measures few points: a model predicts the rest, and what decides is measured (issue 3.1, method A).

After a first point low in power, each next point is the one from which most is to be expected: the expected
improvement of the objective over the best point measured so far, times the probability that the point stays below
the cap, over ``horizon_s`` seconds of training to come, less what measuring it costs. When nothing repays its
measurement any more, the neighbours of the best point that may still beat it are measured. The choice is always a
measured point; the others are filled in as origin "predicted" with their standard deviations.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..lut import Cell, Lut
from ..relation import RelationVector
from ..values import Objective, OperatingPoint
from .chances import AdaptiveSettings, Goal
from .outlook import Outlook, is_open, look
from .view import Expected

_DONE = "adaptive_done"
_KEPT = 32  # caps of which it is remembered how much was measured: under a cap that moves each is another one
_FIELDS = ("time_s", "peak_power_w", "mean_power_w", "origin", "time_std_s", "power_std_w")


class AdaptivePlan:
    """Measures at most ``settings.max_points`` points under ``cap_w`` (see the module).

    ``relation`` weighs batch sizes (None: r = 1); one without a value is no candidate and is not measured. ``prior``
    is a vendor's or an older table: the model starts from it, and it is verified, not trusted.

    The table is the memory: which points were measured, and in ``conditions["adaptive"]`` how many for this cap,
    objective and relation. A plan made from it goes on where the one before stopped.
    """

    def __init__(
        self,
        lut: Lut,
        cap_w: float | None,
        relation: RelationVector | None = None,
        objective: Objective = Objective.TIME,
        *,
        prior: Lut | None = None,
        settings: AdaptiveSettings | None = None,
    ) -> None:
        self.cap_w = cap_w
        self._goal = Goal(cap_w, relation, objective)
        self._settings = settings or AdaptiveSettings()
        self._prior = prior
        self._last: OperatingPoint | None = None
        self._measured = lut
        self._seen: Outlook | None = None
        self._filled: Lut | None = None

    @property
    def lut(self) -> Lut:
        """The table: what was measured, and predictions of the rest once there are any."""
        if self._filled is None:
            self._filled = filled(self._measured, self._look().expected)
        return self._filled

    @property
    def best(self) -> OperatingPoint | None:
        """The best measured point that keeps the guard band, None before there is one."""
        return self._look().best

    @property
    def told(self) -> int:
        """Points measured for this cap, objective and relation."""
        counts = self._measured.conditions.get("adaptive", {})
        return int(counts.get(self._key, 0)) if isinstance(counts, dict) else 0

    def next_point(self) -> OperatingPoint | None:
        """The point whose measurement is worth most; None when none repays it or the bound is reached.

        A plan that has come to its end is marked so in the table: begun anew, it does not find another point worth
        measuring only because the job stands elsewhere.
        """
        if self.told >= self._settings.max_points or self._done_key in self._done:
            return None
        point = self._look().next_point
        if point is None and self.told:
            done = [*(mark for mark in self._done if mark != self._done_key), self._done_key][-_KEPT:]
            self._measured = replace(self._measured, conditions={**self._measured.conditions, _DONE: done})
            self._filled = None
        return point

    def tell(self, point: OperatingPoint, cell: Cell) -> None:
        """Put the measurement into the table, averaged with an earlier one of the same point, and count it."""
        table = self._measured.with_cell(point, averaged(self._measured.cell(point), cell))
        counts = table.conditions.get("adaptive", {})
        counts = {k: n for k, n in counts.items() if k != self._key} if isinstance(counts, dict) else {}
        counts = dict([*counts.items(), (self._key, self.told + 1)][-_KEPT:])
        left = [key for key in self._done if key != self._done_key]
        self._measured = replace(table, conditions={**table.conditions, "adaptive": counts, _DONE: left})
        self._last = point
        self._seen = self._filled = None

    def drop_batch(self, batch_size: int) -> None:
        """Leave ``batch_size`` out. ValueError when none is left."""
        self._measured = self._measured.restricted([b for b in self._measured.batch_sizes if b != batch_size])
        self._seen = self._filled = None

    def at_most(self) -> int:
        """What the bound leaves, where the table has so many points."""
        left = sum(is_open(self._measured.cell(p), self.cap_w) for p in self._measured.points())
        return max(0, min(self._settings.max_points - self.told, left))

    @property
    def _done(self) -> list[str]:
        marks = self._measured.conditions.get(_DONE, [])
        return [str(mark) for mark in marks] if isinstance(marks, (list, tuple)) else []

    @property
    def _done_key(self) -> str:
        """As ``_key``, for these very batch sizes and clocks, and as far ahead: a table that grew is not finished."""
        lut = self._measured
        grid = zlib.crc32(repr((lut.batch_sizes, lut.gpu_frequencies_hz)).encode())
        short = self._settings.horizon_s < AdaptiveSettings.horizon_s
        return f"{self._key}, {grid:08x}" + (f", for {self._settings.horizon_s:g} s" if short else "")

    @property
    def _key(self) -> str:
        """Names cap, objective and relation; batch sizes that were dropped do not change it."""
        goal = self._goal
        weights = "" if goal.relation is None else repr((goal.relation.batch_sizes, goal.relation.relative_samples))
        cap = "no cap" if goal.cap_w is None else f"{goal.cap_w:g} W"
        return f"{goal.objective.value}, {cap}, r {zlib.crc32(weights.encode()):08x}"

    def _look(self) -> Outlook:
        if self._seen is None:
            self._seen = look(self._measured, self._goal, self._settings, prior=self._prior, last=self._last)
        return self._seen


def averaged(old: Cell, new: Cell) -> Cell:
    """Two measurements of one point as one: each weighs as much as it is certain. Without an old one, the new."""
    if old.origin not in ("measured", None) or old.time_s is None:
        return new
    if new.peak_power_w is None:
        return old
    peak, power_std_w = _weighted(old.peak_power_w, old.power_std_w, new.peak_power_w, new.power_std_w)
    if new.time_s is None:  # given up above the cap: its power counts, its time is not known
        return replace(old, peak_power_w=peak, power_std_w=power_std_w)
    time_s, time_std_s = _weighted(old.time_s, old.time_std_s, new.time_s, new.time_std_s)
    mean, _ = _weighted(old.mean_power_w, old.power_std_w, new.mean_power_w, new.power_std_w)
    return Cell(time_s, peak, mean, "measured", time_std_s, power_std_w)


def _weighted(
    a: float | None, a_std: float | None, b: float | None, b_std: float | None
) -> tuple[float | None, float | None]:
    if a is None or b is None:
        return (b, b_std) if a is None else (a, a_std)
    if not a_std or not b_std:
        return (a + b) / 2, None
    share = a_std**2 / (a_std**2 + b_std**2)
    return (1 - share) * a + share * b, a_std * b_std / math.hypot(a_std, b_std)


def cautious(lut: Lut) -> Lut:
    """``lut`` with predicted powers raised by two of their standard deviations: for looking up what is safe."""
    if lut.origin is None or lut.power_std_w is None:
        return lut
    rows = zip(lut.peak_power_w, lut.power_std_w, lut.origin, strict=True)
    peaks = tuple(
        tuple(
            p + 2 * s if o == "predicted" and p is not None and s is not None else p
            for p, s, o in zip(*row, strict=True)
        )
        for row in rows
    )
    return replace(lut, peak_power_w=peaks)


def filled(lut: Lut, expected: Expected | None) -> Lut:
    """``lut`` with its unmeasured cells filled in from the model, as origin "predicted" with standard deviations."""
    if expected is None or expected.time is None or expected.mean is None:
        return lut
    cells = []
    for k, point in enumerate(lut.points()):
        cell = lut.cell(point)
        if (cell.origin in (None, "predicted") and cell.time_s is None) or cell.origin == "predicted":
            time, peak, mean = (float(np.exp(e.mean[k])) for e in (expected.time, expected.peak, expected.mean))
            cell = Cell(
                time,
                peak,
                min(mean, peak),
                "predicted",
                time * float(expected.time.sd[k]),
                peak * float(expected.peak.sd[k]),
            )
        cells.append(cell)
    return with_cells(lut, cells)


def with_cells(lut: Lut, cells: Sequence[Cell]) -> Lut:
    """``lut`` with other ``cells``: one for each point, in the order of ``Lut.points``."""
    wide = len(lut.gpu_frequencies_hz)

    def grid(name: str) -> Any:
        values = [getattr(cell, name) for cell in cells]
        return tuple(tuple(values[k : k + wide]) for k in range(0, len(values), wide))

    return replace(lut, **{name: grid(name) for name in _FIELDS})
