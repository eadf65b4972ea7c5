"""What a choice costs: the operating point from a full table, with and without stated uncertainties.

    python benchmarks/selection.py [--json]

Milliseconds, the least of twenty calls in one process, for the clock tables of the virtual boards and eight batch
sizes. "exact" compares all points; "robust" weighs their uncertainty; "why" computes what `traingov explain` shows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace

from traingov_policies.explaining import detail
from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.robust import choose
from traingov_policies.select import select
from traingov_policies.values import Objective
from traingov_sim.board.boardspec import load_board

BATCHES = (4, 8, 16, 32, 64, 96, 128, 256)
CALLS = 20


def table(clocks: tuple[int, ...]) -> Lut:
    """Made-up, smooth values: only their number matters here."""
    lut = Lut.empty("made up", "made-up", 4096, BATCHES, clocks)
    time_s = tuple(tuple(9 + 4e9 / f + 60 / b + 20e9 / (f * b) for f in clocks) for b in BATCHES)
    power = tuple(tuple(2.5 + 4 * (f / clocks[-1]) ** 2 + b / 200 for f in clocks) for b in BATCHES)
    return replace(lut, time_s=time_s, peak_power_w=power, mean_power_w=power)


def least_ms(call: Callable[[], object]) -> float:
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times) * 1e3


def measure(board: str) -> dict[str, object]:
    clocks = tuple(load_board(board).gpu.frequencies_hz)
    lut = table(clocks)
    spread = tuple(tuple(0.01 * t for t in row) for row in lut.time_s)  # type: ignore[operator]
    power = tuple(tuple(0.01 * p for p in row) for row in lut.peak_power_w)  # type: ignore[operator]
    unsure = replace(lut, time_std_s=spread, power_std_w=power)
    relation = RelationVector("made-up", BATCHES, tuple((b / 256) ** 0.3 for b in BATCHES))
    choice = choose(unsure, relation, 5.0, Objective.TIME)
    return {
        "board": board,
        "points": len(clocks) * len(BATCHES),
        "exact_ms": least_ms(lambda: select(lut, relation, 5.0, Objective.TIME)),
        "robust_ms": least_ms(lambda: choose(unsure, relation, 5.0, Objective.TIME)),
        "why_ms": least_ms(lambda: detail(choice, unsure, relation, batch_sizes=BATCHES)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(board) for board in ("nano", "agx-orin", "thor")]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"{row['board']:10} {row['points']:4} points: exact {row['exact_ms']:6.2f} ms, "
            f"robust {row['robust_ms']:6.2f} ms, why {row['why_ms']:6.2f} ms"
        )


if __name__ == "__main__":
    main()
