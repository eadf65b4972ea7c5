"""Draws docs/images/evaluation-cap.png and evaluation-drift.png from what two commands printed. Needs matplotlib.

traingov-sim evaluate cap --json > cap.json
traingov-sim evaluate drift --json > drift.json
python docs/plot_cap_drift.py cap.json drift.json
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
BLUE, RED, GREY, YELLOW = "#3465a4", "#cc0000", "#888a85", "#c4a000"


def caps(data: dict[str, Any]) -> None:
    """Power against the changing cap, and the chosen points."""
    trace = data["trace"]
    t_s, power_w, cap_w, hz, batch = (list(column) for column in zip(*trace["rows"], strict=True))
    hours = [t / 3600 for t in t_s]
    fig, (top, middle, low) = plt.subplots(
        3, 1, figsize=(9, 6), sharex=True, constrained_layout=True, height_ratios=(2, 1, 1)
    )
    top.plot(hours, power_w, color=BLUE, lw=0.5, label="input power, means")
    top.step(hours, cap_w, where="post", color=RED, lw=1.0, label="cap")
    top.set_ylabel("W")
    top.legend(fontsize=8, loc="upper left")
    top.set_title(f"{trace['board']}, {trace['series']} (simulated)", fontsize=10)
    middle.plot(hours, [f / 1e6 if f else None for f in hz], ",", color=GREY)
    middle.set_ylabel("GPU clock, MHz")
    low.step(hours, batch, where="post", color=YELLOW, lw=1.0)
    low.set_yscale("log", base=2)
    low.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    low.set_ylabel("batch size")
    low.set_xlabel("hours")
    for ax in (top, middle, low):
        ax.grid(alpha=0.3)
    fig.savefig(IMAGES / "evaluation-cap.png", dpi=100)


def drift(data: dict[str, Any]) -> None:
    """Detection delay against false alarms, by threshold; and the delays of the whole governor, source by source."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), constrained_layout=True)
    rows = [r for r in data["detector"]["thresholds"] if r["mean_s"] is not None]
    resolution = 1000 / max(r["hours"] for r in rows)
    x = [max(r["per_1000_h"], 0.5 * resolution) for r in rows]
    left.plot(x, [r["mean_s"] for r in rows], "o-", color=BLUE, ms=4, label="mean delay of a 5 % shift")
    late = [(at, r["p95_s"]) for at, r in zip(x, rows, strict=True) if r.get("p95_s") is not None]
    if late:
        left.plot(*zip(*late, strict=True), "o--", color=BLUE, ms=4, mfc="white", label="95 %")
    for r, at in zip(rows, x, strict=True):
        left.annotate(f"{r['threshold']:g}", (at, r["mean_s"]), fontsize=7, xytext=(3, 4), textcoords="offset points")
    left.axvline(1, color=RED, lw=0.8, label="target: 1 false alarm a 1,000 h")
    left.axhline(30, color=GREY, lw=0.8, ls="--", label="target: mean 30 s")
    left.set_xscale("log")
    left.set_xlabel(f"false alarms a 1,000 clean hours (none seen: drawn at {0.5 * resolution:.2g})")
    left.set_ylabel("seconds")
    left.legend(fontsize=7)
    sources = [r for r in data["scenarios"]["rows"] if r["delay_s"] is not None]
    for i, r in enumerate(sources):
        d = r["delay_s"]
        right.plot([d["least"], d["largest"]], [i, i], color=BLUE, lw=2)
        right.plot(d["median"], i, "o", color=BLUE, ms=5)
    right.set_yticks(range(len(sources)), [r["source"] for r in sources], fontsize=8)
    right.invert_yaxis()
    right.set_xscale("log")
    right.set_xlabel("seconds until the governor acts (least, median, largest)")
    for ax in (left, right):
        ax.grid(alpha=0.3)
    fig.savefig(IMAGES / "evaluation-drift.png", dpi=100)


def main() -> None:
    """Draw both pictures."""
    if len(sys.argv) != 3:
        sys.exit("plot_cap_drift: name the JSON files that `evaluate cap` and `evaluate drift` printed")
    caps(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    drift(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
