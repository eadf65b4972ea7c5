"""Sampling the families: ``python -m traingov_sim.surfaces.family_sampling`` (some minutes each).

The walk's density is exp(−misfit / 2) where no residual exceeds 1 tolerance, and nothing elsewhere: 1.5 % for cells
(2 % on the TX2 NX), 0.1 W for power. The joint cells, CINIC and Dickens take no part. Each workload's family is
sampled by itself, board parameters included.

On the TX2 NX two things are not published and vary over its family: the baselines' clocks (every pair whose best
misfit is within 1 of the least; each has as many members) and N of baseline 2's batch size relative to baseline 1's,
which comes from the Nano's ResNet18 family, since N does not depend on the board.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from .calibrate import with_shape
from .clocks import CLOCKS_HZ
from .ensemble import Draws, effective_draws, gelman_rubin, walk_ensembles
from .facts import Fact
from .family import (
    DIRECTORY,
    FAMILIES,
    FORBIDDEN,
    PARAMETERS,
    SCHEMA,
    Family,
    Values,
    hash_of,
    load_family,
    within_tolerance,
)
from .misfit import MARGIN_W, Tables, residuals, strict_misfit, tables
from .published import BASELINE_HZ, BATCHES, calibration_row, nano_case, tx2_case
from .search import Array, Objective, evolve
from .space import BOARD_RANGES, Range, Space, workload_ranges
from .store import read

RATIO = "samples_ratio"  # TX2 NX: N(baseline 2's batch) / N(baseline 1's), a sampled parameter
_CLOCKS_WITHIN = 1.0


def holds_strictly(t: Tables) -> Array:
    """Whether each member violates no inequality at all (a residual of margin / (tolerance + margin) is the edge)."""
    ok = np.ones(t.sample_s.shape[0], dtype=bool)
    for fact, values in zip(t.case.facts, residuals(t), strict=True):
        if type(fact.measure).__name__ in ("HighestClock", "ClockAbove", "SafeClock"):
            ok &= values <= MARGIN_W / (fact.tolerance + MARGIN_W) + 1e-9
    return ok


@dataclass(frozen=True)
class Problem:
    """What is sampled: a space, the facts as a function of its values, and the clocks taken for the baselines."""

    board: str
    workload: str
    space: Space
    evaluate: Callable[[Values], Tables]
    extra: Callable[[Values], Array]
    facts: tuple[Fact, ...]
    baseline_hz: tuple[int, int, int]

    def density(self, unit: Array) -> Array:
        """Misfit with its wall: what the walk samples."""
        values = self.space.decode(unit)
        return within_tolerance(self.evaluate(values)) + self.extra(values)

    def strict(self, unit: Array) -> Array:
        """The misfit that a start is searched with."""
        values = self.space.decode(unit)
        return strict_misfit(self.evaluate(values)) + self.extra(values)


def nano_problem(workload: str, data: Path) -> Problem:
    """A workload of the Nano; its power over the clock also follows the measured shape, where that is at hand."""
    case = with_shape(nano_case(workload), data)
    batches = BATCHES[workload]
    sample_s = calibration_row("nano", workload).baseline1[2] / batches.passes / batches.pass_samples
    space = Space({**BOARD_RANGES["nano"], **workload_ranges("nano", sample_s)})
    top = CLOCKS_HZ["nano"][-1]
    return Problem(
        *("nano", workload, space, lambda values: tables(case, values, top), lambda values: np.zeros(1)),
        *(case.facts, BASELINE_HZ),
    )


def tx2_problem(clocks_hz: tuple[int, int, int], ratio: tuple[float, float], passes: float) -> Problem:
    """ResNet18 on the TX2 NX with these baseline clocks. ``ratio``: mean and sd of log N(8) / N(128) on the Nano."""
    batches = BATCHES["resnet18"]
    sample_s = calibration_row("tx2-nx", "resnet18").baseline1[2] / passes / batches.pass_samples
    mean, sd = ratio
    wide: Range = (float(np.exp(mean - 4 * sd)), float(np.exp(mean + 4 * sd)))
    space = Space({**BOARD_RANGES["tx2-nx"], **workload_ranges("tx2-nx", sample_s), RATIO: wide})
    top = CLOCKS_HZ["tx2-nx"][-1]

    def evaluate(values: Values) -> Tables:
        fewer: Any = passes * values[RATIO]  # one N per member: facts.Cell takes arrays as well as numbers
        case = tx2_case({batches.baseline1: passes, batches.baseline2: fewer}, clocks_hz)
        return tables(case, {n: values[n] for n in PARAMETERS}, top)

    facts = tx2_case({batches.baseline1: passes, batches.baseline2: passes}, clocks_hz).facts
    return Problem(
        *("tx2-nx", "resnet18", space, evaluate, lambda values: ((np.log(values[RATIO]) - mean) / sd) ** 2),
        *(facts, clocks_hz),
    )


def sample(problem: Problem, steps: int, seed: int, ensembles: int = 4, keep: int = 200) -> Draws:
    """Starts from ``ensembles`` searches, then the walks. Raises RuntimeError when no start meets the facts."""
    starts = []
    for k in range(10 * ensembles):
        point, _ = evolve(problem.strict, len(problem.space.names), seed + k, goal=1.0)
        if float(problem.density(point[None])[0]) < FORBIDDEN:
            starts.append(point)
        if len(starts) == ensembles:
            break
    else:
        raise RuntimeError(f"{problem.board} {problem.workload}: only {len(starts)} searches met the facts")
    objective: Objective = problem.density
    return walk_ensembles(objective, np.stack(starts), seed, steps=steps, keep=keep)


def diagnose(problem: Problem, draws: Draws) -> dict[str, float]:
    """How well the walk mixed: worst R-hat, fewest effective draws over log seconds and peak watts of the table."""
    e, k, w, d = draws.points.shape
    t = problem.evaluate(problem.space.decode(draws.points.reshape(-1, d)))
    logs = np.concatenate([np.log(t.sample_s).reshape(e * k * w, -1), np.log(t.peak_w).reshape(e * k * w, -1)], axis=1)
    chains = np.moveaxis(logs.reshape(e, k, w, -1), 1, 2).reshape(e * w, k, -1)
    hats = [gelman_rubin(chains[:, :, q]) for q in range(chains.shape[2])]
    means = [gelman_rubin(chains[:, :, q].reshape(e, w, k).mean(axis=1)) for q in range(chains.shape[2])]
    return {
        "ensembles": e,
        "walkers": w,
        "accepted": round(draws.accepted, 3),
        "worst_r_hat": round(max(hats), 3),
        "median_r_hat": round(float(np.median(hats)), 3),
        "worst_r_hat_of_ensemble_means": round(max(means), 3),
        "least_effective_draws": round(min(effective_draws(chains[:, :, q]) for q in range(chains.shape[2]))),
        "median_misfit": round(float(np.median(draws.misfits)), 2),
    }


def document(parts: list[tuple[Problem, Draws]], members: int, seed: int, command: str) -> dict[str, Any]:
    """The file of a family: ``members`` draws, as many from each part."""
    rng = np.random.default_rng([seed, 99])
    names = parts[0][0].space.names
    rows: list[list[float]] = []
    clocks: list[list[int]] = []
    strict: list[bool] = []
    for problem, draws in parts:
        points = draws.points.reshape(-1, len(names))
        picked = points[rng.choice(len(points), members // len(parts), replace=False)]
        values = problem.space.decode(picked)
        rounded = [[float(f"{values[n][i]:.6g}") for n in names] for i in range(len(picked))]
        rows += rounded
        clocks += [list(problem.baseline_hz)] * len(picked)
        kept = {n: np.array([r[j] for r in rounded]) for j, n in enumerate(names)}
        strict += [bool(s) for s in holds_strictly(problem.evaluate(kept))]
    first = parts[0][0]
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "board": first.board,
        "workload": first.workload,
        "note": "simulated: parameters that meet published facts within their tolerance, see docs/evaluation.md",
        "command": command,
        "facts": [{"name": f.name, "kind": f.kind, "tolerance": f.tolerance, "source": f.source} for f in first.facts],
        "diagnostics": [{"baseline_hz": list(p.baseline_hz), **diagnose(p, d)} for p, d in parts],
        "names": list(names),
        "members": rows,
        "baseline_hz": clocks,
        "strict": strict,
    }
    return {**data, "sha256": hash_of(data)}


def write(data: dict[str, Any], directory: Path = DIRECTORY) -> None:
    """Write the file, a member a line, and say what came out."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{data['board']}-{data['workload']}.json"
    lines = []
    for key, value in data.items():
        if key in ("members", "facts", "diagnostics"):
            inner = ",\n  ".join(json.dumps(row) for row in value)
            lines.append(f" {json.dumps(key)}: [\n  {inner}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    held = sum(data["strict"])
    print(f"{path.name}: {len(data['members'])} members, {held} without any violation, {data['sha256'][:12]}")
    for d in data["diagnostics"]:
        print(f"  {d}")


def samples_ratio(family: Family) -> tuple[float, float]:
    """Mean and sd over a Nano family of log N(baseline 2's batch) / N(baseline 1's), from the calibration row."""
    batches, r = BATCHES[family.workload], calibration_row(family.board, family.workload)
    t = family.tables(BASELINE_HZ)
    logs = []
    for b, cells in ((batches.baseline2, r.baseline2), (batches.baseline1, r.baseline1)):
        seconds = np.array([c for c in cells if c is not None])
        logs.append(np.log(seconds / t.sample_s[:, batches.sizes.index(b), :]).mean(axis=1))
    ratio = logs[0] - logs[1]
    return float(ratio.mean()), float(ratio.std())


@click.command()
@click.option("--steps", default=80_000, show_default=True, help="Steps of each walk; the second half is kept.")
@click.option("--members", default=160, show_default=True, help="Surfaces kept of each family.")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", default="", help="Only the families whose BOARD-WORKLOAD holds this text.")
@click.option("--directory", default=DIRECTORY, type=click.Path(path_type=Path))
@click.option("--data", default=Path("../shared/data"), type=click.Path(path_type=Path), help="Measured data.")
def main(  # noqa: PLR0917
    steps: int, members: int, seed: int, only: str, directory: Path, data: Path
) -> None:
    """Sample the families of boards; some minutes each. The TX2 NX needs the Nano's ResNet18."""
    command = f"python -m traingov_sim.surfaces.family_sampling --steps {steps}"
    command += f" --members {members} --seed {seed}"
    for board, workload in FAMILIES:
        if only not in f"{board}-{workload}":
            continue
        if board == "nano":
            problems = [nano_problem(workload, data)]
        else:
            shipped = read(board, workload)
            passes = float(shipped["known_samples"][str(BATCHES[workload].baseline1)])
            tried = shipped["clocks_tried"]
            near = [t["clocks_hz"] for t in tried if t["misfit"] <= tried[0]["misfit"] + _CLOCKS_WITHIN]
            ratio = samples_ratio(load_family("nano", workload, directory))
            problems = [tx2_problem((c[0], c[1], c[2]), ratio, passes) for c in near]
        parts = [(p, sample(p, steps // len(problems), seed + 100 * k)) for k, p in enumerate(problems)]
        write(document(parts, members, seed, command), directory)


if __name__ == "__main__":
    main()
