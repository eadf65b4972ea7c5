"""Profiling plans compared: points, cost and loss of full table, staircase and adaptive plan.

    python benchmarks/profiling_plan.py             time only, one cap per case: about a minute
    python benchmarks/profiling_plan.py --whole     as `traingov-sim evaluate joint` has it
    --repeats N, --seed N, --json

What is counted how: sim/traingov_sim/evaluate/profiling_run.py. Measured tables are read from ../shared/data beside the
repository; without them their rows say so.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from traingov_sim.evaluate.profiling import evaluate_profiling

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def line(row: dict[str, Any]) -> str:
    if "absent" in row:
        return f"{row['surface']}: {row['absent']}"
    head = f"{row['surface']:16s} {row['clocks']:16s} {row['objective']:6s} {row['noise']:4.0%} {row['plan']:28s}"
    choice = (
        f"{row['points_mean']:6.1f} {row['points_most']:4d} {row['same_choice_share']:6.1%} {row['loss_mean']:7.2%} "
        f"{row['loss_95']:6.1%} {row['loss_beyond_guard_band_mean']:7.2%} {row['violation_share']:6.1%} "
        f"{row['excess_most']:5.1%} {row['gross_s_mean']:6.0f} {row['net_s_mean']:5.0f}"
    )
    shares = "".join(
        f"  {row[f'{length}_gross_share_mean']:.2%} ({row[f'{length}_gross_share_most']:.2%})"
        f" {row[f'{length}_net_share_mean']:.2%} ({row[f'{length}_net_share_most']:.2%})"
        for length in ("long", "short")
        if f"{length}_jobs" in row
    )
    return head + choice + shares


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare profiling plans.")
    parser.add_argument("--whole", action="store_true", help="all objectives, three caps per case")
    parser.add_argument("--repeats", type=int, default=1, help="repeats of every noisy case")
    parser.add_argument("--seed", type=int, default=1000, help="first seed of caps and noise")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    options = parser.parse_args()
    rows = evaluate_profiling(DATA, quick=not options.whole, repeats=options.repeats, first_seed=options.seed)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print("loss: against the best point of the true table; beyond: against the best one inside one measurement's guard")
    print("band; above: choices that exceed the cap, and by how much at most; gross, net: seconds; shares of the")
    print(
        "published training times: gross mean (most), net mean (most), of jobs of 2.5 h and more, then of shorter ones"
    )
    print(
        f"{'surface':16s} {'clocks':16s} {'for':6s} {'noise':>4s} {'plan':27s} points most   same    loss    95%  "
        "beyond  above    by  gross   net  shares"
    )
    for row in rows:
        print(line(row))


if __name__ == "__main__":
    main()
