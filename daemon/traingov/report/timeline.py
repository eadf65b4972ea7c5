"""The timeline of a run as SVG: power with cap and window mean, clock, batch size, and what happened when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..history.records import Span
from ..history.trail import joined
from .subject import Subject
from .svg import Scale, esc, num, path, steps, table, text, ticks, time_ticks
from .words import clock

_ROWS_MOST = 60
_MARKS_MOST = 400


@dataclass(frozen=True)
class Mark:
    """Something that happened: "guard", "choice" or "condition"."""

    at_s: float
    kind: str
    text: str


def marks(subject: Subject) -> list[Mark]:
    """Guard steps, choices and conditions of the run, in seconds since it began; the newest where there are many."""
    run, began = subject.run, subject.run.started_s
    out = [
        Mark(c.at_s - began, "guard" if c.kind.startswith("guard-") else "choice", f"{c.kind}: {c.text}")
        for c in run.choices
        if c.kind not in ("measured", "search-reading", "sweep-point")
    ]
    out += [Mark(n.at_s - began, "condition", f"{n.name}: {'over' if n.text is None else n.text}") for n in run.notices]
    return sorted(out, key=lambda mark: mark.at_s)[-_MARKS_MOST:]


def chart(subject: Subject, width: int, name: str) -> str:
    """The SVG, ``width`` pixels wide; ``name`` tells its ids apart from another chart's. The run has spans."""
    spans, run = subject.run.spans, subject.run
    narrow = width < 600
    left, right = (40, 8) if narrow else (80, 16)
    end_s = max(spans[-1].start_s + spans[-1].width_s, 1e-3)
    x = Scale(0.0, end_s, left, width - right)
    top, parts = 22, []
    powers = [v for s in spans for v in (s.least_w, s.most_w, s.cap_w) if v is not None]
    tall, low = (150, 70) if narrow else (200, 80)
    if any(s.readings for s in spans):
        margin = 0.05 * (max(powers) - min(powers)) or 0.5
        y = Scale(max(0.0, min(powers) - margin), max(powers) + margin, top + tall, top)
        parts += _axis(x, y, "input power, W", ticks(y.low, y.high, 5))
        parts.append(path(_envelope(spans, x, y), "envelope"))
        parts.append(path(steps(_series(spans, x, y, [s.power_w for s in spans])), "power"))
        parts.append(path(steps(_series(spans, x, y, [s.window_w for s in spans])), "window"))
        parts.append(path(steps(_series(spans, x, y, [s.cap_w for s in spans])), "cap"))
    else:
        parts.append(text(left, top + 20, "no power sensor was read"))
    top += tall + 34
    hz = [v / 1e6 for s in spans for v in (s.low_hz, s.high_hz) if v is not None]
    if hz:
        y = Scale(0.0, max(hz) * 1.08, top + low, top)
        parts += _axis(x, y, "GPU clock, MHz", ticks(0.0, y.high, 4))
        for css, values in (("clock faint", [s.low_hz for s in spans]), ("clock", [s.high_hz for s in spans])):
            megahertz = [None if v is None else v / 1e6 for v in values]
            parts.append(path(steps(_series(spans, x, y, megahertz)), css))
    else:
        parts.append(text(left, top + 20, "no clock was read"))
    top += low + 34
    sizes = sorted(set(run.batch_sizes) | {s.batch_size for s in spans})
    low = min(low, 24 + 16 * len(sizes))
    y = Scale(-0.5, len(sizes) - 0.5, top + low, top)
    labels = [float(i) for i in range(0, len(sizes), max(1, -(-len(sizes) // 5)))]
    parts += _axis(x, y, "batch size", labels, [str(sizes[int(i)]) for i in labels])
    parts.append(path(steps(_series(spans, x, y, [float(sizes.index(s.batch_size)) for s in spans])), "batch"))
    top += low + 30
    parts += _happened(subject, x, top)
    top += 3 * 16 + 4
    for at_s, label in time_ticks(end_s, 4 if narrow else 9):
        parts.append(f'<path d="M{num(x(at_s))} {top}v4" class="axis"/>')
        parts.append(text(x(at_s), top + 17, label, "tick", "middle"))
    parts.append(f'<path class="cross" d="M0 16V{top}" visibility="hidden"/>')
    about = f"Timeline of {run.job}: input power with its cap, GPU clock and batch size over {end_s:.0f} seconds"
    return (
        f'<svg class="chart {"narrow" if narrow else "wide"}" viewBox="0 0 {width} {top + 24}" role="img" '
        f'aria-label="{esc(about)}" id="{name}" data-left="{left}" data-right="{width - right}" '
        f'data-end="{end_s:.6g}">{"".join(parts)}</svg>'
    )


def data(subject: Subject) -> str:
    """The spans as JSON for the page's script, safe inside a script element."""
    rows = [
        [_short(s.start_s), _short(s.width_s), *map(_short, (s.power_w, s.least_w, s.most_w, s.window_w, s.cap_w)),
         *(None if hz is None else round(hz / 1e6) for hz in (s.low_hz, s.high_hz)), s.batch_size]
        for s in subject.run.spans
    ]  # fmt: skip
    return json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")


def rows(subject: Subject) -> str:
    """The timeline as a table of at most ``_ROWS_MOST`` stretches."""
    spans = subject.run.spans
    size = -(-len(spans) // _ROWS_MOST)
    grouped = [_all(spans[i : i + size]) for i in range(0, len(spans), size)]
    return table(
        ("from, s", "mean, W", "least, W", "largest, W", "largest window mean, W", "cap, W", "clock", "batch size"),
        [
            (f"{s.start_s:.1f}", _watts(s.power_w), _watts(s.least_w), _watts(s.most_w), _watts(s.window_w),
             "none" if s.cap_w is None else f"{s.cap_w:g}", _clocks(s), s.batch_size)
            for s in grouped
        ],
        "The timeline as numbers; least and largest are of single readings, cap and batch size those at the end",
    )  # fmt: skip


def _all(spans: Sequence[Span]) -> Span:
    out = spans[0]
    for span in spans[1:]:
        out = joined(out, span)
    return out


def _axis(x: Scale, y: Scale, name: str, values: Sequence[float], labels: Sequence[str] | None = None) -> list[str]:
    out = [text(x.start, y.end - 6, name, "name")]
    for value, label in zip(values, labels or [f"{v:g}" for v in values], strict=True):
        out.append(f'<path d="M{num(x.start)} {num(y(value))}H{num(x.end)}" class="grid"/>')
        out.append(text(x.start - 6, y(value) + 4, label, "tick", "end"))
    return [*out, f'<path d="M{num(x.start)} {num(y.end)}V{num(y.start)}H{num(x.end)}" class="axis"/>']


def _series(
    spans: Sequence[Span], x: Scale, y: Scale, values: Sequence[float | None]
) -> list[tuple[float, float, float | None]]:
    return [
        (x(s.start_s), x(s.start_s + s.width_s), None if value is None else y(value))
        for s, value in zip(spans, values, strict=True)
    ]


def _envelope(spans: Sequence[Span], x: Scale, y: Scale) -> str:
    """From the least to the largest reading of each stretch."""
    return "".join(
        f"M{num(x(s.start_s))} {num(y(s.least_w))}H{num(x(s.start_s + s.width_s))}V{num(y(s.most_w))}"
        f"H{num(x(s.start_s))}Z"
        for s in spans
        if s.least_w is not None and s.most_w is not None
    )


def _happened(subject: Subject, x: Scale, top: float) -> list[str]:
    """Three rows of small marks, each with a title that a pointer shows."""
    places = {"choice": 0, "guard": 1, "condition": 2}
    out = []
    for row, (kind, name) in enumerate((("choice", "choices"), ("guard", "guard"), ("condition", "conditions"))):
        y = top + 16 * row + 8
        narrow = x.start < 60
        out.append(text(x.start - 4, y + 4, {"choices": "ch.", "guard": "gu.", "conditions": "co."}[name]
                        if narrow else name, "tick", "end"))  # fmt: skip
        out.append(f'<path d="M{num(x.start)} {num(y)}H{num(x.end)}" class="grid {kind}"/>')
    for mark in marks(subject):
        at = x(min(max(mark.at_s, 0.0), x.high))
        y = top + 16 * places[mark.kind] + 8
        out.append(
            f'<path d="M{num(at)} {num(y - 5)}v10" class="mark {mark.kind}"><title>{mark.at_s:.1f} s: '
            f"{esc(mark.text[:300])}</title></path>"
        )
    return out


def _watts(value: float | None) -> str:
    return "not read" if value is None else f"{value:.2f}"


def _clocks(span: Span) -> str:
    if span.high_hz is None:
        return "not read"
    if span.low_hz in (None, span.high_hz):
        return clock(span.high_hz)
    return f"{(span.low_hz or 0) / 1e6:.0f} to {clock(span.high_hz)}"


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
