"""Heat maps of a lookup table: time, power, and time to accuracy, with the cap line and the chosen point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traingov_policies.lut import Grid, Lut
from traingov_policies.relation import RelationVector
from traingov_policies.robust import Choice
from traingov_policies.select import below_cap
from traingov_policies.values import Objective, OperatingPoint

from .require import matplotlib_module

_CAP_COLOR = "#d62728"
_EMPTY = "#e9e9e9"


@dataclass(frozen=True)
class _Panel:
    title: str
    grid: Grid
    colors: str  # light to dark, so that it reads in grey as well
    ratio: bool = False  # colours by ratio: times span more than a decade
    least: bool = False  # a point that was given up reached at least the value noted


def draw_lut(
    lut: Lut, output: Path, *,
    relation: RelationVector | None = None, cap_w: float | None = None, choice: Choice | None = None,
) -> None:  # fmt: skip
    """Draw ``lut`` into ``output`` (.png, .svg, .pdf). Raises MissingPlotsError; OSError where it cannot be written."""
    figures = matplotlib_module("figure")
    panels = [
        _Panel(f"time for {lut.samples} samples, s", lut.time_s, "Blues", ratio=True),
        _Panel("peak power, W", lut.peak_power_w, "Oranges", least=True),
        _Panel("mean power, W", lut.mean_power_w, "Oranges"),
    ]
    if relation is not None:
        panels.append(_Panel("time to accuracy T·r, s (relative)", _weighted(lut, relation), "Greens", ratio=True))
    rows, columns = len(lut.batch_sizes), len(lut.gpu_frequencies_hz)
    across = 2
    down = (len(panels) + 1) // 2
    figure = figures.Figure(
        figsize=(across * (1.9 + 0.56 * columns), 1.25 + down * (1.15 + 0.36 * rows)), dpi=120, layout="constrained"
    )
    axes = np.atleast_2d(figure.subplots(down, across)).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        _draw(figure, axis, lut, panel, cap_w=cap_w, choice=choice)
    for axis in axes[len(panels) :]:
        axis.axis("off")
    figure.suptitle(_title(lut, cap_w, choice), fontsize=11)
    _legend(figure, lut, cap_w, choice)
    figure.savefig(output)


def _draw(
    figure: Any, axis: Any, lut: Lut, panel: _Panel, *, cap_w: float | None, choice: Choice | None
) -> None:  # fmt: skip
    values = np.array([[np.nan if v is None else v for v in row] for row in panel.grid], dtype=float)
    rows, columns = values.shape
    shown = np.log(np.where(values > 0, values, np.nan)) if panel.ratio else values
    known = shown[np.isfinite(shown)]
    axis.set_facecolor(_EMPTY)
    axis.set_title(panel.title, fontsize=10)
    image = None
    if known.size:
        low, high = float(known.min()), float(known.max())
        spread = (high - low) or 1.0
        # A range somewhat wider than the data keeps the lightest cell off white and the darkest readable.
        image = axis.imshow(
            np.ma.masked_invalid(shown), cmap=panel.colors, aspect="auto", origin="lower",
            vmin=low - 0.12 * spread, vmax=high + 0.1 * spread,
        )  # fmt: skip
    for i in range(rows):
        for j in range(columns):
            dark = bool(known.size) and (shown[i, j] - low) / spread > 0.65
            _number(axis, lut, panel, i, j, color="white" if dark else "black")
    axis.set_xlim(-0.5, columns - 0.5)
    axis.set_ylim(-0.5, rows - 0.5)
    axis.set_xticks(range(columns))
    axis.set_xticklabels([f"{f / 1e6:.0f}" for f in lut.gpu_frequencies_hz], fontsize=8)
    axis.set_yticks(range(rows))
    axis.set_yticklabels([str(b) for b in lut.batch_sizes], fontsize=8)
    axis.set_xlabel("GPU clock, MHz", fontsize=9)
    axis.set_ylabel("batch size", fontsize=9)
    if image is not None:
        bar = figure.colorbar(image, ax=axis, fraction=0.046, pad=0.02)
        bar.ax.set_ylim(low, max(high, low + 1e-9))
        if panel.ratio:
            ticks = np.linspace(low, high, 5)
            bar.set_ticks(ticks)
            bar.set_ticklabels([_text(float(np.exp(tick))) for tick in ticks])
        bar.ax.tick_params(labelsize=7)
    if cap_w is not None:
        for line in _cap_lines(lut, cap_w):
            axis.plot(*line, color="white", linewidth=4.2, solid_capstyle="projecting", zorder=3)
            axis.plot(*line, color=_CAP_COLOR, linewidth=2.2, solid_capstyle="projecting", zorder=4)
    if choice is not None:
        i, j = lut.index(choice.chosen.point)
        for color, width in (("white", 4.4), ("black", 2.0)):
            axis.plot(
                [j - 0.4, j + 0.4, j + 0.4, j - 0.4, j - 0.4], [i - 0.38, i - 0.38, i + 0.38, i + 0.38, i - 0.38],
                color=color, linewidth=width, zorder=5,
            )  # fmt: skip


def _number(axis: Any, lut: Lut, panel: _Panel, i: int, j: int, *, color: str) -> None:
    cell = lut.cell(OperatingPoint(lut.batch_sizes[i], lut.gpu_frequencies_hz[j]))
    value = panel.grid[i][j]
    if value is None:
        text = {"infeasible": "^", "failed": "×"}.get(cell.origin or "", "")
        axis.text(j, i, text, ha="center", va="center", fontsize=8, color="#444")
        return
    predicted = cell.origin == "predicted"
    text = f">{_text(value)}" if panel.least and cell.origin == "infeasible" else _text(value)
    axis.text(
        j, i, text, ha="center", va="center", fontsize=7.5, zorder=6, color=color,
        fontstyle="italic" if predicted else "normal",
    )  # fmt: skip
    if predicted:  # a hatch, since italics alone do not read in small print
        axis.fill_between(
            [j - 0.5, j + 0.5], i - 0.5, i + 0.5, facecolor="none", edgecolor="#777", hatch="///", linewidth=0,
            alpha=0.35,
        )  # fmt: skip


def _cap_lines(lut: Lut, cap_w: float) -> list[tuple[list[float], list[float]]]:
    """The edges between points below the cap and points that are not, as segments (xs, ys) in cell units.

    Only edges between two cells of known power: nothing is said about the others.
    """
    feasible = [[None if peak is None else below_cap(peak, cap_w) for peak in row] for row in lut.peak_power_w]
    rows, columns = len(feasible), len(feasible[0])
    lines: list[tuple[list[float], list[float]]] = []
    for i in range(rows):
        for j in range(columns):
            here = feasible[i][j]
            if j + 1 < columns and _differ(here, feasible[i][j + 1]):
                lines.append(([j + 0.5, j + 0.5], [i - 0.5, i + 0.5]))
            if i + 1 < rows and _differ(here, feasible[i + 1][j]):
                lines.append(([j - 0.5, j + 0.5], [i + 0.5, i + 0.5]))
    return lines


def _differ(one: bool | None, other: bool | None) -> bool:
    return one is not None and other is not None and one != other


def _weighted(lut: Lut, relation: RelationVector) -> Grid:
    rows: list[tuple[float | None, ...]] = []
    for b, row in zip(lut.batch_sizes, lut.time_s, strict=True):
        r = relation.of(b)
        rows.append(tuple(None if t is None or r is None else t * r for t in row))
    return tuple(rows)


def _title(lut: Lut, cap_w: float | None, choice: Choice | None) -> str:
    text = f"{lut.workload} on {lut.board}"
    if choice is None:
        return text
    under = "without a cap" if cap_w is None else f"under {cap_w:g} W"
    if not choice.selection.feasible:
        return f"{text}: nothing {under}; least power at {choice.chosen.point}"
    noun = {Objective.TIME: "time", Objective.ENERGY: "energy", Objective.EDP: "energy × time"}[choice.objective]
    return f"{text}: least {noun} {under} is {choice.chosen.point}"


def _legend(figure: Any, lut: Lut, cap_w: float | None, choice: Choice | None) -> None:
    origins = {lut.cell(p).origin for p in lut.points()}
    parts: Sequence[str] = [
        *(["frame: chosen"] if choice is not None else []),
        *([f"red line: cap {cap_w:g} W"] if cap_w is not None and _cap_lines(lut, cap_w) else []),
        *(["hatched, italic: predicted"] if "predicted" in origins else []),
        *(["^: given up above a cap"] if "infeasible" in origins else []),
        *(["×: could not be measured"] if "failed" in origins else []),
        *(["grey: not measured"] if any(lut.cell(p).time_s is None for p in lut.points()) else []),
    ]
    if parts:
        figure.supxlabel("   ".join(parts), fontsize=8.5, color="#333")


def _text(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
