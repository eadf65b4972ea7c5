"""Measured energy curves as they are remembered: ``traingov.curve/1``, one per board, workload and batch size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..values import Objective
from .prior import Known

SCHEMA = "traingov.curve/1"
OTHERS_MOST = 12
"""So many curves of other jobs make the prior: enough to know the board, few enough to take milliseconds."""
OLD_SD = 0.01
"""Relative error that a clock's energy has at least once it is only remembered."""

_LISTS = ("compute_energy_j", "input_energy_j", "time_s", "sd")


@dataclass(frozen=True)
class Curve:
    """What one sample costs at the clocks that were measured, ascending.

    ``compute_energy_j`` (GPU + CPU rails), ``input_energy_j`` (the whole board; both None where not read) and
    ``time_s`` are per sample; ``sd`` is the relative standard error of a clock's energy. ``tree_frequency_hz`` is
    where the search began, ``best_frequency_hz`` where it ended; ``gpu_utilization`` (percent) is what the tree
    was told, ``reference_time_s`` the time per sample in mode 0.
    Raises ValueError when the lists do not fit together.
    """

    board: str
    workload: str
    batch_size: int
    gpu_frequencies_hz: tuple[int, ...]
    compute_energy_j: tuple[float | None, ...]
    input_energy_j: tuple[float | None, ...]
    time_s: tuple[float, ...]
    sd: tuple[float, ...]
    tree_frequency_hz: int
    best_frequency_hz: int
    gpu_utilization: float | None = None
    reference_time_s: float | None = None
    release: str | None = None
    power_mode: str | None = None
    signature: str | None = None
    measured_at: str | None = None

    def __post_init__(self) -> None:
        hz = self.gpu_frequencies_hz
        if not hz or list(hz) != sorted(set(hz)) or hz[0] <= 0:
            raise ValueError("curve: gpu_frequencies_hz must be ascending positive numbers of Hz")
        for name in _LISTS:
            values = getattr(self, name)
            if len(values) != len(hz):
                raise ValueError(f"curve: {name} has {len(values)} values for {len(hz)} clocks")
            if not all(v is None or (math.isfinite(v) and v > 0) for v in values):
                raise ValueError(f"curve: {name} must hold positive numbers")
        if None in self.time_s or None in self.sd:
            raise ValueError("curve: time_s and sd must not hold null")

    def known(self, power: str, objective: Objective, top_hz: int) -> Known | None:
        """The curve as the prior takes it, of that cost; None without two clocks of it."""
        energies = self.compute_energy_j if power == "compute" else self.input_energy_j
        rows = [
            (math.log(hz / top_hz), cost(e, t, objective), sd)
            for hz, e, t, sd in zip(self.gpu_frequencies_hz, energies, self.time_s, self.sd, strict=True)
            if e is not None
        ]
        if len(rows) < 2:
            return None
        u, value, sd = (np.array(column) for column in zip(*rows, strict=True))
        return Known(u, value, sd)

    def joined(self, older: Curve) -> Curve:
        """This curve with the clocks that only ``older`` has, scaled to the level of those that both have.

        Itself where they share no clock. What is taken over is trusted to OLD_SD at best, however often it is.
        """
        mine = set(self.gpu_frequencies_hz)
        both = [hz for hz in older.gpu_frequencies_hz if hz in mine]
        rows = {hz: row for hz, *row in self._rows()}
        old = {hz: row for hz, *row in older._rows()}
        if not both or len(both) == len(old):
            return self

        def ratio(column: int) -> float | None:
            pairs = [(rows[hz][column], old[hz][column]) for hz in both]
            logs = [math.log(new / was) for new, was in pairs if new is not None and was is not None]
            return math.exp(sum(logs) / len(logs)) if logs else None

        scale = [ratio(column) for column in range(3)]
        for hz in set(old) - mine:
            *values, sd = old[hz]
            scaled = [None if v is None or k is None else v * k for v, k in zip(values, scale, strict=True)]
            rows[hz] = [*scaled, max(sd, OLD_SD)]
        columns = list(zip(*(rows[hz] for hz in sorted(rows)), strict=True))
        compute, board, time, error = columns
        return replace(
            self,
            gpu_frequencies_hz=tuple(sorted(rows)),
            compute_energy_j=compute,
            input_energy_j=board,
            time_s=tuple(t for t in time if t is not None),
            sd=tuple(e for e in error if e is not None),
        )

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(
            self.gpu_frequencies_hz, self.compute_energy_j, self.input_energy_j, self.time_s, self.sd, strict=True
        )

    def to_json(self) -> dict[str, Any]:
        """The file format as plain values; what is not known is left out."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items() if v is not None}
        return {"schema": SCHEMA, **plain}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Curve:
        """Read ``traingov.curve/1``. Raises ValueError naming what is wrong."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"curve: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k != "schema"}
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(f"curve: {error}") from None


def cost(energy_j: float, time_s: float, objective: Objective) -> float:
    """ln of what a sample costs: its energy, or energy times time."""
    return math.log(energy_j) + (math.log(time_s) if objective is Objective.EDP else 0.0)


def most_alike(curves: Sequence[Curve], clocks_hz: Sequence[int]) -> list[Curve]:
    """The curves to learn from, at most OTHERS_MOST: of those given first, the ones with most of the clocks."""
    table = set(clocks_hz)
    return sorted(curves, key=lambda curve: -len(table & set(curve.gpu_frequencies_hz)))[:OTHERS_MOST]
