"""Tables: extending, laying one over another, and refusing what is no table."""

from __future__ import annotations

from typing import Any

import pytest

from traingov_policies.lut import Cell, Lut
from traingov_policies.values import OperatingPoint

A = Lut.empty("nano", "w", 100, (8, 32), (1, 2)).with_cell(
    OperatingPoint(8, 1), Cell(10.0, 2.0, 1.5, "measured", 0.1, 0.01)
)


def test_a_table_laid_over_another_keeps_what_the_newer_does_not_know() -> None:
    newer = Lut.empty("nano", "w", 200, (8, 16), (2, 3)).with_cell(
        OperatingPoint(16, 3), Cell(5.0, 3.0, 2.5, "measured")
    )
    both = A.overlaid(newer)
    assert (both.batch_sizes, both.gpu_frequencies_hz, both.samples) == ((8, 16, 32), (1, 2, 3), 200)
    assert both.cell(OperatingPoint(8, 1)) == Cell(20.0, 2.0, 1.5, "measured", 0.2, 0.01)  # T_s for 200 samples
    assert both.cell(OperatingPoint(16, 3)).time_s == 5.0
    assert both.cell(OperatingPoint(32, 3)) == Cell()


@pytest.mark.parametrize("origin", ["failed", "predicted"])
def test_a_failed_or_predicted_cell_does_not_replace_a_measured_one(origin: str) -> None:
    newer = A.with_cell(OperatingPoint(8, 1), Cell(99.0, 9.0, 9.0, origin))
    assert A.overlaid(newer).cell(OperatingPoint(8, 1)).time_s == 10.0
    measured = A.with_cell(OperatingPoint(8, 1), Cell(11.0, 2.1, 1.6, "measured"))
    assert A.overlaid(measured).cell(OperatingPoint(8, 1)).time_s == 11.0


def test_what_failed_once_is_unknown_again() -> None:
    failed = A.with_cell(OperatingPoint(32, 2), Cell(None, None, None, "failed"))
    assert failed.without_failed() == A


def test_extending_by_nothing_new_is_the_table_itself() -> None:
    assert A.extended((8,), (1,)) is A
    assert Lut.from_json(A.extended((4,), (9,)).to_json()) == A.extended((4,), (9,))


@pytest.mark.parametrize(
    ("change", "field"),
    [({"board": 3}, "board"), ({"workload": None}, "workload"), ({"samples": 1.5}, "samples"),
     ({"samples": True}, "samples"),
     ({"samples": float("nan")}, "samples"), ({"time_s": [[True, 1.0], [1.0, 1.0]]}, r"time_s\[0\]\[0\]"),
     ({"origin": [["x", None], [None, None]]}, "origin"), ({"gpu_frequencies_hz": [2, 2]}, "ascending")],
)  # fmt: skip
def test_what_is_no_table_is_refused_by_name(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        Lut.from_json({**A.to_json(), **change})


@pytest.mark.parametrize("name", ["time_s", "peak_power_w", "mean_power_w"])
def test_a_table_whose_grid_is_null_is_refused(name: str) -> None:
    good = Lut.empty("nano", "x", 4096, (8,), (76_800_000,)).to_json()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        Lut.from_json({**good, name: None})
