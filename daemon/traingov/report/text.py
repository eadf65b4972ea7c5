"""The report as lines of text, for a terminal, and as plain values."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..cli.times import duration, energy
from .subject import Subject
from .words import clock, comparisons, kind, not_compared, summary, title, when

_MOMENT_S = 0.1
_LEVELS = "▁▂▃▄▅▆▇█"
_WIDE = 60


def lines(subject: Subject) -> list[str]:
    """What a terminal shows: the words, power over time in one row, points, decisions."""
    run = subject.run
    out = [title(subject), kind(subject), "", *summary(subject)]
    if not comparisons(subject):
        out.append(not_compared(subject))
    row = _sparkline(subject)
    if row:
        out += ["", f"power over time, up to {max(s.most_w or 0.0 for s in run.spans):.2f} W: {row}"]
    out += ["", "points"]
    for point in run.points:
        if point.samples or point.time_s >= _MOMENT_S:
            name = f"batch {point.batch_size} at {clock(point.gpu_frequency_hz)}"
            out.append(f"  {name}: {duration(point.time_s)}, {point.samples} samples, {energy(point.input_energy_j)}")
    out += ["", "decisions"]
    for choice in run.choices:
        out.append(f"  {when(subject, choice.at_s)} {choice.kind}: {choice.text}")
        out += [f"      {reason}" for reason in (choice.reasons or "").splitlines()]
    held = [n for n in run.notices if n.text is not None]
    if held:
        out += ["", "conditions", *(f"  {when(subject, n.at_s)} {n.name}: {n.text}" for n in held)]
    return out


def plain(subject: Subject) -> dict[str, Any]:
    """All of it as JSON values; times are seconds since 1970, or since the recording's start."""
    return {
        "schema": "traingov.report/1",
        "source": subject.source,
        "kind": "simulated" if subject.virtual else "measured" if subject.told else "unknown",
        "summary": summary(subject),
        "comparisons": [dataclasses.asdict(c) for c in comparisons(subject)],
        "run": dataclasses.asdict(subject.run),
        "lut": None if subject.lut is None else subject.lut.to_json(),
        "curves": [curve.to_json() for curve in subject.curves],
        "sweep": [dataclasses.asdict(row) for row in subject.sweep],
    }


def _sparkline(subject: Subject) -> str:
    spans = subject.run.spans
    top = max((s.most_w or 0.0 for s in spans), default=0.0)
    if top <= 0:
        return ""
    size = -(-len(spans) // _WIDE)
    out = []
    for i in range(0, len(spans), size):
        known = [s.power_w for s in spans[i : i + size] if s.power_w is not None]
        out.append(_LEVELS[min(7, int(8 * sum(known) / len(known) / top))] if known else " ")
    return "".join(out)
