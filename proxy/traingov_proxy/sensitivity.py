"""How far a relation vector carries from a proxy to a target (method A, 5.4; the paper's Fig. 5 and 7).

For each proxy (row) and target (column): by how many percent training takes longer than at the fastest configuration,
when the choice is made with the proxy's r. Times are those of a table, N is the target's own, measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.select import candidate_at, select


@dataclass(frozen=True)
class Matrix:
    """``increase_percent`` [proxy][target] under ``cap_w`` (None: no cap); None where the choice misses the target.

    ``chosen`` [proxy] is the batch size and clock in Hz that the proxy's r picks.
    """

    cap_w: float | None
    proxies: tuple[str, ...]
    targets: tuple[str, ...]
    increase_percent: tuple[tuple[float | None, ...], ...]
    chosen: tuple[tuple[int, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "cap_w": self.cap_w,
            "proxies": list(self.proxies),
            "targets": list(self.targets),
            "increase_percent": [list(row) for row in self.increase_percent],
            "chosen": [{"batch_size": b, "gpu_frequency_hz": f} for b, f in self.chosen],
        }


def sensitivity(
    lut: Lut,
    proxies: Mapping[str, RelationVector],
    targets: Mapping[str, RelationVector],
    caps_w: Sequence[float | None],
) -> list[Matrix]:
    """One matrix per cap. ``targets`` hold the true r. Raises ValueError where a cap leaves no point."""
    return [_matrix(lut, proxies, targets, cap_w) for cap_w in caps_w]


def _matrix(
    lut: Lut, proxies: Mapping[str, RelationVector], targets: Mapping[str, RelationVector], cap_w: float | None
) -> Matrix:
    rows, chosen = [], []
    for name, proxy in proxies.items():
        choice = select(lut, proxy, cap_w)
        if not choice.feasible:
            limit = "without a cap" if cap_w is None else f"below {cap_w:g} W"
            raise ValueError(f"the table of {lut.workload} on {lut.board} has no point {limit} for the r of {name}")
        point = choice.chosen.point
        chosen.append((point.batch_size, point.gpu_frequency_hz))
        row = []
        for target in targets.values():
            taken, best = candidate_at(lut, target, point), select(lut, target, cap_w).chosen.time_s
            known = taken is not None and taken.time_s is not None and best is not None
            row.append(100.0 * (taken.time_s / best - 1.0) if known else None)  # type: ignore[union-attr,operator]
        rows.append(tuple(row))
    return Matrix(cap_w, tuple(proxies), tuple(targets), tuple(rows), tuple(chosen))
