"""The normalised U-curve of an energy sweep: E(f) / E(f_max) over the GPU clock, a line per workload (method B)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from traingov_policies.sweep import Curve

from .require import matplotlib_module


def draw_ucurves(curves: Sequence[Curve], what: str = "GPU + CPU energy", kind: str = "png") -> bytes:
    """A picture of the curves; ``kind`` is a file type that matplotlib writes. Raises MissingPlotsError.

    Each curve is divided by its value at its highest clock; a ring marks the best clock, a dashed line mode 0.
    """
    figure: Any = matplotlib_module("figure").Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    for number, curve in enumerate(curves):
        clocks = sorted(curve.cost)
        top = curve.cost[clocks[-1]]
        colour = f"C{number % 10}"
        mhz, shares = [hz / 1e6 for hz in clocks], [curve.cost[hz] / top for hz in clocks]
        axes.plot(mhz, shares, "o-", color=colour, markersize=3, linewidth=1.2, label=curve.workload)
        best = curve.best_hz
        axes.plot(best / 1e6, curve.cost[best] / top, "o", color=colour, markersize=11, fillstyle="none")
        if curve.baseline is not None and len(curves) <= 4:
            axes.axhline(curve.baseline / top, color=colour, linestyle="--", linewidth=0.8)
    axes.set_xlabel("GPU clock, MHz")
    axes.set_ylabel(f"{what}, relative to the highest clock")
    axes.set_title("Energy over the GPU clock (ring: best; dashed: mode 0)")
    axes.grid(alpha=0.3)
    if len(curves) <= 30:
        axes.legend(fontsize="x-small", ncol=1 + len(curves) // 10)
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=130)
    return out.getvalue()
