"""Families: samples of surfaces that meet every published fact within its tolerance.

``family_sampling`` makes the files in ``data/families``; here they are read. A file's hash covers its members, so that
an evaluation can say what it was frozen to.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .calibrate import MEMORY_BYTES
from .clocks import CLOCKS_HZ
from .facts import Case
from .generator import BOARD_PARAMETERS, WORKLOAD_PARAMETERS, GeneratedSurface
from .misfit import Tables, misfit, residuals, tables
from .published import BATCHES
from .search import Array

SCHEMA = "traingov-sim.family/1"
DIRECTORY = Path(__file__).resolve().parent.parent / "data" / "families"
FAMILIES = (
    *(("nano", "resnet18"), ("nano", "mobilenetv2"), ("nano", "efficientvit"), ("nano", "transformer")),
    ("tx2-nx", "resnet18"),
)
PARAMETERS = BOARD_PARAMETERS + WORKLOAD_PARAMETERS
FORBIDDEN = 1e4  # misfit per tolerance beyond the first

Values = dict[str, Array]


@dataclass(frozen=True)
class Family:
    """``parameters`` [members] by name; ``baseline_hz`` the baselines' clocks per member, one per cap.

    ``strict``: no inequality among the facts is violated at all, not even within its tolerance.
    """

    board: str
    workload: str
    parameters: Values
    baseline_hz: tuple[tuple[int, int, int], ...]
    strict: tuple[bool, ...]
    diagnostics: dict[str, Any]
    sha256: str

    def __len__(self) -> int:
        return len(self.baseline_hz)

    def surface(self, member: int) -> GeneratedSurface:
        """One member as a surface that a virtual board runs."""
        kept = {name: float(self.parameters[name][member]) for name in PARAMETERS}
        return GeneratedSurface(
            self.board, self.workload, kept, CLOCKS_HZ[self.board][-1], *MEMORY_BYTES[self.workload]
        )

    def tables(self, clocks_hz: tuple[int, ...], batch_sizes: tuple[int, ...] | None = None) -> Tables:
        """Seconds per sample and peak watts of all members over these clocks: arrays [members, B, F]."""
        sizes = batch_sizes or BATCHES[self.workload].sizes
        case = Case(self.board, self.workload, sizes, clocks_hz, BATCHES[self.workload].pass_samples, ())
        return tables(case, {n: self.parameters[n] for n in PARAMETERS}, CLOCKS_HZ[self.board][-1])


@cache
def load_family(board: str, workload: str, directory: Path = DIRECTORY) -> Family:
    """The shipped family. Raises KeyError when there is none, ValueError when the file does not match its hash."""
    path = directory / f"{board}-{workload}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in directory.glob("*.json")))
        raise KeyError(f"no family of {workload!r} on {board}; known: {known}")
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
    if hash_of(data) != data["sha256"]:
        raise ValueError(f"{path}: the members do not match the hash; make it anew: python -m {__name__}_sampling")
    members = np.array(data["members"])
    return Family(
        board,
        workload,
        {name: members[:, i] for i, name in enumerate(data["names"])},
        tuple((c[0], c[1], c[2]) for c in data["baseline_hz"]),
        tuple(data["strict"]),
        data["diagnostics"],
        data["sha256"],
    )


def hash_of(data: dict[str, Any]) -> str:
    """SHA-256 over names, members and clocks as written."""
    held = json.dumps([data["names"], data["members"], data["baseline_hz"]], separators=(",", ":"))
    return hashlib.sha256(held.encode()).hexdigest()


def within_tolerance(t: Tables) -> Array:
    """The misfit, and a wall where a residual exceeds its tolerance."""
    values = residuals(t)
    return np.asarray(misfit(t, values) + FORBIDDEN * np.maximum(0.0, np.abs(values) - 1.0).sum(axis=0))
