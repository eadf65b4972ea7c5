"""One member of a family as tables: exact seconds and watts, the policies' table, and the exhaustive best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector

from ..surfaces.family import Family

Array = NDArray[np.float64]
PASS = 4096  # samples of a policies' table


@dataclass(frozen=True)
class Exact:
    """Noise-free tables of a whole family: seconds per sample, peak and mean watts, each [members, B, F]."""

    family: Family
    batch_sizes: tuple[int, ...]
    clocks_hz: tuple[int, ...]
    sample_s: Array
    peak_w: Array
    mean_w: Array

    @classmethod
    def of(cls, family: Family, clocks_hz: tuple[int, ...]) -> Exact:
        """The family's tables over these clocks."""
        t = family.tables(clocks_hz)
        mean = np.broadcast_to(np.asarray(t.steps.mean_input_w()), t.sample_s.shape)
        return cls(family, t.case.batch_sizes, clocks_hz, t.sample_s, t.peak_w, mean)

    def lut(self, member: int) -> Lut:
        """What profiling without any error would measure."""

        def grid(values: Array) -> tuple[tuple[float, ...], ...]:
            return tuple(tuple(map(float, row)) for row in values)

        measured = tuple(("measured",) * len(self.clocks_hz) for _ in self.batch_sizes)
        return Lut(
            self.family.board, self.family.workload, PASS, self.batch_sizes, self.clocks_hz,
            grid(self.sample_s[member] * PASS), grid(self.peak_w[member]), grid(self.mean_w[member]), origin=measured,
        )  # fmt: skip

    def best(self, member: int, samples: Array, cap_w: float | None) -> tuple[float, int, int] | None:
        """Exhaustively: least T_s · N over all points below the cap; seconds, batch size, Hz. None when there is none.

        Written without the policies' code on purpose. ``samples`` [B] is N in samples.
        """
        found: tuple[float, int, int] | None = None
        for i, b in enumerate(self.batch_sizes):
            for j, hz in enumerate(self.clocks_hz):
                if cap_w is not None and self.peak_w[member, i, j] >= cap_w:
                    continue
                seconds = float(self.sample_s[member, i, j] * samples[i])
                if found is None or seconds < found[0]:
                    found = (seconds, b, hz)
        return found


def relation_of(workload: str, sizes: tuple[int, ...], samples: Array) -> RelationVector:
    """r from N per batch size [B]."""
    relative = samples / samples.max()
    return RelationVector(workload, sizes, tuple(float(r) for r in relative))
