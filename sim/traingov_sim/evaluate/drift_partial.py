"""Partial re-profiling on simulated drifts: how many points it takes, and how wrong the table is afterwards.

A case is a member of a calibrated family, a table measured on it with noise, and a change of its physics
(``SHAPES``): the surface generator shares no functional form with the interpolation. Errors are against the changed
surface without noise. "Before" is the error of the table as it was, after the change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traingov_policies.drift.partial import FAILED, PartialPlan
from traingov_policies.drift.settings import DriftSettings
from traingov_policies.lut import Cell, Lut
from traingov_policies.select import select
from traingov_policies.values import OperatingPoint

from ..surfaces.clocks import CLOCKS_HZ
from ..surfaces.family import FAMILIES, PARAMETERS, Family, load_family
from ..surfaces.generator import grid
from ..surfaces.published import BATCHES
from .statistics import distribution

Array = NDArray[np.float64]
Physics = dict[str, Any]  # parameters of the generator: floats, or [B, 1] where they differ by batch size
SEED = 2026
TIME_NOISE, POWER_NOISE = 0.01, 0.005
SAMPLES = 4096


def _memory(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """Another process takes memory bandwidth, and draws power for it."""
    by = rng.uniform(1.2, 2.0)
    return _updated({**_times(p, by, "memory_s", "memory_step_s"), "idle_w": p["idle_w"] + rng.uniform(0, 0.3)}, by)


def _cache(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """A shared cache is fought over: working sets of large batches no longer fit."""
    half = np.exp(rng.uniform(np.log(b[1]), np.log(b[-1])))
    by = 1 + rng.uniform(0.3, 1.2) / (1 + (half / b[:, None]) ** 3)
    return {**p, "memory_s": p["memory_s"] * by}


def _thermal(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """The die is warmer than when the table was measured: leakage."""
    return _times(_times(p, rng.uniform(1.3, 2.0), "leakage_w"), rng.uniform(1.0, 1.03), "idle_w")


def _emc(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """The memory clock is capped: slower and less power."""
    by = rng.uniform(1.25, 2.0)
    return _updated(_times(_times(p, by, "memory_s", "memory_step_s"), rng.uniform(0.6, 0.9), "memory_w"), by)


def _library(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """Faster kernels, other launch costs, a busier GPU."""
    faster = _times(p, rng.uniform(0.7, 0.95), "compute_s")
    return _times(_times(faster, rng.uniform(0.8, 1.1), "launch_s"), rng.uniform(1.0, 1.1), "activity")


def _host(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """Another process takes CPU time: loading and launching are slower."""
    slower = _times(p, rng.uniform(1.2, 1.8), "host_step_s", "host_sample_s", "launch_s")
    return {**slower, "idle_w": p["idle_w"] + rng.uniform(0.1, 0.4)}


def _uniform(p: Physics, b: Array, rng: np.random.Generator) -> Physics:
    """All work takes longer alike."""
    names = (*("compute_s", "memory_s", "memory_step_s", "launch_s", "host_step_s", "host_sample_s", "update_s"),)
    return _times(p, rng.uniform(1.06, 1.3), *names)


SHAPES: dict[str, Callable[[Physics, Array, np.random.Generator], Physics]] = {
    "memory contention": _memory,
    "cache contention": _cache,
    "warm die": _thermal,
    "memory clock capped": _emc,
    "library update": _library,
    "processor contention": _host,
    "uniform slowdown": _uniform,
}


def partial_figures(cases: int = 40, seed: int = SEED) -> dict[str, Any]:
    """``cases`` for each of SHAPES, over all families in turn. Kind "calibrated".

    For each shape: ``points_share`` (measured again over the table's points), ``time_error``, ``power_error``
    (absolute relative errors; ``mean`` over a table's cells and ``worst`` cell of a table, each a distribution over
    tables that were corrected), ``before`` (the same mean of time before), ``outcomes`` (counts), ``loss``
    (of the choice from the corrected table against the best of the true one, under a cap; ``loss_full`` from a table
    measured anew in full with the same noise, ``loss_stale`` of the point chosen before).
    """
    began = time.monotonic()
    shapes = {name: _shape(name, cases, seed + k) for k, name in enumerate(SHAPES)}
    return {"kind": "calibrated", "seed": seed, "shapes": shapes, "took_s": round(time.monotonic() - began, 1)}


def _shape(name: str, cases: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    outcomes: dict[str, int] = {}
    rows: list[dict[str, float]] = []
    for k in range(cases):
        row = _case(name, FAMILIES[k % len(FAMILIES)], rng, outcomes)
        if row is not None:
            rows.append(row)
    columns = (
        "share",
        "points",
        "time",
        "time_worst",
        "power",
        "power_worst",
        "before",
        "before_power",
        "loss",
        "loss_full",
        "loss_stale",
    )
    return {"outcomes": outcomes, **{c: distribution([r[c] for r in rows]) if rows else None for c in columns}}


def _case(
    name: str, family: tuple[str, str], rng: np.random.Generator, outcomes: dict[str, int]
) -> dict[str, float] | None:
    members = load_family(*family)
    clocks, sizes = CLOCKS_HZ[family[0]], BATCHES[family[1]].sizes
    member = int(rng.integers(len(members)))
    physics = physics_of(members, member)
    old = truth(physics, sizes, clocks)
    new = truth(SHAPES[name](physics, np.array(sizes, float), rng), sizes, clocks)
    table = measured_table(family, sizes, clocks, old, rng)
    powers = np.sort(old[1].ravel())
    cap_w = float(powers[int(len(powers) * rng.uniform(0.4, 1.0)) - 1]) * 1.02

    def best(lut: Lut) -> OperatingPoint | None:
        try:
            return select(lut, None, cap_w * 0.99, measured_only=True).chosen.point
        except ValueError:
            return None

    present = best(table)
    assert present is not None
    plan = PartialPlan(table, cap_w, [present], DriftSettings(), best)
    while (point := plan.next_point()) is not None:
        plan.tell(point, _cell(new, *table.index(point), rng))
    outcome = plan.outcome()
    outcomes[outcome.result] = outcomes.get(outcome.result, 0) + 1
    if outcome.result == FAILED:
        return None
    times = np.abs(np.array(outcome.lut.time_s, float) / new[0] - 1)
    watts = np.abs(np.array(outcome.lut.peak_power_w, float) / new[1] - 1)
    again = best(measured_table(family, sizes, clocks, new, rng))
    chosen = best(outcome.lut)
    feasible = np.where(new[1] < cap_w, new[0], np.inf)

    def loss(point: OperatingPoint | None) -> float:
        i, j = outcome.lut.index(point or present)
        return float(new[0][i, j] / feasible.min() - 1) if np.isfinite(feasible.min()) else 0.0

    return {
        "share": plan.measured / times.size,
        "points": plan.measured,
        "time": float(times.mean()),
        "time_worst": float(times.max()),
        "power": float(watts.mean()),
        "power_worst": float(watts.max()),
        "before": float(np.abs(old[0] / new[0] - 1).mean()),
        "before_power": float(np.abs(old[1] / new[1] - 1).mean()),
        "loss": loss(chosen),
        "loss_full": loss(again),
        "loss_stale": loss(present),
    }


def physics_of(members: Family, member: int) -> Physics:
    """The parameters of one member of a family."""
    return {n: float(members.parameters[n][member]) for n in PARAMETERS}


def truth(p: Physics, sizes: tuple[int, ...], clocks: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Seconds for SAMPLES samples, peak and mean watts: [B, F] each."""
    b = np.array(sizes, float)
    steps = grid(p, b, np.array(clocks, float) / clocks[-1])
    seconds = steps.time_s() * SAMPLES / b[:, None]
    return np.asarray(seconds), np.asarray(steps.peak_input_w(1.0)), np.asarray(steps.mean_input_w())


def _cell(true: tuple[Array, Array, Array], i: int, j: int, rng: np.random.Generator) -> Cell:
    t = float(true[0][i, j]) * float(np.exp(TIME_NOISE * rng.standard_normal()))
    by = float(np.exp(POWER_NOISE * rng.standard_normal()))
    peak, mean = float(true[1][i, j]) * by, float(true[2][i, j]) * by
    return Cell(t, peak, mean, "measured", TIME_NOISE * t, POWER_NOISE * peak)


def measured_table(
    family: tuple[str, str],
    sizes: tuple[int, ...],
    clocks: tuple[int, ...],
    true: tuple[Array, Array, Array],
    rng: np.random.Generator,
) -> Lut:
    """A whole table of ``true``, with the noise of measuring it."""
    cells = [[_cell(true, i, j, rng) for j in range(len(clocks))] for i in range(len(sizes))]

    def rows(name: str) -> Any:
        return tuple(tuple(getattr(c, name) for c in row) for row in cells)

    names = ("time_s", "peak_power_w", "mean_power_w", "origin", "time_std_s", "power_std_w")
    empty = Lut.empty(family[0], family[1], SAMPLES, sizes, clocks)
    return replace(empty, **{n: rows(n) for n in names})


def _times(p: Physics, by: float, *names: str) -> Physics:
    return {**p, **{n: p[n] * by for n in names}}


def _updated(p: Physics, by: float) -> Physics:
    """The part of the optimizer's update that waits for memory takes ``by`` as long."""
    u = p["update_scaling"]
    whole = (1 - u) * by + u
    return {**p, "update_s": p["update_s"] * whole, "update_scaling": u / whole}
