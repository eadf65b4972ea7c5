"""Draws a recording: power against the cap, GPU clock, batch size. Needs matplotlib.

python docs/plot_run.py RECORDING.jsonl[.gz] OUT.png
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from traingov_policies.energy import WindowMean


def entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.splitlines()]


def main() -> None:
    """Draw argv[1] into argv[2]."""
    if len(sys.argv) != 3:
        sys.exit("usage: python docs/plot_run.py RECORDING.jsonl[.gz] OUT.png (needs matplotlib)")
    held = entries(Path(sys.argv[1]))

    cap = (held[0].get("cap") or {}).get("power_w")
    begin = next(e["t_s"] for e in held if "t_s" in e)
    end = next((e["t_s"] for e in held if e.get("event") == "JobEnded"), held[-1].get("t_s", begin)) - begin
    window = WindowMean(1.0)
    power, means, clock, batch, marks = [], [], [], [], []
    now = 0.0
    for e in held:
        kind = e.get("event") or e.get("action")
        now = e["t_s"] - begin if "event" in e else now
        if kind == "Sample" and e.get("input_power_w") is not None:
            power.append((now, e["input_power_w"]))
            window.add(now, e["input_power_w"])
            if window.value is not None:
                means.append((now, window.value))
            if e.get("gpu_frequency_hz"):
                clock.append((now, e["gpu_frequency_hz"] / 1e6))
        elif kind in ("StepsReported", "BatchApplied"):
            batch.append((now, e["batch_size"]))
        elif kind == "Decided" and e["kind"] == "joint":
            marks.append((now, e["text"].split(":")[0]))
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, sharex=True, figsize=(10, 5.6), height_ratios=[3, 2, 1.4], layout="constrained"
    )
    top.plot(*zip(*power, strict=True), color="#b9cbe0", linewidth=0.6, label="input power, 10 ms")
    top.plot(*zip(*means, strict=True), color="#1f5a99", linewidth=1.4, label="mean over 1 s")
    if cap is not None:
        top.axhline(cap, color="#c0392b", linestyle="--", linewidth=1.2, label=f"cap {cap:g} W")
    top.set_ylabel("W")
    top.legend(loc="lower right", ncols=3, frameon=False)
    middle.step(*zip(*clock, strict=True), where="post", color="#2a7f62")
    middle.set_ylabel("GPU clock, MHz")
    bottom.step(*zip(*batch, strict=True), where="post", color="#7d4f9e")
    bottom.set_yscale("log", base=2)
    bottom.set_ylabel("batch size")
    bottom.set_xlabel("seconds since the job registered")
    for axis in (top, middle, bottom):
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(0, end)
        for t, _ in marks:
            axis.axvline(t, color="#555", linewidth=0.8, linestyle=":")
    for t, text in marks[:1]:
        top.annotate(f"chosen: {text}", (t, top.get_ylim()[1]), xytext=(4, -10), textcoords="offset points", fontsize=9)
        top.annotate("profiling", (0, top.get_ylim()[1]), xytext=(4, -10), textcoords="offset points", fontsize=9)
    figure.suptitle("A governed run on the virtual Nano (simulated power and time)", fontsize=11)
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
