"""DESIGN 8 row 1: what the joint choice loses when the governor profiles through the board's own telemetry.

The twin runs the whole governor: real profiling steps, noisy, quantised, lagging readings, switching and settling
times. r is the true one, so that any loss is the table's. The chosen point is held against the best point of the TRUE
surface: time per sample times r over all points truly below the cap. Truth is taken at the temperature the board
settles at while it trains there. A choice that is truly above the cap is not let off: the guard would step its clock
down, so it counts with the highest clock of its batch size that is truly below the cap, and is counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from traingov_policies.settings import Settings
from traingov_policies.values import Cap

from ..board.boardspec import BoardSpec, load_board, noiseless
from ..surface import Surface, mean_power_w, peak_power_w, step_time_s
from ..surfaces.clocks import CLOCKS_HZ
from ..surfaces.family import load_family
from ..surfaces.published import BATCHES, CAPS_W, ROWS, calibration_row
from ..twin import Twin, settings_for
from .boards import Array, Exact, relation_of
from .convergence import draw
from .published_table import level
from .statistics import distribution

INTERVAL_S = 0.02  # the power monitor's own pace: faster samples repeat its readings
PROFILE_MOST_S = 7200.0
_HOT_W = 6.5  # what a board that has trained uncapped drew before


@dataclass(frozen=True)
class Case:
    """One profiling run. ``loss`` is the time over the best's, less 1, both over the governor's own clocks;
    ``loss_all_clocks`` over the board's full table. ``above_w``: how far the choice truly lies above
    the cap (0: below). ``margin_w``: how far the best point lies below it. ``profile_s``: simulated seconds.
    """

    board: str
    workload: str
    member: int
    cap_w: float | None
    chosen: tuple[int, int]
    best: tuple[int, int]
    loss: float
    loss_all_clocks: float
    above_w: float
    margin_w: float | None
    points: int
    profile_s: float


def settled_peak_w(surface: Surface, spec: BoardSpec, b: int, hz: int) -> float:
    """Peak power at (b, f) once the board's temperature has settled there (leakage rises with it)."""
    mean, peak = mean_power_w(surface, b, hz), peak_power_w(surface, b, hz)
    phases = surface.phases(b, hz)
    compute = sum(p.duration_s * (p.gpu_power_w + p.cpu_power_w) for p in phases) / sum(p.duration_s for p in phases)
    t, factor = spec.thermal, 1.0
    for _ in range(50):
        die = t.ambient_celsius + (t.board_kelvin_per_w * mean + t.die_kelvin_per_w * compute) * factor
        factor = 1 + spec.power.leakage_per_kelvin * (die - spec.power.reference_celsius)
    return peak * factor


@dataclass(frozen=True)
class Truth:
    """The true surface as tables over ``clocks_hz`` [B, F]: weighted seconds, settled peak watts."""

    sizes: tuple[int, ...]
    clocks_hz: tuple[int, ...]
    seconds: Array
    peak_w: Array

    @classmethod
    def of(cls, surface: Surface, spec: BoardSpec, sizes: Sequence[int], samples: Array) -> Truth:
        """``samples`` [B] is N."""
        clocks = CLOCKS_HZ[spec.name]
        seconds = [[step_time_s(surface, b, hz) / b * n for hz in clocks] for b, n in zip(sizes, samples, strict=True)]
        peaks = [[settled_peak_w(surface, spec, b, hz) for hz in clocks] for b in sizes]
        return cls(tuple(sizes), clocks, np.array(seconds), np.array(peaks))

    def best(self, cap_w: float | None, clocks_hz: Sequence[int]) -> tuple[int, int] | None:
        """(b, Hz) of the least time below the cap among these clocks."""
        found: tuple[float, int, int] | None = None
        for i, b in enumerate(self.sizes):
            for hz in clocks_hz:
                j = self.clocks_hz.index(hz)
                below = cap_w is None or self.peak_w[i, j] < cap_w
                if below and (found is None or self.seconds[i, j] < found[0]):
                    found = (float(self.seconds[i, j]), b, hz)
        return None if found is None else found[1:]

    def at(self, point: tuple[int, int]) -> tuple[float, float]:
        """Seconds and settled peak watts."""
        i, j = self.sizes.index(point[0]), self.clocks_hz.index(point[1])
        return float(self.seconds[i, j]), float(self.peak_w[i, j])

    def held_back(
        self, point: tuple[int, int], cap_w: float | None, clocks_hz: Sequence[int] | None = None
    ) -> tuple[int, int]:
        """Where the guard ends up: the highest of ``clocks_hz`` (default: all) that is not above the point's and
        truly below the cap.
        """
        i = self.sizes.index(point[0])
        clocks = self.clocks_hz if clocks_hz is None else clocks_hz
        below = [
            hz
            for hz in clocks
            if hz <= point[1] and (cap_w is None or self.peak_w[i, self.clocks_hz.index(hz)] < cap_w)
        ]
        return (point[0], max(below, default=clocks[0]))


