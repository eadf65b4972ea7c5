"""Draws docs/images/evaluation-*.png from what `traingov-sim evaluate joint --json` printed. Needs matplotlib.

traingov-sim evaluate joint --json > joint.json
python docs/plot_evaluation.py joint.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).resolve().parent / "images"
CAPS = {4.5: "4.5 W", 7.0: "7 W", None: "no cap"}
BLUE, RED, GREY = "#3465a4", "#cc0000", "#888a85"


def cells(data: dict[str, Any], what: str, clocks: tuple[str, ...] = ("six", "thirteen")) -> list[dict[str, Any]]:
    """The comparisons of one name, with N sampled."""
    return [
        c
        for c in data["comparisons"]
        if c.get("comparison") == what and c.get("variant") == "sampled" and c.get("clocks") in clocks
    ]


def rows_of(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Board, workload and data set, in the table's order."""
    return list(dict.fromkeys((c["board"], c["workload"], c["dataset"]) for c in found))


def ratios(data: dict[str, Any]) -> None:
    """Predicted over published seconds, cell by cell."""
    fig, axes = plt.subplots(1, 3, figsize=(11, 4.6), sharey=True, constrained_layout=True)
    rows = rows_of(cells(data, "seconds of joint"))
    for ax, (cap, text) in zip(axes, CAPS.items(), strict=True):
        for what, colour, shift in (("baseline1", GREY, -0.24), ("baseline2", "#c4a000", 0.0), ("joint", BLUE, 0.24)):
            for c in cells(data, f"seconds of {what}"):
                if c["cap_w"] == cap and "error" in c:
                    y = rows.index((c["board"], c["workload"], c["dataset"])) + shift
                    d = c["error"]
                    ax.plot([1 + d["p5"], 1 + d["p95"]], [y, y], color=colour, lw=2.2, solid_capstyle="butt")
                    filled = colour if c["kind"] == "predicted" else "white"
                    ax.plot(1 + d["median"], y, "o", ms=4.5, color=colour, mfc=filled)
        ax.axvline(1, color=RED, lw=0.8)
        ax.set_title(text, fontsize=10)
        ax.set_xlabel("predicted / published seconds")
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(rows)), [f"{b} {w} {d}" for b, w, d in rows], fontsize=8)
    axes[0].invert_yaxis()
    handles = [
        plt.Line2D([], [], color=colour, lw=2.2, label=label)
        for label, colour in (("baseline 1", GREY), ("baseline 2", "#c4a000"), ("joint", BLUE))
    ]
    handles.append(plt.Line2D([], [], marker="o", ls="", color="black", mfc="white", label="calibrated"))
    handles.append(plt.Line2D([], [], marker="o", ls="", color="black", label="predicted"))
    fig.legend(handles=handles, ncol=5, fontsize=8, loc="outside lower center")
    fig.savefig(IMAGES / "evaluation-cells.png", dpi=110)


def speed_ups(data: dict[str, Any]) -> None:
    """Speed-up of joint over baseline 1 by row and cap, beside the published one."""
    fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, constrained_layout=True)
    rows = rows_of(cells(data, "speed-up of joint over baseline1"))
    for ax, base in zip(axes, ("baseline1", "baseline2"), strict=True):
        for c in cells(data, f"speed-up of joint over {base}"):
            k = list(CAPS).index(c["cap_w"])
            y = rows.index((c["board"], c["workload"], c["dataset"])) + (k - 1) * 0.25
            d = c["speed_up"]
            colour = (BLUE, "#729fcf", "#adc8e6")[k]
            ax.plot([d["p5"], d["p95"]], [y, y], color=colour, lw=3.5, solid_capstyle="butt")
            ax.plot(d["median"], y, "|", color="black", ms=7)
            if c["published"] is not None:
                ax.plot(c["published"], y, "D", color=RED, ms=3.5)
        ax.axvline(1, color=GREY, lw=0.8)
        ax.set_xlabel(f"speed-up of joint over baseline {base[-1]}")
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(rows)), [f"{b} {w} {d}" for b, w, d in rows], fontsize=8)
    axes[0].invert_yaxis()
    handles = [
        plt.Line2D([], [], color=colour, lw=3.5, label=text)
        for text, colour in zip(CAPS.values(), (BLUE, "#729fcf", "#adc8e6"), strict=True)
    ]
    handles.append(plt.Line2D([], [], color="black", marker="|", ls="", label="median; bar: 5 to 95 % of boards"))
    handles.append(plt.Line2D([], [], color=RED, marker="D", ls="", label="published"))
    fig.legend(handles=handles, ncol=5, fontsize=8, loc="outside lower center")
    fig.savefig(IMAGES / "evaluation-speed-up.png", dpi=110)


def regret(data: dict[str, Any]) -> None:
    """Loss of the choice against how far the best point lies below the cap."""
    found = [c for c in data["comparisons"] if "points_measured" in c and "warm board" in c["comparison"]]
    rows = [r for c in found for r in c["cases"]]
    fig, ax = plt.subplots(figsize=(7.4, 4.0), constrained_layout=True)
    for cap, colour in ((4.5, BLUE), (7.0, "#c4a000")):
        near = [r for r in rows if r["cap_w"] == cap]
        x = [100 * r["margin_w"] / cap for r in near]
        ax.plot(x, [100 * r["loss"] for r in near], "o", ms=4, alpha=0.6, color=colour, label=f"cap {cap:g} W")
    ax.axvline(2, color=GREY, lw=0.8, ls="--")
    ax.axhline(2, color=RED, lw=0.8, label="target for 95 % of cases: 2 %")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlabel("true best point below the cap by, % of the cap")
    ax.set_ylabel("time lost by the choice, %")
    ax.legend(fontsize=8)
    ax.grid(alpha=0.3)
    fig.savefig(IMAGES / "evaluation-regret.png", dpi=110)


def switches(data: dict[str, Any]) -> None:
    """Excess samples of runs that change their batch size on the way."""
    found = [c for c in data["comparisons"] if "after_share" in c]
    fig, ax = plt.subplots(figsize=(7.4, 3.6), constrained_layout=True)
    pairs = list(dict.fromkeys((c["first"], c["second"]) for c in found))
    for share, colour, shift in ((0.25, "#adc8e6", -0.22), (0.5, "#729fcf", 0.0), (0.75, BLUE, 0.22)):
        chosen = [c for c in found if c["after_share"] == share]
        x = [pairs.index((c["first"], c["second"])) + shift for c in chosen]
        ax.errorbar(
            x,
            [100 * c["excess"] for c in chosen],
            yerr=[100 * c["standard_error"] for c in chosen],
            **{"fmt": "o", "color": colour, "capsize": 3, "label": f"after {share:.0%} of the run"},
        )
    ax.axhline(0, color=GREY, lw=0.8)
    ax.set_xticks(range(len(pairs)), [f"{a} → {b}" for a, b in pairs])
    ax.set_xlabel("batch size before and after")
    ax.set_ylabel("samples against those that\nr predicts, % (± standard error)")
    ax.legend(fontsize=8)
    ax.grid(axis="y", alpha=0.3)
    fig.savefig(IMAGES / "evaluation-switches.png", dpi=110)


def main() -> None:
    """Draw every picture."""
    if len(sys.argv) != 2:
        sys.exit("plot_evaluation: name the JSON file that `traingov-sim evaluate joint --json` printed")
    data = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for draw in (ratios, speed_ups, regret, switches):
        draw(data)


if __name__ == "__main__":
    main()
