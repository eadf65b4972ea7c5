"""Priors: found by board and workload, never handed out as a measured table, never moved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from traingov.store import LutStore, slug
from traingov_policies.codec import decode_event, encode_event
from traingov_policies.events import JobRegistered
from traingov_policies.lut import Cell, Lut
from traingov_policies.values import Board, OperatingPoint

NANO = Board("NVIDIA Jetson Nano Developer Kit", "R32.7.4", "MAXN", (1, 2))
TABLE = Lut.empty(NANO.name, "w", 64, (8,), (1, 2)).with_cell(OperatingPoint(8, 1), Cell(3.0, 2.0, 1.5, "measured"))


def put(folder: Path, board: str, name: str, lut: Lut) -> Path:
    path = folder / board / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(lut.to_json()))
    return path


def test_a_vendors_table_is_found_by_its_own_board_and_its_cells_become_predicted(tmp_path: Path) -> None:
    put(tmp_path, "nano", "w", TABLE)
    store = LutStore(tmp_path / "lut", [tmp_path])
    assert store.get(NANO, "w") is None
    prior = store.prior(NANO, "w")
    assert prior is not None
    assert prior.cell(OperatingPoint(8, 1)) == Cell(3.0, 2.0, 1.5, "predicted")
    assert prior.cell(OperatingPoint(8, 2)).origin is None
    assert store.prior(NANO, "v") is None
    assert store.prior(replace(NANO, name="TX2"), "w") is None


def test_another_boards_table_counts_only_in_this_boards_folder(tmp_path: Path) -> None:
    foreign = replace(TABLE, board="TX2")
    put(tmp_path, "tx2", "w", foreign)
    assert LutStore(tmp_path / "lut", [tmp_path]).prior(NANO, "w") is None
    put(tmp_path, slug(NANO.name), "w", foreign)
    prior = LutStore(tmp_path / "lut", [tmp_path]).prior(NANO, "w")
    assert prior is not None
    assert prior.board == "TX2"


def test_of_several_the_same_signature_then_the_same_mode_then_the_first_folder_wins(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"

    def found() -> int:
        prior = LutStore(tmp_path / "lut", [mine, shipped]).prior(NANO, "w-abc", "w")
        assert prior is not None
        return prior.samples

    put(shipped, "nano", "a", replace(TABLE, samples=1))
    assert found() == 1
    put(mine, "nano", "a", replace(TABLE, samples=2))
    assert found() == 2
    put(shipped, "nano", "b", replace(TABLE, samples=3, release=NANO.release, power_mode=NANO.power_mode))
    assert found() == 3
    put(shipped, "nano", "c", replace(TABLE, samples=4, signature="w-abc"))
    assert found() == 4
    put(mine, "nano", "d", replace(TABLE, samples=5, signature="w-other"))  # another input shape: another workload
    assert found() == 4


def test_a_damaged_prior_is_passed_over_and_left_in_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = put(tmp_path, "nano", "w", TABLE)
    path.write_text('{"schema": 1}')
    assert LutStore(tmp_path / "lut", [tmp_path, tmp_path / "absent"]).prior(NANO, "w") is None
    assert path.exists()
    assert "cannot be used" in caplog.text


def test_a_prior_travels_with_the_job_through_a_recording() -> None:
    event = JobRegistered(1.0, "j", "w", (8,), 8, prior=TABLE)
    again = decode_event(json.loads(json.dumps(encode_event(event))))
    assert again == event
