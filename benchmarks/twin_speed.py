"""How many times faster than real time the discrete-event twin runs, by sampling interval, in one run.

Two jobs: ResNet18 (steps of 0.2 to 6 s) and the digits network (steps of 10 to 300 ms), profiled and then trained on
a virtual Nano under 4.5 W. Targets: hundreds of times at 10 ms, thousands with coarser samples.
"""

from __future__ import annotations

import argparse
import json
import time

from traingov_policies.values import Cap
from traingov_sim.board.boardspec import load_board
from traingov_sim.surfaces import load
from traingov_sim.twin import Twin

INTERVALS_S = (0.01, 0.02, 0.05, 0.1, 0.2)


def speed(workload: str, interval_s: float, seconds: float) -> float:
    twin = Twin(load_board("nano"), cap=Cap(4.5), seed=1, interval_s=interval_s)
    twin.add_job(load("nano", workload), (4, 8, 16, 32, 64, 128))
    begin = time.process_time()
    twin.run(seconds)
    return seconds / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="simulated seconds of each run")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {w: {i: speed(w, i, options.seconds) for i in INTERVALS_S} for w in ("resnet18", "digits-mlp")}
    if options.json:
        print(json.dumps({"times_real_time": found}))
        return
    print(f"times real time (CPU seconds), over {options.seconds:g} simulated seconds")
    for workload, times in found.items():
        shown = "  ".join(f"{i * 1000:.0f} ms: {times_real:.0f}" for i, times_real in times.items())
        print(f"{workload:>10}  {shown}")


if __name__ == "__main__":
    main()
