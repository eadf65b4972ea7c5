"""What following a changing cap with the batch size brings and costs, on the discrete-event twin. All simulated.

The cap goes between none and 4.5 W by turns. Progress is samples over r, so that batch sizes compare. What a change of
the batch size wastes is not in the twin's samples, so it is taken off: 20 steps' samples a change, in the middle of
what docs/evaluation.md measures (13 to 29), and all there is at the most. "at once": the batch size follows each change
of the cap; "never": that of the first choice is kept; "default": the settings as they ship. Both jobs use the digits
network's r. The watch for drift is off: one thing at a time.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from traingov_policies.actions import AdviseBatch
from traingov_policies.drift.settings import DriftSettings
from traingov_policies.following import FollowSettings
from traingov_policies.relation import RelationVector
from traingov_policies.settings import Settings
from traingov_policies.values import Cap
from traingov_sim.board.boardspec import load_board
from traingov_sim.surfaces import load
from traingov_sim.twin import Twin

RELATION = Path(__file__).parents[1] / "etc/relations/digits-mlp.json"
BATCHES = (8, 16, 32, 64, 128)
WASTED_STEPS = 20
LOW = Cap(4.5)
FOLLOWING = {
    "never": FollowSettings(hold_s=1e9, hold_most_s=1e9),
    "at once": FollowSettings(hold_s=0.0, hold_most_s=0.0, gain_least=0.0, change_s=0.0, change_steps=0.0),
    "default": FollowSettings(),
}


def progress(workload: str, following: FollowSettings, period_s: float, seconds: float) -> tuple[float, int]:
    """Samples to accuracy that ``seconds`` bring, wasted ones taken off, and how often the batch size changed."""
    relation = replace(RelationVector.from_json(json.loads(RELATION.read_text(encoding="utf-8"))), workload=workload)
    settings = Settings(following=following, drift=DriftSettings(enabled=False))
    table = None
    for cap in (LOW, None):  # both caps' points are measured before: this is about following, not about profiling
        teacher = Twin(load_board("nano"), settings=settings, cap=cap, seed=1, interval_s=0.05)
        teacher.add_job(load("nano", workload), BATCHES, relation=relation, lut=table)
        teacher.run(until=lambda twin: twin.settled)
        table = teacher.lut or table
    twin = Twin(load_board("nano"), settings=settings, seed=2, interval_s=0.1)
    twin.add_job(load("nano", workload), BATCHES, relation=relation, lut=table)
    for k in range(1, int(seconds / period_s)):
        cap = LOW if k % 2 else None
        twin.at(twin.t_s + k * period_s, lambda twin, cap=cap: twin.set_cap(cap))
    twin.run(seconds)
    advised = [a.batch_size for a in twin.of(AdviseBatch) if a.phase == "train"]
    changes = [b for a, b in pairwise(advised) if a != b]
    summary = twin.end()
    useful = sum(n / (relation.of(int(b)) or 1.0) for b, n in summary.samples_by_batch.items())
    wasted = sum(WASTED_STEPS * b / (relation.of(b) or 1.0) for b in changes)
    return max(0.0, useful - wasted), len(changes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="simulated seconds of each run")
    parser.add_argument("--workloads", default="digits-mlp,resnet18")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    options = parser.parse_args()
    if not options.json:
        print(
            f"simulated Nano, cap none / 4.5 W by turns, {options.seconds:g} s; "
            "progress against `never` (batch changes)"
        )
    for workload in options.workloads.split(","):
        for period_s in (4.0, 20.0, 60.0, 300.0, 900.0):
            found = {name: progress(workload, f, period_s, options.seconds) for name, f in FOLLOWING.items()}
            if options.json:
                for name, (useful, changes) in found.items():
                    row = {"workload": workload, "period_s": period_s, "following": name}
                    print(json.dumps({**row, "progress": useful, "changes": changes}), flush=True)
                continue
            never = found["never"][0]
            shown = "  ".join(f"{name} {100 * (p / never - 1):+5.1f} % ({n})" for name, (p, n) in found.items())
            print(f"{workload:>11}, every {period_s:3.0f} s:  {shown}", flush=True)


if __name__ == "__main__":
    main()
