"""A run with everything that a report may show: what the tests of the report begin from."""

from __future__ import annotations

from traingov.history.records import CapUse, Choice, Notice, PointUse, Run, Span
from traingov.report.subject import Subject
from traingov_policies.lut import Cell, Lut
from traingov_policies.relation import RelationVector
from traingov_policies.search.curves import Curve
from traingov_policies.values import OperatingPoint

MHZ = 1_000_000


def span(n: int, power_w: float | None = 4.0, peak_w: float = 4.5) -> Span:
    known = power_w is not None
    return Span(float(n), 1.0, 100 if known else 0, power_w, 3.5 if known else None, peak_w if known else None,
                4.1 if known else None, 5.0, 300 * MHZ, 400 * MHZ, 8)  # fmt: skip


RUN = Run(
    job="digits", workload="digits", signature="digits", board="Jetson Nano", release="R32.7.1", power_mode="MAXN",
    policy="joint", objective="energy", batch_sizes=(8, 32), samples_done=0, samples_total=4000, started_s=1_000.0,
    updated_s=1_060.0, ended_s=1_060.0, end_reason="end", elapsed_s=60.0, samples=4000, steps=125, input_energy_j=250.0,
    compute_energy_j=None, above_cap_s=1.5, judged_s=50.0, gap_s=0.0, shared=False, guard_steps=2,
    points=(PointUse(32, None, 20.0, 1000, 31, 100.0, None), PointUse(8, 300 * MHZ, 40.0, 3000, 94, 150.0, None)),
    caps=(CapUse(1_000.0, 5.0, 1.0, None, "configuration"),),
    choices=(Choice(1, 1_010.0, "joint", "batch 8 at 300 MHz: least", 8, 300 * MHZ, "Chosen: it.\nSecond: none."),),
    notices=(Notice(1_020.0, "guard-low", "held low"),), spans=tuple(span(n) for n in range(60)),
)  # fmt: skip
LUT = (
    Lut.empty("Jetson Nano", "digits", 1000, (8, 32), (300 * MHZ, 400 * MHZ))
    .with_cell(OperatingPoint(8, 300 * MHZ), Cell(10.0, 4.2, 4.0, "measured"))
    .with_cell(OperatingPoint(8, 400 * MHZ), Cell(None, 5.2, None, "infeasible"))
    .with_cell(OperatingPoint(32, 300 * MHZ), Cell(7.5, 4.6, 4.4, "predicted"))
    .with_cell(OperatingPoint(32, 400 * MHZ), Cell(6.0, 5.4, 5.0, "measured"))
)
RELATION = RelationVector("digits", (8, 32), (0.5, 1.0))
CURVE = Curve("Jetson Nano", "digits", 8, (200 * MHZ, 300 * MHZ), (0.05, 0.04), (0.09, 0.08), (0.01, 0.009),
              (0.01, 0.02), 200 * MHZ, 300 * MHZ, signature="digits")  # fmt: skip
SUBJECT = Subject(RUN, "run 1 of h.sqlite", wall=True, lut=LUT, curves=(CURVE,), relation=RELATION)
