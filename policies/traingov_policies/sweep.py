"""Energy sweeps, ``traingov.sweep/1``: what a workload costs at each clock, as CSV (DESIGN 6, method B).

A row per (workload, clock). ``time_s`` and both energies are those of the same number of training samples in every row
of a sweep, so that rows compare: mean step time scaled, and mean power × that time (the paper's "energy is a plain
mean times time"). Compute energy is GPU rail + CPU rail, input energy the whole board's. ``gpu_utilization`` is in
percent. The clock ``mode0`` is the board's own governor: the baseline row. An empty field is a value not known.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SCHEMA = "traingov.sweep/1"
MODE0 = "mode0"
COLUMNS = (
    *("workload", "model_type", "layers", "hidden_size", "seq_len_avg", "gpu_utilization", "gpu_frequency_hz"),
    *("time_s", "compute_energy_j", "input_energy_j"),
)


@dataclass(frozen=True)
class SweepRow:
    """One row; ``gpu_frequency_hz`` None is the baseline ``mode0``. Units as in the module's text."""

    workload: str
    model_type: str | None
    layers: int | None
    hidden_size: int | None
    seq_len_avg: float | None
    gpu_utilization: float | None
    gpu_frequency_hz: int | None
    time_s: float
    compute_energy_j: float | None
    input_energy_j: float | None


def to_csv(rows: Iterable[SweepRow]) -> str:
    """The file's text, header included. Numbers are written so that reading gives the same floats back."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        fields = [getattr(row, name) for name in COLUMNS]
        if row.gpu_frequency_hz is None:
            fields[COLUMNS.index("gpu_frequency_hz")] = MODE0
        writer.writerow(["" if value is None else value for value in fields])
    return out.getvalue()


def from_csv(text: str, where: str = "sweep") -> list[SweepRow]:
    """The rows of a file. Raises ValueError naming ``where``, line and column of what is wrong."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"{where}:1: column {missing[0]!r} is missing; {SCHEMA} has {', '.join(COLUMNS)}")
    rows = []
    for record in reader:
        place = f"{where}:{reader.line_num}"
        if not record["workload"]:
            raise ValueError(f"{place}: workload is empty")
        clock = record["gpu_frequency_hz"]
        time_s = _number(record, "time_s", place)
        if time_s is None:
            raise ValueError(f"{place}: time_s is empty")
        rows.append(
            SweepRow(
                record["workload"],
                record["model_type"] or None,
                _whole(record, "layers", place),
                _whole(record, "hidden_size", place),
                _number(record, "seq_len_avg", place),
                _number(record, "gpu_utilization", place, zero=True),
                None if clock == MODE0 else _clock(record, place),
                time_s,
                _number(record, "compute_energy_j", place),
                _number(record, "input_energy_j", place),
            )
        )
    return rows


@dataclass(frozen=True)
class Curve:
    """A workload's energy over the clock: ``cost`` by clock in Hz and ``baseline`` at mode 0 (None: not measured).

    ``features`` are those of the baseline row where there is one (utilization depends on the clock, so the one at
    mode 0 counts), else of the row at the highest clock. ``cost`` is energy, or energy × time for the objective "edp".
    """

    workload: str
    model_type: str | None
    features: Mapping[str, float | None]
    cost: Mapping[int, float]
    baseline: float | None

    @property
    def best_hz(self) -> int:
        """The clock of least cost; the lower one of equal ones."""
        return min(self.cost, key=lambda hz: (self.cost[hz], hz))

    def regret(self, gpu_frequency_hz: int) -> float:
        """Share by which a clock costs more than the best one. Raises KeyError for a clock not measured."""
        return self.cost[gpu_frequency_hz] / self.cost[self.best_hz] - 1.0

    def saving(self, gpu_frequency_hz: int) -> float | None:
        """Share of the baseline's cost that a clock saves; None without a baseline."""
        return None if self.baseline is None else 1.0 - self.cost[gpu_frequency_hz] / self.baseline


FEATURE_COLUMNS = ("layers", "hidden_size", "seq_len_avg", "gpu_utilization")


def curves(rows: Sequence[SweepRow], energy: str = "compute", *, edp: bool = False) -> list[Curve]:
    """A curve per workload, in order of appearance; ``energy`` is "compute" or "input".

    Rows measured more than once are averaged. Raises ValueError, naming the workload, where a row lacks that energy or
    fewer than two clocks were measured.
    """
    by_workload: dict[str, list[SweepRow]] = {}
    for row in rows:
        by_workload.setdefault(row.workload, []).append(row)
    return [_curve(name, group, energy, edp) for name, group in by_workload.items()]


def _curve(workload: str, rows: list[SweepRow], energy: str, edp: bool) -> Curve:
    costs: dict[int | None, list[float]] = {}
    for row in rows:
        joules = row.compute_energy_j if energy == "compute" else row.input_energy_j
        if joules is None:
            raise ValueError(f"sweep of {workload}: a row has no {energy} energy; try the other --energy")
        costs.setdefault(row.gpu_frequency_hz, []).append(joules * row.time_s if edp else joules)
    mean = {hz: math.fsum(values) / len(values) for hz, values in costs.items()}
    clocks = {hz: mean[hz] for hz in sorted(hz for hz in mean if hz is not None)}
    if len(clocks) < 2:
        raise ValueError(f"sweep of {workload}: {len(clocks)} clocks measured, at least 2 are needed")
    reference = None if None in mean else max(clocks)
    own = [row for row in rows if row.gpu_frequency_hz == reference]
    features = {name: _average([getattr(row, name) for row in own]) for name in FEATURE_COLUMNS}
    return Curve(workload, own[0].model_type, features, clocks, mean.get(None))


def _average(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) / len(known) if known else None


def _number(record: Mapping[str, str | None], name: str, place: str, *, zero: bool = False) -> float | None:
    text = record[name]
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{place}: {name} must be a positive number, not {text!r}")
    return value


def _whole(record: Mapping[str, str | None], name: str, place: str) -> int | None:
    value = _number(record, name, place)
    if value is not None and value != int(value):
        raise ValueError(f"{place}: {name} must be a whole number, not {record[name]!r}")
    return None if value is None else int(value)


def _clock(record: Mapping[str, str | None], place: str) -> int:
    value = _whole(record, "gpu_frequency_hz", place)
    if value is None:
        raise ValueError(f"{place}: gpu_frequency_hz is empty: write the clock in Hz, or {MODE0}")
    return value
