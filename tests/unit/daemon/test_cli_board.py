"""`traingov board`: a board is recorded into a folder and read from it again."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from traingov.cli.board import group, tegrastats_lines
from traingov.cli.check import check
from traingov.cli.errors import WrongInput
from traingov_sim.board.boardspec import load_board, noiseless
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.board.tegrastats_text import TegrastatsText
from traingov_sim.kernel.tree import FolderTree

FOLDER = Path(__file__).parents[2] / "golden/boards"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a virtual Orin Nano whose tegrastats prints a foreign line first."""
    board = VirtualBoard(noiseless(load_board("orin-nano")))
    FolderTree(tmp_path / "root", board, "boot", threading.Lock()).refresh(board.sensors(5.0))
    line = TegrastatsText(board.spec).line(board.sensors(5.0), "10-26-2025 05:10:55")
    tool = tmp_path / "tool.py"
    tool.write_text(
        "import time\nprint('nvhost: a foreign line')\n"
        f"while True:\n    print({line!r}, flush=True)\n    time.sleep(0.02)\n"
    )
    file = tmp_path / "traingov.yaml"
    file.write_text(f"root: {tmp_path}/root\ntegrastats: ['{sys.executable}', '{tool}']\n")
    return file


def test_a_board_is_recorded_and_read_again_as_it_was(config: Path, tmp_path: Path) -> None:
    done = run("record", tmp_path / "rec", "--lines", 2, "--config", config)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "rec").iterdir()) == ["read.json", "tegrastats.txt", "tree.json"]
    assert "0 unreadable, 2 lines" in done.output
    seen = json.loads(run("read", tmp_path / "rec", "--json").stdout)
    assert seen == json.loads((tmp_path / "rec/read.json").read_text())
    assert set(seen["sysfs"]["rails_w"]) == {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"}
    assert len(seen["tegrastats"]) == 2
    assert seen["tegrastats"][0]["input_power_w"] == pytest.approx(seen["sysfs"]["input_power_w"], abs=0.002)


def test_this_board_is_read_without_a_recording(config: Path) -> None:
    done = run("read", "--config", config)
    assert done.exit_code == 0
    assert done.output.startswith("NVIDIA Jetson Orin Nano Developer Kit, R36.3.0, power mode 15W\n")
    assert "4 clocks, 306 to 624.75 MHz" in done.output


def test_a_recorded_board_is_described_with_what_it_does_not_show() -> None:
    text = run("read", FOLDER / "thor-r38").output
    assert "load file none" in text
    assert "input 71.232 W (VDD_GPU" in text
    assert "load unknown" in text


def test_a_folder_with_something_in_it_is_not_written_to(config: Path, tmp_path: Path) -> None:
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec/mine").write_text("keep\n")
    done = run("record", tmp_path / "rec", "--config", config)
    assert done.exit_code == 2
    assert "not an empty folder: name a new one" in done.output
    assert [path.name for path in (tmp_path / "rec").iterdir()] == ["mine"]


def test_a_board_without_tegrastats_is_recorded_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    file = tmp_path / "c.yaml"
    file.write_text(f"root: {tmp_path}/root\ntegrastats: no-such-tegrastats\n")
    done = run("record", tmp_path / "rec", "--config", file)
    assert done.exit_code == 0
    assert "cannot start no-such-tegrastats" in done.output
    assert (tmp_path / "rec/tegrastats.txt").read_text() == ""


def test_a_folder_that_is_no_recording_is_one_clear_line(tmp_path: Path) -> None:
    done = run("read", tmp_path)
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert "tree.json: cannot be read" in done.output
    (tmp_path / "tree.json").write_text('{"schema": "other"}')
    assert "must be traingov.boardtree/1" in run("read", tmp_path).output


def test_check_knows_a_recorded_board_and_names_what_is_wrong_with_one(tmp_path: Path) -> None:
    path = FOLDER / "nano/tree.json"
    assert check(str(path)) == "traingov.boardtree/1"
    data = json.loads(path.read_text())
    data["errors"]["/sys/x"] = "broken"
    (tmp_path / "tree.json").write_text(json.dumps(data))
    with pytest.raises(WrongInput, match=r"errors\./sys/x: 'broken' does not match"):
        check(str(tmp_path / "tree.json"))


def test_a_tegrastats_that_ends_or_says_nothing_does_not_keep_the_command() -> None:
    assert tegrastats_lines([sys.executable, "-c", "pass"], 2) == ([], "ended after 0 of 2 readings")
    lines, why = tegrastats_lines([sys.executable, "-c", "import time; time.sleep(60)"], 1, wait_s=-0.9)
    assert lines == []
    assert why is not None
    assert "gave 0 of 1 readings" in why
