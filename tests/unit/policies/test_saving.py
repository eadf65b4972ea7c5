"""What a point saves against mode 0: from measurements only, and an estimate says that it is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.saving import from_sweep, from_table
from traingov_policies.sweep import SweepRow
from traingov_policies.values import OperatingPoint

LUT = Lut.from_json({
    "schema": "traingov.lut/1", "board": "b", "workload": "w", "samples": 64,
    "batch_sizes": [8, 32], "gpu_frequencies_hz": [500, 1000],
    "time_s": [[40.0, 25.0], [30.0, 20.0]], "peak_power_w": [[4.0, 9.0], [5.0, 11.0]],
    "mean_power_w": [[3.0, 8.0], [4.0, 10.0]], "conditions": {}, "measured_at": "2026-01-01T00:00:00Z",
})  # fmt: skip
RELATION = RelationVector("w", (8, 32), (0.5, 1.0))


def row(hz: int | None, time_s: float, compute_j: float | None, input_j: float | None) -> SweepRow:
    return SweepRow("w", None, None, None, None, None, hz, time_s, compute_j, input_j)


def test_a_sweep_compares_its_own_mode_0_row() -> None:
    rows = [row(None, 10.0, 50.0, 100.0), row(500, 12.0, 30.0, 80.0)]
    saving = from_sweep(rows, 500)
    assert saving is not None
    assert (saving.energy, saving.time, saving.power, saving.source) == (
        pytest.approx(0.2), pytest.approx(-0.2), "input", "sweep",
    )  # fmt: skip
    without_input = from_sweep([replace(r, input_energy_j=None) for r in rows], 500)
    assert without_input is not None
    assert (without_input.energy, without_input.power) == (pytest.approx(0.4), "compute")


def test_a_sweep_without_mode_0_or_without_this_clock_says_nothing() -> None:
    assert from_sweep([row(500, 12.0, 30.0, 80.0)], 500) is None
    assert from_sweep([row(None, 10.0, 50.0, 100.0)], 500) is None
    assert from_sweep([row(None, 10.0, None, None), row(500, 12.0, 30.0, 80.0)], 500) is None


def test_a_table_compares_with_the_first_batch_at_the_highest_clock_weighted_by_samples_to_accuracy() -> None:
    saving = from_table(LUT, RELATION, 32, OperatingPoint(8, 500))
    assert saving is not None
    assert (saving.time, saving.energy) == (pytest.approx(1 - 0.5 * 40 / 20), pytest.approx(1 - 0.5 * 120 / 200))
    assert (saving.source, saving.against) == ("table", "batch 32 at 0 MHz, the highest clock")


def test_batch_sizes_are_not_compared_without_a_relation_vector() -> None:
    assert from_table(LUT, None, 32, OperatingPoint(8, 500)) is None
    same = from_table(LUT, None, 32, OperatingPoint(32, 500))
    assert same is not None
    assert same.energy == pytest.approx(1 - 120 / 200)


def test_a_predicted_or_absent_cell_gives_no_figure() -> None:
    guessed = replace(LUT, origin=(("measured", "measured"), ("measured", "predicted")))
    assert from_table(guessed, RELATION, 32, OperatingPoint(32, 500)) is None
    assert from_table(LUT, RELATION, 64, OperatingPoint(32, 500)) is None
    assert from_table(LUT, RELATION, 32, OperatingPoint(32, 700)) is None
