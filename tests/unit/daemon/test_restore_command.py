"""`traingov restore` needs the standard library only, and two at once are safe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traingov.device.devfreq import GpuKnob, find_gpu
from traingov.device.files import SystemFiles
from traingov.device.journal import RestoreJournal

NODE = "/sys/devices/57000000.gpu/devfreq/57000000.gpu"

# Everything that is neither the standard library nor traingov itself is refused, as after a broken upgrade.
BLOCKED = """
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top != "traingov" and top not in sys.stdlib_module_names:
            raise ImportError(f"{name} is not there")
        return None

sys.meta_path.insert(0, Refuse())
sys.argv = ["traingov", *sys.argv[1:]]
from traingov.cli.entry import main
main()
"""


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """A plain folder as the board's root whose clock a governor pinned and then died."""
    root = tmp_path / "root"
    node = root / NODE.lstrip("/")
    node.mkdir(parents=True)
    (node / "min_freq").write_text("76800000\n")
    (node / "max_freq").write_text("921600000\n")
    files = SystemFiles(str(root))
    journal = RestoreJournal(str(tmp_path / "state" / "restore.json"), files, pytest.fail)
    found = find_gpu(files)
    assert found is not None
    assert GpuKnob(found, files, journal).set_bounds(460_800_000, 460_800_000).errors == ()
    journal.close()
    return tmp_path


def arguments(pinned: Path) -> list[str]:
    return ["restore", "--root", str(pinned / "root"), "--state-dir", str(pinned / "state")]


def bounds(pinned: Path) -> tuple[str, str]:
    node = pinned / "root" / NODE.lstrip("/")
    return (node / "min_freq").read_text(), (node / "max_freq").read_text()


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, timeout=60)


def test_restore_works_where_nothing_but_the_standard_library_can_be_imported(pinned: Path) -> None:
    done = run(BLOCKED, *arguments(pinned))
    assert (done.returncode, done.stderr) == (0, "")
    assert "restored to 921600000" in done.stdout
    assert bounds(pinned) == ("76800000\n", "921600000\n")


def test_the_block_of_that_test_really_blocks() -> None:
    done = run(BLOCKED, "status")
    assert done.returncode != 0
    assert "is not there" in done.stderr or "traingov.cli.main" in done.stderr


def test_restore_answers_in_json(pinned: Path) -> None:
    done = run(BLOCKED, *arguments(pinned), "--json")
    report = json.loads(done.stdout)
    assert (report["status"], report["exit_status"], done.returncode) == ("restored", 0, 0)
    assert {knob["path"]: knob["now"] for knob in report["knobs"]} == {
        f"{NODE}/min_freq": "76800000",
        f"{NODE}/max_freq": "921600000",
    }


def test_nothing_to_restore_is_no_failure(tmp_path: Path) -> None:
    done = run(BLOCKED, "restore", "--root", str(tmp_path), "--state-dir", str(tmp_path / "none"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to restore" in done.stdout


def test_a_failure_is_exit_status_one(pinned: Path) -> None:
    (pinned / "state" / "restore.json").write_text("{")
    done = run(BLOCKED, *arguments(pinned))
    assert done.returncode == 1
    assert "is damaged" in done.stdout


@pytest.mark.parametrize("words", [["--nonsense"], ["--root", "/no/such/folder"]])
def test_wrong_use_is_exit_status_two(words: list[str]) -> None:
    done = run(BLOCKED, "restore", *words)
    assert done.returncode == 2
    assert done.stderr


def test_two_restores_at_once_both_succeed_and_the_knobs_are_back(pinned: Path) -> None:
    words = [sys.executable, "-c", BLOCKED, *arguments(pinned)]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    results = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert bounds(pinned) == ("76800000\n", "921600000\n")
    assert not (pinned / "state" / "restore.json").exists()


def test_a_temporary_file_left_by_a_kill_in_the_first_save_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "restore.json.tmp"
    left.write_text('{"schema": "traingov.jo')
    done = run(BLOCKED, "restore", "--root", str(tmp_path), "--state-dir", str(tmp_path))
    assert done.returncode == 0
    assert "nothing to restore" in done.stdout
    assert not left.exists()
