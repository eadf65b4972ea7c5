"""Every board is a recorded folder: what we read of it, and exactly what we write to pin its clock and give it back.

The folders are in tests/golden/boards. ``tree.json`` and ``tegrastats.txt`` are what `traingov board record` writes;
``read.json`` and ``write.json`` are right values that were worked out beside them, not copied from a run.
"""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any

import pytest

from traingov.boardview import view
from traingov.cli.board import load_recording
from traingov.data import data_dir
from traingov.device.boardtree import BoardTree, RecordedFiles, record
from traingov.device.devfreq import GpuKnob
from traingov.device.discovery import find_gpu
from traingov.device.journal import RestoreJournal
from traingov.telemetry.rails import RailTable
from traingov_sim.kernel.devfreqnode import DevfreqSettings
from traingov_sim.kernel.kernelfiles import KernelFiles

FOLDER = Path(__file__).parents[2] / "golden/boards"
BOARDS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
each_board = pytest.mark.parametrize("name", BOARDS)


def golden(name: str, file: str) -> Any:
    return json.loads((FOLDER / name / file).read_text(encoding="utf-8"))


def kernel_of(name: str, folder: Path) -> tuple[KernelFiles, list[list[str]]]:
    """The recorded tree with the kernel's manners, and the writes that it took."""
    tree, wanted = load_recording(FOLDER / name)[0], golden(name, "write.json")
    files = KernelFiles(str(folder))
    for link, target in tree.links.items():
        files.link(link, target)
    for path, text in tree.files.items():
        files.put(path, text)
    for path, error in tree.errors.items():
        files.put(path, "")
        files.fail(path, getattr(errno, error), operation="read", times=None)
    node = find_gpu(RecordedFiles(tree))
    assert node is not None
    shown = golden(name, "read.json")["gpu"]
    settings = DevfreqSettings(
        node.available_frequencies_hz,
        snap=wanted["kernel"]["snap"],
        minmax=wanted["kernel"]["order"],
        governor=shown["governor"],
        available_governors=node.available_governors,
    )
    sysfs = files.add_devfreq(node.path, settings)
    sysfs.write("max_freq", str(shown["max_hz"]))  # the power mode's limit, as nvpmodel wrote it at boot
    sysfs.write("min_freq", str(shown["min_hz"]))
    writes: list[list[str]] = []
    files.on_write.append(lambda path, text: writes.append([path, text.strip()]))
    return files, writes


def assert_same(found: Any, right: Any, at: str = "") -> None:
    """As ==, but powers may differ by a rounding."""
    if isinstance(right, dict) and isinstance(found, dict):
        assert found.keys() == right.keys(), at
        for key in right:
            assert_same(found[key], right[key], f"{at}.{key}")
    elif isinstance(right, list) and isinstance(found, list):
        assert len(found) == len(right), at
        for number, (one, other) in enumerate(zip(found, right, strict=True)):
            assert_same(one, other, f"{at}[{number}]")
    elif isinstance(right, float) and isinstance(found, (int, float)):
        assert math.isclose(found, right, abs_tol=2e-6), f"{at}: {found} is not {right}"
    else:
        assert found == right, f"{at}: {found!r} is not {right!r}"


def test_every_board_and_release_that_is_promised_has_a_folder() -> None:
    assert set(BOARDS) == {
        *("nano", "tx2", "tx2-nx", "xavier-nx", "agx-xavier", "orin-nano", "orin-nx"),
        *("agx-orin-r35", "agx-orin-r36", "thor-r38", "thor-r39"),
    }
    for name in BOARDS:
        assert "econstructed" in (FOLDER / name / "README.md").read_text(encoding="utf-8")


@each_board
def test_what_is_read_of_the_board_is_what_it_shows(name: str) -> None:
    tree, lines = load_recording(FOLDER / name)
    found = view(RecordedFiles(tree), lines, RailTable.load(data_dir() / "boards"))
    assert_same(json.loads(json.dumps(found)), golden(name, "read.json"), name)


