"""What a report is about, as values: a run and what was known of its workload. Where it came from is not known here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.search.curves import Curve
from traingov_policies.sweep import SweepRow
from traingov_policies.values import OperatingPoint

from ..history.records import PointUse, Run


class ReportError(Exception):
    """There is nothing to report on; one line with what to do."""


@dataclass(frozen=True)
class Subject:
    """A run with its workload's table, energy curves, sweep and relation vector, each as far as there is one.

    ``wall``: whether the run's times are of the day (else seconds since it began). ``source`` says in words where all
    this was read. ``in_mode0`` are the uses of the board's own governor by runs of the same workload, by run number.
    ``told``: whether it is known if the board was a virtual one (older recordings do not say).
    """

    run: Run
    source: str
    wall: bool
    lut: Lut | None = None
    curves: Sequence[Curve] = ()
    sweep: Sequence[SweepRow] = ()
    relation: RelationVector | None = None
    in_mode0: Mapping[int, PointUse] = field(default_factory=dict)
    told: bool = True

    @property
    def virtual(self) -> bool:
        """Whether the board's files were not the machine's own ones: its readings are then simulated."""
        return self.run.root is not None

    @property
    def trained_at(self) -> PointUse | None:
        """The point of a set clock that trained most; None where no sample was trained at one."""
        held = [p for p in self.run.points if p.gpu_frequency_hz is not None and p.samples > 0]
        return max(held, key=lambda p: p.samples, default=None)

    @property
    def chosen(self) -> OperatingPoint | None:
        """The last point that was chosen from the table, by the tree or by the search; None where none was."""
        kinds = ("joint", "tree", "searched")
        for choice in reversed(self.run.choices):
            if choice.kind in kinds and choice.gpu_frequency_hz is not None:
                return OperatingPoint(choice.batch_size or self.run.batch_sizes[-1], choice.gpu_frequency_hz)
        return None

    @property
    def cap_w(self) -> float | None:
        """The last cap in force."""
        return self.run.caps[-1].power_w if self.run.caps else None
