"""The family of virtual AGX Orins: several surfaces of each of the energy paper's 81 workloads, on a few boards.

``python -m traingov_sim.surfaces.orin_sampling`` makes the file and says how. One member is one board: its board
parameters serve all 81 workloads, except the CPU rail, which the paper leaves to schedutil. Everything is simulated.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .calibrate import ORIN_MEMORY_BYTES
from .facts import Case
from .generator import BOARD_PARAMETERS, WORKLOAD_PARAMETERS, GeneratedSurface
from .misfit import irregularity_name, tables
from .orin_pairs import CLOCKS
from .published_orin import BATCH
from .search import Array
from .space import common_parameters

SCHEMA = "traingov-sim.orin-family/1"
PATH = Path(__file__).resolve().parent.parent / "data" / "orin-family.json.gz"
COMMON = common_parameters("agx-orin")


@dataclass(frozen=True)
class Curves:
    """What one pair costs over the clocks, for every member: per step of 32 samples, [members, clocks].

    ``time_s``, ``compute_j`` (GPU and CPU rails), ``input_j``; ``utilization`` in percent. The last clock under load
    stands for mode 0.
    """

    time_s: Array
    compute_j: Array
    input_j: Array
    utilization: Array


@dataclass(frozen=True)
class OrinFamily:
    """``boards`` [boards] of the common parameters; ``draws`` by pair: arrays [members, names of that pair]."""

    boards: tuple[Mapping[str, float], ...]
    names: Mapping[str, tuple[str, ...]]
    draws: Mapping[str, Array]
    sha256: str

    @cached_property
    def board_of(self) -> tuple[int, ...]:
        """The board's number, per member."""
        each = len(self) // len(self.boards)
        return tuple(m // each for m in range(len(self)))

    def __len__(self) -> int:
        return len(next(iter(self.draws.values())))

    def parameters(self, pair: str) -> dict[str, Array]:
        """All parameters of a pair, each [members]."""
        drawn = {name: self.draws[pair][:, i] for i, name in enumerate(self.names[pair])}
        common = {name: np.array([self.boards[b][name] for b in self.board_of]) for name in COMMON}
        return {**common, **drawn}

    def surface(self, pair: str, member: int) -> GeneratedSurface:
        """A pair on one member, for a virtual board to run."""
        p = {name: float(values[member]) for name, values in self.parameters(pair).items()}
        irregular = {hz: p[n] for hz in CLOCKS if (n := irregularity_name(hz)) in p}
        kept = {name: p[name] for name in BOARD_PARAMETERS + WORKLOAD_PARAMETERS}
        return GeneratedSurface("agx-orin", pair, kept, CLOCKS[-1], *ORIN_MEMORY_BYTES, irregular)

    def curves(self, pair: str, changed: Mapping[str, Any] | None = None) -> Curves:
        """Time and energies over the clocks; ``changed`` multiplies parameters (a power mode's doing)."""
        p = self.parameters(pair)
        for name, factor in (changed or {}).items():
            p[name] = p[name] * factor
        steps = tables(Case("agx-orin", pair, (BATCH,), CLOCKS, 0, ()), p, CLOCKS[-1]).steps
        t = np.asarray(steps.time_s())[:, 0, :]
        compute, whole = np.asarray(steps.mean_compute_w())[:, 0, :], np.asarray(steps.mean_input_w())[:, 0, :]
        busy = 100 * np.broadcast_to(np.asarray(steps.gpu_busy_share()), (len(self), 1, len(CLOCKS)))[:, 0, :]
        return Curves(t, compute * t, whole * t, busy)


@cache
def load_orin_family(path: Path = PATH) -> OrinFamily:
    """The shipped family. Raises FileNotFoundError, or ValueError where the file does not match its hash."""
    data = json.loads(gzip.decompress(path.read_bytes()))
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
    if hash_of(data) != data["sha256"]:
        raise ValueError(
            f"{path}: the members do not match the hash; make it anew: python -m traingov_sim.surfaces.orin_sampling"
        )
    return family_of(data)


def family_of(data: Mapping[str, Any]) -> OrinFamily:
    """A family from the plain values of its file."""
    pairs = data["pairs"]
    return OrinFamily(
        tuple(data["boards"]),
        {name: tuple(entry["names"]) for name, entry in pairs.items()},
        {name: np.array(entry["members"]) for name, entry in pairs.items()},
        data["sha256"],
    )


def hash_of(data: Mapping[str, Any]) -> str:
    """SHA-256 over boards and members as written."""
    return hashlib.sha256(json.dumps([data["boards"], data["pairs"]], separators=(",", ":")).encode()).hexdigest()
