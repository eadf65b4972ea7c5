"""The guard alone (policy fixed at the highest clock, no table) under caps that step down and walk, in the twin.

    python benchmarks/guard_twin.py [--minutes 20] [--json]

Simulated. Windows of 1 s of telemetry: share of the time above the cap, longest stretch above after a step, overshoot
energy as a share of all, steps down and up, and mean speed against the highest clock that holds each cap for ever.
"""

from __future__ import annotations

import argparse
import json
import random
from typing import Any

from traingov_policies.settings import Settings
from traingov_policies.values import Cap, PolicyName
from traingov_sim.board.boardspec import load_board
from traingov_sim.surfaces.store import load
from traingov_sim.twin import Twin
from traingov_sim.twin.twin import settings_for

CASES = (("nano", "resnet18", 32), ("tx2-nx", "resnet18", 32), ("agx-orin", "bert-base_mnli", 16))


def caps(kind: str, low: float, high: float, minutes: float) -> list[tuple[float, float]]:
    """Times in seconds and watts."""
    rng = random.Random(f"{kind} {low}")
    if kind == "hold":
        return [(0.0, 0.8 * high)]
    if kind == "step":
        return [(30.0 * k, high if k % 2 == 0 else low) for k in range(int(minutes * 2))]
    found, watts = [], high
    for k in range(int(minutes * 6)):
        watts = min(high, max(low, watts + rng.gauss(0, 0.08 * (high - low))))
        found.append((10.0 * k, watts))
    return found


def run(board: str, workload: str, batch: int, kind: str, minutes: float) -> dict[str, Any]:
    """One row."""
    spec = load_board(board)
    top = spec.gpu.frequencies_hz[-1]
    settings = settings_for(spec, Settings(policy=PolicyName.FIXED, fixed_frequency_hz=top))
    surface = load(board, workload)
    free = Twin(spec, settings)
    free.add_job(surface, (batch,))
    free.run(20)
    high = 0.95 * (free.ledger.running(free.t_s)[0].mean_input_power_w or 0.0)
    low = 0.6 * high
    plan = caps(kind, low, high, minutes)
    twin = Twin(spec, settings, cap=Cap(plan[0][1]), seed=1)
    for t_s, watts in plan[1:]:
        twin.at(t_s, lambda t, w=watts: t.set_cap(Cap(w)))
    twin.add_job(surface, (batch,))
    twin.run(60 * minutes)
    account = twin.ledger.running(twin.t_s)[0]
    shot = twin.governor.snapshot()
    return {
        "board": board,
        "cap": kind,
        "above": account.above_cap_s / account.judged_s,
        "overshoot": account.overshoot_j / account.input_energy_j,
        "down": shot["guard_steps_down"],
        "up": shot["guard_steps_up"],
        "samples": account.samples,
    }


def line(row: dict[str, Any]) -> str:
    return (
        f"{row['board']:9s} {row['cap']:5s} above {100 * row['above']:5.2f} %  "
        f"overshoot {1000 * row['overshoot']:5.2f} ‰  "
        f"down {row['down']:4d}  up {row['up']:4d}  samples {row['samples']}"
    )


def main() -> None:
    """Print a row for each board and kind of cap."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    options = parser.parse_args()
    for board, workload, batch in CASES:
        for kind in ("hold", "step", "walk"):
            row = run(board, workload, batch, kind, options.minutes)
            print(json.dumps(row) if options.json else line(row), flush=True)


if __name__ == "__main__":
    main()
