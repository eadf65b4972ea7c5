"""What each way of choosing a clock does with the energy paper's workloads on one virtual AGX Orin (method B).

A method's answer for a pair is time and energy over mode 0's. The fixed ones and the trees are judged as the paper
judges them, at the chosen clock and without the cost of finding it; the search is judged over the whole job of the
task's length, one epoch, probing included. Everything is simulated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from traingov_policies.fitting import Fitted, dataset, grid_search, to_tree
from traingov_policies.search.curves import Curve
from traingov_policies.search.options import SearchSettings
from traingov_policies.settings import Settings
from traingov_policies.sweep import SweepRow, curves
from traingov_policies.sweeping import SAMPLES
from traingov_policies.tree import Tree
from traingov_policies.values import Features, PolicyName

from ..board.boardspec import load_board
from ..surfaces.orin_family import Curves, OrinFamily
from ..surfaces.orin_pairs import CLOCKS, EXAMPLES, PAIRS, TRAINING_PAIRS, Pair
from ..surfaces.published_orin import BATCH, FFG_HZ
from ..twin import settings_for
from .energy_job import STRIDE_S, Costs, GovernedJob

METHODS = (
    *("mode0", "mode2", "ffg", "mlg", "cost_tree"),
    *("search", "search_first", "search_cost_tree", "search_again", "best"),
)
SWEEP_NOISE_SD = 0.005  # of a point that ran for five minutes: run to run
_OTHERS = 12

# Algorithm 1 as shipped in etc/trees/algorithm-1.json, which a test compares.
ALGORITHM_1 = {
    "schema": "traingov.tree/1",
    "name": "algorithm-1",
    "board": "agx-orin",
    "max_frequency_hz": 1300500000,
    "tree": {
        **{"feature": "gpu_utilization", "threshold": 22.0, "missing": "gt", "le": {"gpu_frequency_hz": 1020000000}},
        "gt": {
            **{"feature": "layers", "threshold": 7, "missing": "gt"},
            "le": {
                **{"feature": "seq_len_avg", "threshold": 32.5, "missing": "gt"},
                **{"le": {"gpu_frequency_hz": 510000000}, "gt": {"gpu_frequency_hz": 612000000}},
            },
            "gt": {
                **{"feature": "seq_len_avg", "threshold": 53.0, "missing": "le"},
                **{"le": {"gpu_frequency_hz": 714000000}, "gt": {"gpu_frequency_hz": 816000000}},
            },
        },
    },
}

# Power mode 2, "30W", of the AGX Orin as NVIDIA's table has it: 4 of 8 TPCs, GPU at most 612 MHz of this clock table,
# 8 CPU cores at 1728 MHz. What that does to a step is assumed: computing takes twice as long on half the TPCs, which
# draw 55 % of the switching and leakage; the host takes 2201.6 / 1728 of its time at 60 % of its power.
MODE_2_HZ = 612_000_000
MODE_2 = {
    **{"compute_s": 2.0, "dynamic_w": 0.55, "leakage_w": 0.55, "cpu_host_w": 0.6, "cpu_wait_w": 0.7},
    **{"host_step_s": 1.274, "host_sample_s": 1.274, "launch_s": 1.274},
}


@dataclass(frozen=True)
class Outcome:
    """Energy saved and time taken against mode 0, as shares (0.12 saved, 1.3 times); the clock, and probes made."""

    saving: float
    time: float
    clock_hz: int | None
    probes: int = 0


class Family:
    """Curves of a family, computed once."""

    def __init__(self, family: OrinFamily) -> None:
        self.family = family
        self._curves: dict[str, Curves] = {}
        self._mode_2: dict[str, Curves] = {}

    def curves(self, pair: Pair) -> Curves:
        """Time and energy of a pair over the clocks."""
        if pair.name not in self._curves:
            self._curves[pair.name] = self.family.curves(pair.name)
        return self._curves[pair.name]

    def mode_2(self, pair: Pair) -> Curves:
        """The same in the 30 W mode."""
        if pair.name not in self._mode_2:
            self._mode_2[pair.name] = self.family.curves(pair.name, MODE_2)
        return self._mode_2[pair.name]


class OneBoard:
    """One member of the family: its trees, fitted to a sweep of its training tasks, and every method's answers."""

    def __init__(self, family: Family, member: int, seed: int, settings: SearchSettings | None = None) -> None:
        self._family, self._member = family, member
        self._rng = np.random.default_rng([seed, member])
        self._settings = settings or SearchSettings()
        self.sweep = sweep_rows(family, member, self._rng)
        self.data = dataset(curves(self.sweep))
        self.by_regret: Fitted = grid_search(self.data, cost_sensitive=True)
        self.cost_tree = to_tree(self.by_regret.node, self.data, "regret", "agx-orin")
        self._known = [self._curve(p) for p in self._history()]
        self._memory: dict[str, Curve | None] = {}

    def features(self, pair: Pair) -> dict[str, float | str | None]:
        """What a tree is told of a pair; utilization as it is at mode 0."""
        m = pair.model
        busy = float(self._family.curves(pair).utilization[self._member, -1])
        return {
            **{"model_type": m.model_type, "layers": m.layers, "hidden_size": m.hidden_size},
            **{"seq_len_avg": pair.seq_len_avg, "gpu_utilization": busy},
        }

    def outcome(self, pair: Pair, method: str) -> Outcome:
        """What ``method`` makes of a pair. Raises KeyError for an unknown method."""
        t, e = self.of(pair)
        if method == "mode0":
            return Outcome(0.0, 1.0, None)
        if method == "mode2":
            limited = self._family.mode_2(pair)
            at = CLOCKS.index(MODE_2_HZ)
            time, energy = float(limited.time_s[self._member, at]), float(limited.compute_j[self._member, at])
            return Outcome(1 - energy / e[-1], time / t[-1], MODE_2_HZ)
        if method == "ffg":
            return self._at(pair, FFG_HZ)
        if method == "mlg":
            return self._at(pair, self._tree_hz(pair, algorithm_1()))
        if method == "cost_tree":
            return self._at(pair, self._tree_hz(pair, self.cost_tree))
        if method == "best":
            return self._at(pair, CLOCKS[int(e.argmin())])
        tree, curves = {
            "search": (algorithm_1(), self._known),
            "search_first": (algorithm_1(), ()),
            "search_cost_tree": (self.cost_tree, self._known),
            "search_again": (algorithm_1(), self._known),
        }[method]
        if method == "search_again":  # the workload's second run on the board: what was measured is remembered
            first = self._memory.get(pair.name)
            return self._searched(pair, tree, curves, () if first is None else (first,))[0]
        outcome, curve = self._searched(pair, tree, curves)
        if method == "search":
            self._memory[pair.name] = curve
        return outcome

    def of(self, pair: Pair) -> tuple[Any, Any]:
        """Seconds and joules (compute) per step, [clocks]."""
        c = self._family.curves(pair)
        return c.time_s[self._member], c.compute_j[self._member]

    def _at(self, pair: Pair, hz: int) -> Outcome:
        t, e = self.of(pair)
        at = CLOCKS.index(hz)
        return Outcome(1 - e[at] / e[-1], t[at] / t[-1], hz)

    def _tree_hz(self, pair: Pair, tree: Tree) -> int:
        return tree.apply(self.features(pair)).gpu_frequency_hz

    def _searched(
        self, pair: Pair, tree: Tree, curves: Sequence[Curve], remembered: Sequence[Curve] = ()
    ) -> tuple[Outcome, Curve | None]:
        """A job of the task's length under the live policy."""
        c, m = self._family.curves(pair), pair.model
        costs = Costs(*(row[self._member] for row in (c.time_s, c.compute_j, c.input_j, c.utilization)))
        steps = math.ceil(EXAMPLES[pair.task] / BATCH)
        job = GovernedJob(
            pair.name, Features(m.model_type, m.layers, m.hidden_size, pair.seq_len_avg), costs, steps,
            settings=self._live(tree), rng=self._rng, curves=curves, remembered=remembered,
        )  # fmt: skip
        done = job.run()
        whole_t, whole_e = steps * float(costs.time_s[-1]), steps * float(costs.compute_j[-1])
        saving, time = 1 - done.energy_j / whole_e, done.time_s / whole_t
        return Outcome(saving, time, done.clock_hz, done.probes), done.curve

    def _live(self, tree: Tree) -> Settings:
        spec = settings_for(load_board("agx-orin"), Settings(policy=PolicyName.ENERGY, tree=tree))
        return replace(spec, sampling_interval_s=STRIDE_S, search=self._settings)

    def _history(self) -> list[Pair]:
        """A dozen of the training tasks' sweeps: what the daemon would remember of the board's other jobs."""
        picked = self._rng.choice(len(TRAINING_PAIRS), _OTHERS, replace=False)
        return [TRAINING_PAIRS[i] for i in sorted(picked)]

    def _curve(self, pair: Pair) -> Curve:
        """A sweep as the daemon remembers it, per sample."""
        rows = [r for r in self.sweep if r.workload == pair.name and r.gpu_frequency_hz is not None]
        energies = tuple((r.compute_energy_j or 0.0) / SAMPLES for r in rows)
        best = CLOCKS[int(np.argmin(energies))]
        return Curve(
            "agx-orin", pair.name, BATCH, CLOCKS, energies, tuple((r.input_energy_j or 0.0) / SAMPLES for r in rows),
            tuple(r.time_s / SAMPLES for r in rows), (SWEEP_NOISE_SD,) * len(CLOCKS), best, best,
        )  # fmt: skip


@cache
def algorithm_1() -> Tree:
    """The paper's tree."""
    return Tree.from_json(json.loads(json.dumps(ALGORITHM_1)))


def sweep_rows(family: Family, member: int, rng: np.random.Generator, pairs: Sequence[Pair] = ()) -> list[SweepRow]:
    """The sweep of the training tasks that a user of this board would have measured, noise included."""
    rows = []
    for pair in pairs or TRAINING_PAIRS:
        c, m = family.curves(pair), pair.model
        scale = SAMPLES / BATCH
        for i, hz in [(len(CLOCKS) - 1, None), *enumerate(CLOCKS)]:
            noise = 1.0 + float(rng.normal(0, SWEEP_NOISE_SD))
            rows.append(
                SweepRow(
                    *(pair.name, m.model_type, m.layers, m.hidden_size, pair.seq_len_avg),
                    *(float(c.utilization[member, i]), hz, float(c.time_s[member, i]) * scale),
                    float(c.compute_j[member, i]) * scale * noise,
                    float(c.input_j[member, i]) * scale * noise,
                )
            )
    return rows


def by_name(name: str) -> Pair:
    """A pair by its name. Raises KeyError."""
    found: Mapping[str, Pair] = {p.name: p for p in PAIRS}
    return found[name]
