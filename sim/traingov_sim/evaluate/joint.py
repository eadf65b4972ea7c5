"""``traingov-sim evaluate joint``: puts the parts together (issue: the joint policy, complete)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..board.boardspec import load_board
from ..surfaces.family import FAMILIES, load_family
from ..surfaces.published import BATCHES, ROWS
from . import convergence, published_table, regret, training
from .third_batch import implied_samples

Say = Callable[[str], None]

# Parts with modules of their own: name → (module, function, folder of the measurements it uses).
MORE = {
    "profiling": ("traingov_sim.evaluate.profiling", "evaluate_profiling", "loudva"),
    "zeus": ("traingov_sim.evaluate.zeus", "evaluate_zeus", "zeus"),
}
MEMBERS = 32  # surfaces of each family that the governor profiles in the twin
PARTS = ("table", "regret", "training", *MORE)


def evaluate_joint(
    parts: tuple[str, ...] = PARTS, *, members: int = MEMBERS, quick: bool = False, data: Path = Path("../shared/data"),
    say: Say = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """Every comparison as plain values. ``quick``: one surface a family in the twin and two profiling seeds.

    ``data`` is where public measurements lie, for the parts that use them. Raises ValueError for an unknown part.
    """
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise ValueError(f"evaluate joint: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    comparisons: list[dict[str, Any]] = []
    if "table" in parts:
        say("the published table over the families")
        comparisons += table() + implied_samples()
    if "regret" in parts:
        comparisons += regrets(1 if quick else members, quick, say)
    if "training" in parts:
        say("real training")
        comparisons += training.against_the_baselines(2 if quick else 5)
        comparisons += training.over_the_family() + training.mid_run_switches()
        comparisons += training.repeated_switches() + training.changing_cap()
    for name in MORE:
        if name in parts:
            say(name)
            comparisons += more(name, quick, data)
    return {"families": families(), "assumed": assumed(), "comparisons": comparisons}


def table() -> list[dict[str, Any]]:
    """All rows with the six clocks of the figures and all twelve, N sampled; and ResNet18 with N(32) of figure 2."""
    out: list[dict[str, Any]] = []
    for variant, clocks in (("sampled", "six"), ("sampled", "twelve"), ("figure 2", "six")):
        rows = [r for r in ROWS if variant == "sampled" or BATCHES[r.workload].third is not None]
        results = [
            published_table.evaluate_row(r, clocks if r.board == "nano" else "thirteen", variant)
            for r in rows
            if clocks == "six" or r.board == "nano"
        ]
        for result in results:
            out += published_table.cells(result)
            out += published_table.speed_ups(result)
        if variant == "sampled" and clocks == "six":
            out.append(published_table.overall(results))
        out.append(
            {
                "comparison": "noise-free table, r true: the joint choice is the exhaustive best",
                "kind": "predicted",
                "clocks": clocks,
                "variant": variant,
                "target": 1.0,
                "share": sum(r.exact for r in results) / sum(r.judged for r in results),
                "cases": sum(r.judged for r in results),
            }
        )
    return out


def regrets(members: int, quick: bool, say: Say) -> list[dict[str, Any]]:
    """DESIGN 8 row 1, in the twin: as the board is, from cold, and without any noise."""
    out: list[dict[str, Any]] = []
    fewer = max(1, members // 4)
    runs: list[tuple[str, int, dict[str, Any]]] = [("warm board, noisy telemetry", members, {})]
    if not quick:
        runs.append(("cold board, noisy telemetry", fewer, {"warm": False}))
        runs.append(("every clock of the board, noisy telemetry", fewer, {"clocks": 99}))
    runs.append(("no noise, quantised telemetry", fewer, {"noise": False}))
    for name, count, options in runs:
        say(f"profiling in the twin: {name}, {count} surfaces of each family")
        found = regret.cases(count, **options)
        out.append(regret.summary(found, name) | {"cases": regret.as_rows(found)})
    return out


def more(name: str, quick: bool, data: Path) -> list[dict[str, Any]]:
    """The comparisons of another module; one entry that says so where it is not there."""
    module, function, folder = MORE[name]
    if importlib.util.find_spec(module) is None:
        return [{"comparison": name, "kind": "measured-data", "absent": f"{module} is not installed"}]
    call = getattr(importlib.import_module(module), function)
    known = inspect.signature(call).parameters
    given: dict[str, Any] = {"directory": data / folder, "data": data, "quick": quick}
    if quick:
        given["seeds"] = 5
    result: list[dict[str, Any]] = call(**{k: v for k, v in given.items() if k in known})
    return result


def families() -> list[dict[str, Any]]:
    """What the evaluation is frozen to: members, hash and convergence of each family."""
    out = []
    for board, workload in FAMILIES:
        f = load_family(board, workload)
        out.append(
            {
                "board": board,
                "workload": workload,
                "members": len(f),
                "without_any_violation": sum(f.strict),
                "sha256": f.sha256,
                "diagnostics": f.diagnostics,
            }
        )
    return out


def assumed() -> dict[str, Any]:
    """What the paper does not publish and is assumed here."""
    sensor = load_board("nano").sensor
    return {
        "batch_sizes": {w: {"baseline1": b.baseline1, "baseline2": b.baseline2} for w, b in BATCHES.items()},
        "third_batch_size_of_resnet18": BATCHES["resnet18"].third,
        "log_samples_sd_per_doubling": convergence.STEP_SD,
        "fewest_samples_slack": convergence.SLACK,
        "proxy_log_sd": convergence.PROXY_SD,
        "sensor": {"noise_sd_of_second_means": sensor.noise_sd, "autocorrelation": sensor.noise_autocorrelation},
    }
