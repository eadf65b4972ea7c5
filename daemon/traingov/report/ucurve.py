"""Energy against the clock: what the search measured, with error bars, and what a sweep measured, with mode 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traingov_policies.search.curves import Curve
from traingov_policies.sweep import SweepRow

from .subject import Subject
from .svg import Scale, esc, folded, line, num, path, table, text, ticks


@dataclass(frozen=True)
class Dot:
    """A clock's energy and its standard error, in the chart's unit; ``label`` is drawn beside it."""

    hz: int
    energy: float
    error: float
    label: str = ""


@dataclass(frozen=True)
class _At:
    """Where the tree was (None: no tree), where the least energy is, the energy in mode 0 (None: not known), and which
    clock was chosen in the end (None: another batch size's, or not known)."""

    tree_hz: int | None
    best_hz: int
    zero: float | None
    final_hz: int | None = None


def curve_figures(subject: Subject) -> str:
    """A figure for each batch size whose curve is known."""
    return "".join(_curve(subject, curve, number) for number, curve in enumerate(subject.curves))


def sweep_figure(subject: Subject) -> str:
    """The energy sweep; nothing without two clocks of one energy."""
    for power, of in (("GPU + CPU", _compute), ("input", _input)):
        dots = [
            Dot(row.gpu_frequency_hz, value, 0.0)
            for row in sorted(subject.sweep, key=lambda row: row.gpu_frequency_hz or 0)
            if row.gpu_frequency_hz is not None and (value := of(row)) is not None
        ]
        if len(dots) < 2:
            continue
        zero = next((of(row) for row in subject.sweep if row.gpu_frequency_hz is None), None)
        best = min(dots, key=lambda dot: (dot.energy, dot.hz)).hz
        name = f"Energy sweep: {power} energy of the same work at each clock, J"
        rows = [(f"{dot.hz / 1e6:.0f} MHz", f"{dot.energy:.2f}") for dot in dots]
        rows += [] if zero is None else [("mode 0", f"{zero:.2f}")]
        return _figure(
            name, dots, _At(None, best, zero), ident="sweep", words=table(("clock", "energy, J"), rows, name)
        )
    return ""


def _curve(subject: Subject, curve: Curve, number: int) -> str:
    compute = all(value is not None for value in curve.compute_energy_j)
    energies = curve.compute_energy_j if compute else curve.input_energy_j
    order: dict[int, list[str]] = {}
    readings = [c for c in subject.run.choices if c.kind == "search-reading" and c.batch_size == curve.batch_size]
    for place, choice in enumerate(readings, 1):
        if choice.gpu_frequency_hz is not None:
            order.setdefault(choice.gpu_frequency_hz, []).append(str(place))
    dots = [
        Dot(hz, 1e3 * energy, 1e3 * energy * sd, ", ".join(order.get(hz, [])))
        for hz, energy, sd in zip(curve.gpu_frequencies_hz, energies, curve.sd, strict=True)
        if energy is not None
    ]
    if not dots:
        return ""
    name = f"{'GPU + CPU' if compute else 'Input'} energy of a sample at batch {curve.batch_size}, mJ"
    chosen = subject.chosen
    final = chosen.gpu_frequency_hz if chosen is not None and chosen.batch_size == curve.batch_size else None
    at = _At(curve.tree_frequency_hz, curve.best_frequency_hz, None, final)
    rows = [
        (f"{dot.hz / 1e6:.0f} MHz", f"{dot.energy:.4g}", f"{dot.error:.2g}", dot.label or "earlier run",
         _role(dot.hz, at))
        for dot in dots
    ]  # fmt: skip
    words = table(("clock", "energy, mJ", "standard error, mJ", "read as number", ""), rows, name)
    return _figure(name, dots, at, ident=f"curve{number}", words=words)


def _role(hz: int, at: _At) -> str:
    roles = [("tree's choice", at.tree_hz), ("least energy", at.best_hz), ("chosen in the end", at.final_hz)]
    return ", ".join(role for role, place in roles if place == hz)


def _figure(name: str, dots: Sequence[Dot], at: _At, *, ident: str, words: str) -> str:
    if len(dots) < 2:
        return f"<p>{esc(name)}: one clock was measured, which makes no curve.</p>{words}"
    charts = "".join(_chart(name, dots, at, width) for width in (720, 360))
    marks = ["ring: the least energy found"]
    marks += ["diamond: the decision tree's choice"] if at.tree_hz is not None else []
    marks += ["square: the clock chosen in the end"] if at.final_hz is not None else []
    marks += ["bars: one standard error", "numbers: the order of the readings"] if ident != "sweep" else []
    marks += ["dashed: mode 0, the board's own governor"] if at.zero is not None else []
    note = f'<figcaption class="note">{esc(name)}. {esc("; ".join(marks))}.</figcaption>'
    return f'<figure id="{ident}">{charts}{note}{folded("As numbers", words)}</figure>'


def _chart(name: str, dots: Sequence[Dot], at: _At, width: int) -> str:
    narrow = width < 600
    clocks = [dot.hz / 1e6 for dot in dots]
    pad = 0.06 * (max(clocks) - min(clocks)) or 20.0
    values = [v for dot in dots for v in (dot.energy - dot.error, dot.energy + dot.error)]
    values += [] if at.zero is None else [at.zero]
    margin = 0.12 * (max(values) - min(values)) or 0.1 * max(values)
    left = 52
    x = Scale(min(clocks) - pad, max(clocks) + pad, left, width - 12)
    y = Scale(max(0.0, min(values) - margin), max(values) + margin, 230, 20)
    out = []
    for value in ticks(y.low, y.high, 6):
        out.append(f'<path d="M{left} {num(y(value))}H{width - 12}" class="grid"/>')
        out.append(text(left - 6, y(value) + 4, f"{value:g}", "tick", "end"))
    for value in ticks(x.low, x.high, 4 if narrow else 8):
        out.append(text(x(value), 248, f"{value:g}", "tick", "middle"))
    out.append(f'<path d="M{left} 20V230H{width - 12}" class="axis"/>')
    out.append(text(width - 12, 264, "GPU clock, MHz", "name", "end"))
    if at.zero is not None:
        out.append(path(f"M{left} {num(y(at.zero))}H{width - 12}", "zero"))
        out.append(text(width - 14, y(at.zero) - 5, "mode 0", "tick", "end"))
    out.append(path(line([(x(dot.hz / 1e6), y(dot.energy)) for dot in dots]), "energy"))
    for dot in dots:
        here, level = x(dot.hz / 1e6), y(dot.energy)
        if dot.error > 0:
            out.append(path(f"M{num(here)} {num(y(dot.energy - dot.error))}V{num(y(dot.energy + dot.error))}", "error"))
        out.append(f'<circle cx="{num(here)}" cy="{num(level)}" r="3.5" class="dot"/>')
        if dot.hz == at.best_hz:
            out.append(f'<circle cx="{num(here)}" cy="{num(level)}" r="8" class="best"/>')
        if dot.hz == at.tree_hz:
            out.append(path(f"M{num(here)} {num(level - 12)}l12 12l-12 12l-12 -12Z", "tree"))
        if dot.hz == at.final_hz:
            out.append(path(f"M{num(here - 14)} {num(level - 14)}h28v28h-28Z", "final"))
        if dot.label:
            late = here > 0.8 * width  # its text would leave the picture on the right
            out.append(text(here + (-17 if late else 17), level - 9, dot.label, "tick", "end" if late else "start"))
    about = f"{name}, at {len(dots)} clocks; least at {at.best_hz / 1e6:.0f} MHz"
    return (
        f'<svg class="chart {"narrow" if narrow else "wide"}" viewBox="0 0 {width} 270" role="img" '
        f'aria-label="{esc(about)}">{"".join(out)}</svg>'
    )


def _compute(row: SweepRow) -> float | None:
    return row.compute_energy_j


def _input(row: SweepRow) -> float | None:
    return row.input_energy_j
