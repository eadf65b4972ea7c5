"""A report's subject from what the service keeps: STATE/history.sqlite, and the tables and curves beside it.

Read only: a damaged file is passed over, and it is the service that sets it aside.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from traingov_policies.lut import Lut
from traingov_policies.search.curves import Curve
from traingov_policies.sweep import from_csv
from traingov_policies.values import Board

from ..data import data_dir
from ..history.reading import HistoryError, details, job_names, reading, rows, runs
from ..history.records import CapUse, Choice, Notice, PointUse, Run, Span
from ..store import LutStore, load_relations, slug
from .subject import ReportError, Subject

_Read = TypeVar("_Read")


def from_state(state_dir: Path, job: str | None) -> Subject:
    """The newest run of ``job`` (a job, a workload, or a run's number; None: of any). Raises ReportError."""
    path = state_dir / "history.sqlite"
    try:
        with reading(path) as connection:
            found = runs(connection, job, limit=1)
            if not found:
                names = ", ".join(job_names(connection)) or "none yet"
                what = "no run" if job is None else f"no run of {job!r}"
                raise ReportError(f"{what} in the history; its jobs are: {names}")
            row = found[0]
            run = _run(row, details(connection, row["run"]), rows(connection, "timeline", row["run"]))
            mode0 = {
                other["run"]: use
                for other in runs(connection, run.workload, limit=200)
                if _same(other, run) and (use := _mode0(rows(connection, "points", other["run"]))) is not None
            }
    except HistoryError as error:
        raise ReportError(str(error)) from None
    board = Board(run.board, run.release, run.power_mode, ())
    lut = _read(LutStore.place(state_dir / "lut", board, run.signature), _lut)
    folder = LutStore.place(state_dir / "curves", board, run.signature).parent
    curves = [
        curve
        for file in sorted(folder.glob("*.json"))
        if (curve := _read(file, _curve)) is not None and (curve.signature, curve.board) == (run.signature, run.board)
    ]
    sweep_file = LutStore.place(state_dir / "sweeps", board, run.signature).parent / f"{slug(run.signature)}.csv"
    sweep = _read(sweep_file, lambda text: tuple(from_csv(text))) or ()
    relations = load_relations([state_dir / "relations", data_dir() / "relations"])
    return Subject(
        run=run, source=f"run {row['run']} of {path}", wall=True,
        lut=lut if lut is not None and lut.board == run.board else None,
        curves=sorted(curves, key=lambda curve: curve.batch_size), sweep=sweep,
        relation=relations.get(run.workload), in_mode0=mode0,
    )  # fmt: skip


def _run(row: dict[str, Any], more: dict[str, list[dict[str, Any]]], timeline: list[dict[str, Any]]) -> Run:
    plain = {k: v for k, v in row.items() if k not in ("run", "started_at", "updated_at", "ended_at", "batch_sizes")}
    ended = row["ended_at"]
    spans = tuple(Span(**{k: v for k, v in span.items() if k != "number"}) for span in timeline)
    return Run(
        **plain, batch_sizes=tuple(row["batch_sizes"]), started_s=_seconds(row["started_at"]),
        updated_s=_seconds(row["updated_at"]), ended_s=None if ended is None else _seconds(ended),
        points=tuple(PointUse(**point) for point in more["points"]),
        caps=tuple(CapUse(at_s=_seconds(cap.pop("at")), **cap) for cap in more["caps"]),
        choices=tuple(Choice(at_s=_seconds(choice.pop("at")), **choice) for choice in more["choices"]),
        notices=tuple(Notice(_seconds(n["at"]), n["name"], n["text"]) for n in more["notices"]), spans=spans,
    )  # fmt: skip


def _same(other: dict[str, Any], run: Run) -> bool:
    names = ("signature", "board", "release", "power_mode", "root")
    return all(other[name] == getattr(run, name) for name in names) and not other["shared"]


def _mode0(points: list[dict[str, Any]]) -> PointUse | None:
    """The longest use of the board's own governor, if samples were trained and energy was read during it."""
    uses = [PointUse(**p) for p in points if p["gpu_frequency_hz"] is None and p["samples"] and p["input_energy_j"]]
    return max(uses, key=lambda use: use.samples, default=None)


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()


def _lut(text: str) -> Lut:
    return Lut.from_json(json.loads(text))


def _curve(text: str) -> Curve:
    return Curve.from_json(json.loads(text))


def _read(path: Path, parse: Callable[[str], _Read]) -> _Read | None:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
