"""What N the published uncapped joint cell of ResNet18 asks for, batch size by batch size.

Uncapped, the joint choice runs at the top clock, so its cell is T_s(b) · N(b) there, and N(b) follows for whichever b
it was. Over N of baseline 2's batch size this is a number that the paper's statements can be held against: figure 2 has
N(32) = 1.5 · N(8) at some target accuracy, and baseline 2's batch size needs the fewest samples on the proxy, so that a
ratio far below 1 contradicts either that or the batch size assumed for baseline 2.
"""

from __future__ import annotations

from typing import Any

from ..surfaces.clocks import CLOCKS_HZ
from ..surfaces.family import load_family
from ..surfaces.published import BATCHES, ROWS
from .boards import Exact
from .published_table import level
from .statistics import distribution


def implied_samples() -> list[dict[str, Any]]:
    """One comparison for each ResNet18 row: N(b) / N(baseline 2's batch) by b, over the family."""
    out: list[dict[str, Any]] = []
    for r in ROWS:
        batches = BATCHES[r.workload]
        if batches.third is None:
            continue
        exact = Exact.of(load_family(r.board, r.workload), CLOCKS_HZ[r.board])
        n1, n2 = (level(exact.family, exact, r, which) for which in ("baseline1", "baseline2"))
        ratios = {
            str(b): distribution(r.joint[2] / exact.sample_s[:, i, -1] / n2, 3)
            for i, b in enumerate(exact.batch_sizes)
            if b not in (batches.baseline1, batches.baseline2)
        }
        out.append(
            {
                "comparison": "N that the published uncapped joint cell asks for, over N of baseline 2's batch size",
                "kind": "predicted",
                "board": r.board,
                "workload": r.workload,
                "dataset": r.dataset,
                "assumed_baseline2": batches.baseline2,
                "assumed_third": batches.third,
                "figure_2": {"32": 1.5},
                "baseline1_over_baseline2": distribution(n1 / n2, 3),
                "implied": ratios,
            }
        )
    return out
