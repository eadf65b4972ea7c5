"""Energy curves are kept per board, workload and batch size; nothing of another board, and no damaged file, is used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from traingov.history.curves import CurveStore
from traingov_policies.search.curves import Curve
from traingov_policies.values import Board

HZ = (300_000_000, 600_000_000, 900_000_000)
BOARD = Board("AGX Orin", "R36.4", "0 MAXN", HZ)
WHEN = "2026-01-01T00:00:00Z"


def curve(workload: str = "w", batch: int = 32, hz: tuple[int, ...] = HZ, scale: float = 1.0) -> Curve:
    n = len(hz)
    return Curve("AGX Orin", workload, batch, hz, (scale,) * n, (None,) * n, (0.1,) * n, (0.01,) * n, hz[0], hz[0])


def keep(store: CurveStore, signature: str, given: Curve, board: Board = BOARD, when: str = WHEN) -> None:
    store.save(board, signature, store.remember(board, signature, given, when))


def test_what_is_kept_is_found_by_the_next_start(tmp_path: Path) -> None:
    store = CurveStore(tmp_path)
    keep(store, "w", curve())
    keep(store, "w", curve(batch=8))
    keep(store, "v-123", curve("v"))
    again = CurveStore(tmp_path)
    assert [c.batch_size for c in again.of(BOARD, "w")] == [8, 32]
    assert [c.signature for c in again.others(BOARD, "w")] == ["v-123"]
    assert again.of(BOARD, "w")[1] == replace(curve(), signature="w", measured_at=WHEN)


@pytest.mark.parametrize("other", [{"name": "Nano"}, {"release": "R35.1"}, {"power_mode": "2 30W"}])
def test_a_curve_of_another_board_release_or_mode_is_never_given(tmp_path: Path, other: dict[str, str]) -> None:
    store = CurveStore(tmp_path)
    keep(store, "w", curve())
    there = replace(BOARD, **other)
    assert store.of(there, "w") == ()
    assert store.others(there, "v") == ()


def test_a_curve_moved_into_another_boards_folder_is_not_given(tmp_path: Path) -> None:
    store = CurveStore(tmp_path)
    keep(store, "w", curve())
    nano = replace(BOARD, name="Nano")
    target = store.path(nano, "w", 32)
    target.parent.mkdir(parents=True)
    store.path(BOARD, "w", 32).rename(target)
    assert CurveStore(tmp_path).of(nano, "w") == ()


def test_clocks_of_an_earlier_run_are_not_lost(tmp_path: Path) -> None:
    store = CurveStore(tmp_path)
    keep(store, "w", curve())
    keep(store, "w", curve(hz=HZ[:2], scale=2.0))
    (found,) = store.of(BOARD, "w")
    assert found.gpu_frequencies_hz == HZ
    assert found.compute_energy_j == pytest.approx((2.0, 2.0, 2.0))


def test_a_damaged_file_is_set_aside_and_the_others_are_used(tmp_path: Path) -> None:
    store = CurveStore(tmp_path)
    keep(store, "w", curve())
    keep(store, "v", curve("v"))
    for number, text in enumerate(('{"schema": ', "[]", json.dumps({**curve().to_json(), "sd": "x"}))):
        path = store.path(BOARD, "w", 32)
        path.write_text(text)
        again = CurveStore(tmp_path)
        assert again.of(BOARD, "w") == ()
        assert len(again.of(BOARD, "v")) == 1
        assert path.with_name(f"{path.name}.damaged-{number + 1}").exists()


def test_only_the_newest_curves_of_other_workloads_go_to_a_job(tmp_path: Path) -> None:
    store = CurveStore(tmp_path)
    for k in range(40):
        store.remember(BOARD, f"v{k}", curve(f"v{k}"), f"2026-01-01T00:00:{k:02d}Z")
    given = [c.workload for c in store.others(BOARD, "w")]
    assert given == [f"v{k}" for k in range(39, 7, -1)]
