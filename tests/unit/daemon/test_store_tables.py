"""Tables survive a crash at any instant; a damaged one is set aside; another board's is never used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from traingov.store import LutStore, load_relations, signature_of, write_atomically
from traingov_policies.lut import Lut
from traingov_policies.values import Board

NANO = Board("NVIDIA Jetson Nano Developer Kit", "R32.7.4", "MAXN", (1, 2))
LUT = Lut.empty(NANO.name, "resnet18", 4096, (8, 16), (1, 2))


def test_a_table_comes_back_for_its_board_release_mode_and_signature_only(tmp_path: Path) -> None:
    store = LutStore(tmp_path)
    store.save(NANO, "resnet18", LUT)
    again = LutStore(tmp_path)
    assert again.get(NANO, "resnet18") == LUT
    assert again.get(NANO, "resnet50") is None
    for other in ("R36.4.3", "10W"):
        assert again.get(Board(NANO.name, other, NANO.power_mode, NANO.gpu_frequencies_hz), "resnet18") is None
    assert again.get(Board("TX2 NX", NANO.release, NANO.power_mode, NANO.gpu_frequencies_hz), "resnet18") is None


def test_a_table_copied_to_another_boards_place_is_not_used(tmp_path: Path) -> None:
    other = Board("TX2 NX", "R32.7.4", "MAXN", (1, 2))
    store = LutStore(tmp_path)
    store.save(other, "resnet18", LUT)
    assert LutStore(tmp_path).get(other, "resnet18") is None


def test_a_table_truncated_at_any_byte_is_set_aside_and_not_fatal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = LutStore(tmp_path)
    store.save(NANO, "w", LUT)
    path = store.path(NANO, "w")
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        for leftover in path.parent.glob("*"):
            leftover.unlink()
        path.write_bytes(whole[:length])
        assert LutStore(tmp_path).get(NANO, "w") is None
        assert not path.exists()
        assert [p.read_bytes() for p in path.parent.glob("*.damaged-*")] == [whole[:length]]
    assert "damaged" in caplog.text


@pytest.mark.parametrize(
    "content", [b"[]", b"7", b'{"schema": "traingov.lut/1"}', b'{"schema": "traingov.lut/9"}', b"\xff"]
)
def test_other_contents_are_set_aside_too(tmp_path: Path, content: bytes) -> None:
    store = LutStore(tmp_path)
    path = store.path(NANO, "w")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert LutStore(tmp_path).get(NANO, "w") is None


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.json"
    write_atomically(path, b"old")

    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_names_from_outside_cannot_leave_the_store(tmp_path: Path) -> None:
    store = LutStore(tmp_path)
    for name in ("../../etc/passwd", "..", "", "a/b", "x" * 500, "naïve ✓"):
        path = store.path(Board(name, name, name, ()), name)
        assert tmp_path in path.parents
        assert ".." not in path.parts


def test_signatures_differ_when_what_makes_the_workload_differs() -> None:
    assert signature_of("w", {"precision": None}) == "w"
    fp16, fp32 = signature_of("w", {"precision": "fp16"}), signature_of("w", {"precision": "fp32"})
    assert fp16 != fp32
    assert signature_of("w", {"precision": "fp16", "optimizer": None}) == fp16


def test_of_two_relation_vectors_the_administrators_wins_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    for folder, r in ((mine, 0.5), (shipped, 0.9)):
        folder.mkdir()
        content = {
            "schema": "traingov.relation/1",
            "workload": "w",
            "batch_sizes": [8, 16],
            "relative_samples": [r, 1.0],
        }
        (folder / "w.json").write_text(json.dumps(content))
    (mine / "broken.json").write_text("{")
    found = load_relations([mine, shipped, tmp_path / "absent"])
    assert found["w"].relative_samples == (0.5, 1.0)


def test_a_replaced_table_goes_into_the_history_with_the_reason_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    store = LutStore(tmp_path)
    store.save(NANO, "resnet18", LUT)
    for k in range(1, 6):
        store.archive(NANO, "resnet18", LUT, f"reason {k}", most=3)
    folder = store.path(NANO, "resnet18").parent / "history"
    assert [p.name for p in sorted(folder.iterdir())] == [f"resnet18.{k:06d}.json" for k in (3, 4, 5)]
    newest = Lut.from_json(json.loads((folder / "resnet18.000005.json").read_text()))
    assert newest.conditions["replaced"] == "reason 5"
    assert newest.time_s == LUT.time_s


def test_the_history_is_no_table_in_use_and_one_workload_does_not_push_out_anothers(tmp_path: Path) -> None:
    store = LutStore(tmp_path)
    store.archive(NANO, "resnet18", LUT, "why", most=2)
    store.archive(NANO, "resnet18-b", LUT, "why", most=2)
    store.archive(NANO, "resnet18", LUT, "why", most=0)
    folder = store.path(NANO, "resnet18").parent / "history"
    assert [p.name for p in folder.iterdir()] == ["resnet18-b.000001.json"]
    assert LutStore(tmp_path).get(NANO, "resnet18") is None


def test_a_link_where_the_temporary_file_goes_is_not_followed(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("dear diary")
    (tmp_path / ".x.json.tmp").symlink_to(foreign)
    with pytest.raises(OSError, match="symbolic link"):
        write_atomically(tmp_path / "x.json", b"{}")
    assert foreign.read_text() == "dear diary"
    write_atomically(tmp_path / "x.json", b"{}")
    assert (tmp_path / "x.json").read_text() == "{}"