@each_board
def test_a_pin_and_its_restore_write_exactly_this(name: str, tmp_path: Path) -> None:
    wanted = golden(name, "write.json")
    files, writes = kernel_of(name, tmp_path / "tree")
    node = find_gpu(files)
    assert node is not None
    knob = GpuKnob(node, files, RestoreJournal(str(tmp_path / "state/restore.json"), files, pytest.fail))
    result = knob.set_bounds(wanted["pin_hz"], wanted["pin_hz"])
    assert result.errors == ()
    assert result.notes == ()
    assert (result.actual.min_hz, result.actual.max_hz) == (wanted["pin_hz"], wanted["pin_hz"])
    assert writes == wanted["pinned"]
    del writes[:]
    assert knob.restore().status == "restored"
    assert writes == wanted["restored"]
    shown = golden(name, "read.json")["gpu"]
    assert (knob.read().min_hz, knob.read().max_hz) == (shown["min_hz"], shown["max_hz"])
    assert not (tmp_path / "state/restore.json").exists()


@each_board
def test_recording_a_recorded_board_gives_the_same_recording(name: str, tmp_path: Path) -> None:
    tree = load_recording(FOLDER / name)[0]
    assert record(RecordedFiles(tree)).to_json() == tree.to_json()
    files, _ = kernel_of(name, tmp_path)  # and so does the tree as a folder, but for the node, which is live
    again = record(files)
    assert again.links == tree.links
    assert again.errors == tree.errors
    assert {p: t for p, t in again.files.items() if "/devfreq/" not in p} == {
        p: t for p, t in tree.files.items() if "/devfreq/" not in p
    }


@each_board
def test_a_recording_holds_no_serial_number_and_none_of_nvidias_text(name: str) -> None:
    text = (FOLDER / name / "tree.json").read_text(encoding="utf-8").lower()
    for word in ("serial", "mac", "hostname", "copyright", "cpu_denver"):
        assert f"{word}-" not in text
        assert f"{word} " not in text
    tree = BoardTree.from_json(json.loads(text))
    assert tree.files["/proc/sys/kernel/random/boot_id"].replace("0", "").replace("-", "").strip() == ""


def test_a_recording_keeps_errors_and_links_and_drops_everything_that_names_the_machine(tmp_path: Path) -> None:
    files = KernelFiles(str(tmp_path))
    files.put("/proc/device-tree/model", "A board\0")
    files.put("/proc/device-tree/serial-number", "1424719012345\0")
    files.put("/proc/sys/kernel/random/boot_id", "4d1c2b0e-1111-2222-3333-444455556666\n")
    files.put("/sys/class/net/eth0/address", "48:b0:2d:00:00:01\n")
    files.put(
        "/etc/nvpmodel.conf",
        "# Copyright of somebody.\n< PARAM TYPE=FILE NAME=CPU_ONLINE >\nCORE_0 /sys/x\n"
        "< POWER_MODEL ID=1 NAME=5W >\nCPU_ONLINE CORE_0 1\nGPU MAX_FREQ 640000000\n< PM_CONFIG DEFAULT=1 >\n",
    )
    real = "/sys/devices/c240000.i2c/1-0040/hwmon/hwmon4"
    files.put(f"{real}/name", "ina3221\n")
    files.put(f"{real}/in1_label", "VDD_IN\n")
    files.put(f"{real}/curr1_input", "")
    files.fail(f"{real}/curr1_input", errno.EIO, operation="read", times=None)
    files.link("/sys/class/hwmon/hwmon4", "../../devices/c240000.i2c/1-0040/hwmon/hwmon4")
    tree = record(files)
    assert tree.errors == {f"{real}/curr1_input": "EIO"}
    assert tree.links == {"/sys/class/hwmon/hwmon4": real}
    assert tree.files == {
        "/proc/device-tree/model": "A board\0",
        "/proc/sys/kernel/random/boot_id": "00000000-0000-0000-0000-000000000000\n",
        "/etc/nvpmodel.conf": "< POWER_MODEL ID=1 NAME=5W >\nGPU MAX_FREQ 640000000\n",
        f"{real}/name": "ina3221\n",
        f"{real}/in1_label": "VDD_IN\n",
    }


def test_nothing_can_be_written_to_a_recording() -> None:
    with pytest.raises(OSError, match="Read-only"):
        RecordedFiles(BoardTree({"/sys/a": "1"})).write_text("/sys/a", "2")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "schema: must be traingov.boardtree/1"),
        ({"schema": "x"}, "schema: must be traingov.boardtree/1, not 'x'"),
        ({"schema": "traingov.boardtree/1", "files": {"etc/x": "1"}}, "files: must map absolute paths to texts"),
        ({"schema": "traingov.boardtree/1", "errors": {"/x": 5}}, "errors: must map absolute paths to texts"),
    ],
)
def test_a_wrong_recording_is_refused_with_the_reason(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoardTree.from_json(data)
