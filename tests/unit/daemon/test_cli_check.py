"""`traingov check` on board files and recordings, and `traingovd --version`."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import traingov

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", sorted((ROOT / "etc" / "boards").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_board_file_is_right(path: Path) -> None:
    result = traingov("check", str(path))
    assert (result.exit_code, result.stdout) == (0, f"{path}: traingov.board/1, right\n"), result.stderr


def test_a_wrong_board_file_is_told_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("schema: traingov.board/1\nname: Mine\nmatch: [mine]\nrails:\n  - inputs: [VDD_IN]\n")
    result = traingov("check", str(path))
    assert (result.exit_code, result.stderr) == (
        2, f"traingov: {path}: rails[0].inputs: unknown key; known are compute, input, other\n",
    )  # fmt: skip


def test_a_packed_recording_is_checked_like_a_plain_one(tmp_path: Path) -> None:
    packed = ROOT / "tests" / "replay" / "demo-tree.jsonl.gz"
    assert "traingov.recording/1, right" in traingov("check", str(packed)).stdout
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    wrong = tmp_path / "wrong.jsonl.gz"
    with gzip.open(wrong, "wt") as file:
        file.write("\n".join([lines[0], '{"event": "Nonsense", "t_s": 1}']))
    result = traingov("check", str(wrong))
    assert (result.exit_code, f"{wrong}:2:" in result.stderr) == (2, True)


def test_a_packed_recording_that_was_cut_off_or_is_no_gzip_gives_one_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    shutil.copy(ROOT / "tests" / "replay" / "demo-tree.jsonl.gz", cut)
    cut.write_bytes(cut.read_bytes()[:2000])
    other = tmp_path / "other.jsonl.gz"
    other.write_text("not packed")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    for path in (cut, other, empty):
        result = traingov("check", str(path))
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert str(path) in result.stderr


def test_the_service_tells_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "traingov.service", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("traingovd, version 0.")
