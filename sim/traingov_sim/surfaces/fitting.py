"""Fitting one case: search from several seeds, keep what meets the facts, write the one in the middle down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clocks import CLOCKS_HZ
from .facts import Case
from .generator import BOARD_PARAMETERS, WORKLOAD_PARAMETERS, GeneratedSurface
from .misfit import irregularity_name, misfit, residuals, strict_misfit, tables
from .search import evolve
from .space import Range, Space
from .store import SCHEMA, path_of

GOAL = 1.0  # a search stops here: facts met, without crowding all seeds into one best point
ACCEPT = 4.0  # a fit above this is not counted as consistent with the facts

Parameters = dict[str, float]


@dataclass(frozen=True)
class Fitted:
    """The accepted fits of a case, the one in the middle first."""

    case: Case
    members: tuple[Parameters, ...]
    seeds: tuple[int, ...]
    misfits: tuple[float, ...]


def search(
    case: Case, ranges: Mapping[str, Range], fixed: Mapping[str, float], seed: int, generations: int = 600
) -> tuple[float, Parameters]:
    """One search from one seed, with the parameters of ``fixed`` held: misfit and parameters."""
    space = Space({name: r for name, r in ranges.items() if name not in fixed})
    top = CLOCKS_HZ[case.board][-1]

    def objective(unit: NDArray[np.float64]) -> NDArray[np.float64]:
        return strict_misfit(tables(case, {**space.decode(unit), **fixed}, top))

    point, value = evolve(objective, len(space.names), seed, generations=generations, goal=GOAL)
    parameters = {name: float(v[0]) for name, v in space.decode(point[None]).items()}
    return value, {**parameters, **fixed}


def fit(case: Case, ranges: Mapping[str, Range], fixed: Mapping[str, float], seeds: int) -> Fitted:
    """Search from ``seeds`` seeds and keep what meets the facts. Raises RuntimeError when none does."""
    top = CLOCKS_HZ[case.board][-1]
    found = []
    for seed in range(seeds):
        value, parameters = search(case, ranges, fixed, seed)
        found.append((value, seed, parameters))
    accepted = [f for f in found if f[0] <= ACCEPT]
    if not accepted:
        raise RuntimeError(
            f"{case.board} {case.workload}: no seed met the facts, least misfit {min(f[0] for f in found):.2f} "
            f"against {ACCEPT}; raise --seeds or look at the ranges in space.py"
        )
    logs = []
    for _, _, parameters in accepted:
        t = tables(case, parameters, top)
        logs.append(np.log(np.concatenate([t.sample_s[0].ravel(), t.peak_w[0].ravel()])))
    distance = [sum(float(np.linalg.norm(a - b)) for b in logs) for a in logs]
    order = np.argsort(distance)
    return Fitted(
        case,
        tuple(_rounded(accepted[i][2]) for i in order),
        tuple(accepted[i][1] for i in order),
        tuple(accepted[i][0] for i in order),
    )


def _rounded(parameters: Parameters) -> Parameters:
    return {name: float(f"{value:.8g}") for name, value in parameters.items()}


def surface_of(case: Case, parameters: Parameters, memory: tuple[int, int]) -> GeneratedSurface:
    """The surface of one fit."""
    irregular = {hz: parameters[n] for hz in case.clocks_hz if (n := irregularity_name(hz)) in parameters}
    kept = {name: parameters[name] for name in BOARD_PARAMETERS + WORKLOAD_PARAMETERS}
    return GeneratedSurface(case.board, case.workload, kept, CLOCKS_HZ[case.board][-1], *memory, irregular)


def document(fitted: Fitted, published: Case, memory: tuple[int, int], **more: Any) -> dict[str, Any]:
    """The JSON of the fit in the middle; ``published`` is the case without measured facts."""
    parameters = fitted.members[0]
    t = tables(published, parameters, CLOCKS_HZ[published.board][-1])
    values = residuals(t)
    surface = surface_of(published, parameters, memory)
    facts = [
        {"name": f.name, "kind": f.kind, "source": f.source, "tolerance": f.tolerance, "residual": round(float(r), 4)}
        for f, r in zip(published.facts, values[:, 0], strict=True)
    ]
    return {
        "schema": SCHEMA,
        "board": published.board,
        "workload": published.workload,
        "note": "simulated: parameters chosen to meet published facts, see docs/calibration.md",
        "parameters": dict(surface.parameters),
        "irregularities": {str(hz): factor for hz, factor in surface.irregularities.items()},
        "memory_base_bytes": memory[0],
        "memory_sample_bytes": memory[1],
        "calibration": {
            "seed": fitted.seeds[0],
            "misfit": round(float(misfit(t, values)[0]), 6),
            "accepted_fits": len(fitted.members),
            "facts": facts,
        },
        **more,
    }


def spread(fitted: Fitted, predict: Callable[[GeneratedSurface], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Predictions of the shipped surface with the range over the other accepted fits."""
    rows = [predict(surface_of(fitted.case, p, (0, 0))) for p in fitted.members]
    result = []
    for k, row in enumerate(rows[0]):
        errors = sorted(r[k]["error_percent"] for r in rows)
        result.append({**row, "error_percent_over_fits": [errors[0], round(float(np.median(errors)), 1), errors[-1]]})
    return result


def write(data: dict[str, Any], directory: Path) -> None:
    """Write a surface's file into ``directory``, and say how well it fits."""
    path = path_of(data["board"], data["workload"], directory)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if "calibration" in data:
        c = data["calibration"]
        print(f"{path.name}: misfit {c['misfit']:.3f}, {c['accepted_fits']} accepted fits")
