"""A virtual board keeps out of folders that are not its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def board(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "traingov_sim", "board", "--dir", str(folder), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def test_a_folder_with_other_files_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    done = board(tmp_path)
    assert done.returncode == 2
    assert "is not empty (thesis.tex is in it) and is no board's" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_boards_own_folder_is_used_again(tmp_path: Path) -> None:
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "traingov_sim", "board", "--dir", str(tmp_path / "b"), "--json", "--with-parent"],
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert '"root"' in process.stdout.readline()
            process.terminate()
        assert process.returncode == 0