def run_case(
    spec: BoardSpec, surface: Surface, sizes: Sequence[int], samples: Array, cap_w: float | None, *,
    seed: int, member: int = 0, warm: bool = True, settings: Settings | None = None,
) -> Case | None:  # fmt: skip
    """Profile and choose in the twin; None where no point of the true surface is below the cap.

    ``warm``: the board has settled at about the cap's power before, as after an earlier job; else it starts cold.
    """
    truth = Truth.of(surface, spec, sizes, samples)
    twin = Twin(spec, settings, None if cap_w is None else Cap(cap_w), seed, INTERVAL_S)
    thermal = twin.board.thermal
    if warm:
        thermal.board_celsius = thermal.ambient_celsius + spec.thermal.board_kelvin_per_w * (cap_w or _HOT_W)
    twin.add_job(surface, sizes, relation=relation_of(surface.workload, tuple(sizes), samples))
    twin.run(PROFILE_MOST_S, until=lambda t: t.settled)
    decision = twin.decided("joint")
    if decision is None or decision.point is None:
        raise RuntimeError(f"{surface.board} {surface.workload} member {member}: the governor chose nothing")
    table = twin.lut
    clocks = table.gpu_frequencies_hz if table is not None else truth.clocks_hz
    chosen = (decision.point.batch_size, decision.point.gpu_frequency_hz)
    best, best_all = truth.best(cap_w, clocks), truth.best(cap_w, truth.clocks_hz)
    if best is None or best_all is None:
        return None
    above = 0.0 if cap_w is None else max(0.0, truth.at(chosen)[1] - cap_w)
    return Case(
        *(surface.board, surface.workload, member, cap_w, chosen, best),
        truth.at(truth.held_back(chosen, cap_w, clocks))[0] / truth.at(best)[0] - 1,
        truth.at(truth.held_back(chosen, cap_w))[0] / truth.at(best_all)[0] - 1,
        above,
        None if cap_w is None else cap_w - truth.at(best)[1],
        sum(d.kind == "measured" for d in twin.decisions),
        twin.t_s,
    )


def cases(
    members: int, *, noise: bool = True, warm: bool = True, clocks: int | None = None, seed: int = 3
) -> list[Case]:
    """``members`` surfaces of each family at every cap, N drawn for the calibration row.

    ``clocks``: at most so many are profiled; None leaves the setting as it ships.
    """
    found: list[Case] = []
    for k, r in enumerate([r for r in ROWS if r is calibration_row(r.board, r.workload)]):
        family = load_family(r.board, r.workload)
        exact = Exact.of(family, CLOCKS_HZ[r.board])
        rng = np.random.default_rng([seed, k])
        n = draw(BATCHES[r.workload], level(family, exact, r, "baseline1"), level(family, exact, r, "baseline2"), rng)
        spec = load_board(r.board)
        spec = spec if noise else noiseless(spec)
        settings = settings_for(spec)
        if not noise:  # the sensor then repeats itself, which the governor would take for a stuck one
            settings = replace(settings, profile=replace(settings.profile, min_readings=1))
        if clocks is not None:
            settings = replace(settings, profile=replace(settings.profile, max_frequencies=clocks))
        for m in rng.choice(len(family), min(members, len(family)), replace=False):
            for c, cap_w in enumerate(CAPS_W):
                case = run_case(
                    spec,
                    family.surface(int(m)),
                    exact.batch_sizes,
                    n.samples[m],
                    cap_w,
                    seed=1000 * k + 10 * int(m) + c,
                    member=int(m),
                    warm=warm,
                    settings=settings,
                )
                if case is not None:
                    found.append(case)
    return found


def summary(found: Sequence[Case], name: str) -> dict[str, Any]:
    """The comparison of DESIGN 8 row 1. ``clear``: only cases whose best point lies 2 % or more below the cap."""
    capped = [c for c in found if c.cap_w is not None]
    clear = [c for c in found if c.margin_w is None or c.cap_w is None or c.margin_w >= 0.02 * c.cap_w]
    return {
        "comparison": f"time lost by the joint choice, r true, table profiled by the governor ({name})",
        "kind": "predicted",
        "target": {"mean": 0.005, "p95": 0.02},
        "loss": distribution([c.loss for c in found], 5),
        "loss_against_all_clocks": distribution([c.loss_all_clocks for c in found], 5),
        "loss_where_the_best_is_2_percent_below_the_cap": distribution([c.loss for c in clear], 5),
        "by_cap": {
            "none" if cap is None else f"{cap:g} W": distribution([c.loss for c in found if c.cap_w == cap], 5)
            for cap in dict.fromkeys(c.cap_w for c in found)
        },
        "exactly_the_best": round(float(np.mean([c.chosen == c.best for c in found])), 4),
        "truly_above_the_cap": round(float(np.mean([c.above_w > 0 for c in capped])), 4) if capped else None,
        "above_by_w": distribution([c.above_w for c in capped if c.above_w > 0], 3)
        if any(c.above_w > 0 for c in capped)
        else None,
        "points_measured": distribution([c.points for c in found], 1),
        "profiling_s": distribution([c.profile_s for c in found], 1),
    }


def as_rows(found: Sequence[Case]) -> list[dict[str, Any]]:
    """Every case as plain values."""
    return [asdict(case) for case in found]
