"""What a restore writes, leaves alone, lowers and discards (DESIGN 5.1)."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov.device.devfreq import GpuKnob, find_gpu
from traingov.device.disk import FolderLock
from traingov.device.journal import RestoreJournal
from traingov.device.restore import RestoreReport, restore
from traingov_sim.kernel.devfreqnode import DevfreqSettings
from traingov_sim.kernel.kernelfiles import KernelFiles

NODE = "/sys/devices/57000000.gpu/devfreq/57000000.gpu"
MIN, MAX = f"{NODE}/min_freq", f"{NODE}/max_freq"
NANO_HZ = tuple(76_800_000 * step for step in range(1, 13))
CONF = """< POWER_MODEL ID=0 NAME=MAXN >
GPU MAX_FREQ -1
< POWER_MODEL ID=1 NAME=5W >
GPU MAX_FREQ 640000000
"""


class Board:
    """A virtual Nano at 153.6..921.6 MHz whose clock a governor pinned to 460.8 MHz before it died."""

    def __init__(self, folder: Path, *, conf: str | None = None, **manners: object) -> None:
        self.kernel = KernelFiles(str(folder / "tree"))
        self.kernel.put("/proc/sys/kernel/random/boot_id", "this-boot\n")
        self.kernel.put("/var/lib/nvpmodel/status", "pmode:0000\n")
        if conf is not None:
            self.kernel.put("/etc/nvpmodel.conf", conf)
        self.node = self.kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, **manners))  # type: ignore[arg-type]
        self.kernel.write_text(MIN, "153600000\n")
        self.path = folder / "state" / "restore.json"
        journal = RestoreJournal(str(self.path), self.kernel, pytest.fail)
        node = find_gpu(self.kernel)
        assert node is not None
        assert GpuKnob(node, self.kernel, journal).set_bounds(460_800_000, 460_800_000).errors == ()
        journal.close()
        self.writes: list[tuple[str, str]] = []
        self.kernel.on_write.append(lambda path, text: self.writes.append((path, text.strip())))
        self.text = ""

    def restore(self) -> RestoreReport:
        out = io.StringIO()
        report = restore("/", str(self.path), out, files=self.kernel, lock_wait_s=0.05)
        self.text = out.getvalue()
        return report

    def shown(self) -> tuple[int, int]:
        return int(self.kernel.read_text(MIN)), int(self.kernel.read_text(MAX))


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path, conf=CONF)


def outcomes(report: RestoreReport) -> dict[str, str]:
    return {knob.path.rsplit("/", 1)[1]: knob.outcome for knob in report.knobs}


def test_the_values_found_come_back_maximum_first_when_that_raises(board: Board) -> None:
    report = board.restore()
    assert report.exit_status == 0
    assert board.writes == [(MAX, "921600000"), (MIN, "153600000")]
    assert report.writes == tuple(board.writes)
    assert outcomes(report) == {"min_freq": "restored", "max_freq": "restored", "governor": "untouched"}
    assert not board.path.exists()


def test_a_second_restore_finds_nothing_to_do(board: Board) -> None:
    board.restore()
    board.writes.clear()
    assert board.restore().status == "nothing"
    assert board.writes == []


def test_a_knob_that_holds_its_original_is_already_back_and_not_written(board: Board) -> None:
    board.kernel.write_text(MAX, "921600000\n")
    board.writes.clear()
    report = board.restore()
    assert outcomes(report) == {"min_freq": "restored", "max_freq": "already", "governor": "untouched"}
    assert board.writes == [(MIN, "153600000")]


def test_a_value_that_another_program_set_is_left_alone_and_said(board: Board) -> None:
    board.kernel.write_text(MAX, "768000000\n")
    report = board.restore()
    assert report.exit_status == 0
    assert outcomes(report)["max_freq"] == "left"
    assert board.shown() == (153_600_000, 768_000_000)
    assert "left at 768000000: another program set it" in board.text


def test_a_foreign_maximum_below_our_minimum_s_original_bounds_what_comes_back(tmp_path: Path) -> None:
    board = Board(tmp_path, minmax="clamp")
    board.kernel.write_text(MAX, "76800000\n")  # a kernel that takes it shows min lowered too: 76.8, not ours
    report = board.restore()
    assert report.exit_status == 0
    low, high = board.shown()
    assert low <= high == 76_800_000


def test_a_foreign_minimum_keeps_the_maximum_from_going_below_it(tmp_path: Path) -> None:
    kernel_board = Board(tmp_path)
    data = json.loads(kernel_board.path.read_text())
    for knob in data["knobs"]:
        if knob["kind"] == "max":
            knob["original"] = "153600000"
    kernel_board.path.write_text(json.dumps(data))
    kernel_board.kernel.write_text(MIN, "307200000\n")
    report = kernel_board.restore()
    assert outcomes(report) == {"min_freq": "left", "max_freq": "clamped", "governor": "untouched"}
    assert kernel_board.shown() == (307_200_000, 307_200_000)


def test_a_journal_of_an_earlier_boot_is_discarded_and_nothing_is_written(board: Board) -> None:
    board.kernel.put("/proc/sys/kernel/random/boot_id", "the-next-boot\n")
    report = board.restore()
    assert (report.status, report.exit_status, board.writes) == ("discarded", 0, [])
    assert not board.path.exists()


def test_where_the_boot_cannot_be_told_the_values_tell(board: Board) -> None:
    board.kernel.put("/proc/sys/kernel/random/boot_id", "\n")
    assert board.restore().status == "restored"
    assert board.shown() == (153_600_000, 921_600_000)


def test_a_changed_power_mode_bounds_what_comes_back(board: Board) -> None:
    board.kernel.put("/var/lib/nvpmodel/status", "pmode:0001\n")
    report = board.restore()
    assert report.exit_status == 0
    assert outcomes(report) == {"min_freq": "restored", "max_freq": "clamped", "governor": "untouched"}
    assert board.shown() == (153_600_000, 640_000_000)
    assert "the limit of power mode 5W" in board.text


def test_a_changed_power_mode_whose_limit_cannot_be_read_never_raises_the_maximum(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.kernel.put("/var/lib/nvpmodel/status", "pmode:0003\n")
    report = board.restore()
    assert report.exit_status == 0
    assert board.shown() == (153_600_000, 460_800_000)
    assert "the maximum is not raised" in board.text


def test_a_mode_without_a_limit_gives_everything_back(board: Board) -> None:
    data = json.loads(board.path.read_text())
    data["power_mode"] = "5W"
    board.path.write_text(json.dumps(data))
    board.restore()
    assert board.shown() == (153_600_000, 921_600_000)


def test_a_kernel_that_allows_less_at_present_is_reported(tmp_path: Path) -> None:
    board = Board(tmp_path, minmax="clamp")
    board.node.set_ceiling(640_000_000)
    report = board.restore()
    assert report.exit_status == 0
    assert outcomes(report)["max_freq"] == "clamped"
    assert "the kernel allows 614400000" in board.text
    board.node.set_ceiling(None)
    assert board.shown() == (153_600_000, 921_600_000), "the original was written, not the limit"


@pytest.mark.parametrize("number", [errno.EIO, errno.EBUSY, errno.EACCES])
def test_an_error_at_one_knob_does_not_keep_the_other_from_coming_back(board: Board, number: int) -> None:
    board.kernel.fail(MIN, number, times=None)
    report = board.restore()
    assert report.exit_status == 1
    assert outcomes(report) == {"min_freq": "failed", "max_freq": "restored", "governor": "untouched"}
    assert errno.errorcode[number] in board.text
    assert board.path.exists(), "the journal stays until everything is back"
    board.kernel.mend()
    assert board.restore().exit_status == 0
    assert board.shown() == (153_600_000, 921_600_000)


def test_a_short_refusal_is_tried_again(board: Board) -> None:
    board.kernel.fail(MAX, errno.EBUSY, times=2)
    assert board.restore().exit_status == 0
    assert board.shown() == (153_600_000, 921_600_000)


def test_the_second_write_waits_when_the_first_one_failed(tmp_path: Path) -> None:
    board = Board(tmp_path)
    data = json.loads(board.path.read_text())
    for knob in data["knobs"]:
        if knob["kind"] == "min":
            knob["original"] = "614400000"  # above the 460.8 MHz that the maximum is pinned to
    board.path.write_text(json.dumps(data))
    board.kernel.fail(MAX, errno.EIO, times=None)
    report = board.restore()
    assert report.exit_status == 1
    assert board.writes == []
    assert "must wait" in board.text


def test_a_knob_that_cannot_be_read_is_not_written(board: Board) -> None:
    board.kernel.fail(MAX, errno.EIO, operation="read", times=None)
    report = board.restore()
    assert report.exit_status == 1
    assert (MAX, "921600000") not in board.writes


def test_a_kernel_that_takes_a_write_and_ignores_it_is_not_believed(board: Board) -> None:
    ignored = board.node.write
    board.node.write = lambda name, text: None if name == "max_freq" else ignored(name, text)  # type: ignore[method-assign]
    report = board.restore()
    assert report.exit_status == 1
    assert outcomes(report)["max_freq"] == "failed"


def test_a_governor_that_we_changed_comes_back_too(board: Board) -> None:
    data = json.loads(board.path.read_text())
    for knob in data["knobs"]:
        if knob["kind"] == "governor":
            knob["written"] = ["userspace"]
    board.path.write_text(json.dumps(data))
    board.kernel.write_text(f"{NODE}/governor", "userspace\n")
    assert board.restore().exit_status == 0
    assert board.kernel.read_text(f"{NODE}/governor") == "nvhost_podgov\n"


def test_every_truncation_of_the_journal_is_set_aside_and_nothing_is_written(board: Board) -> None:
    whole = board.path.read_bytes()
    for length in range(len(whole) - 1):  # the last byte is a newline: without it the journal is whole
        board.path.write_bytes(whole[:length])
        report = board.restore()
        assert (report.status, report.exit_status) == ("damaged", 1)
        aside = board.path.with_name("restore.json.damaged-1")
        assert aside.read_bytes() == whole[:length]
        assert str(aside) in board.text
        aside.unlink()
    assert board.writes == []


def test_damaged_journals_do_not_overwrite_each_other(board: Board) -> None:
    for number in (1, 2, 3):
        board.path.write_text(f"{number}")
        board.restore()
    names = sorted(name for name in os.listdir(board.path.parent) if "damaged" in name)
    assert names == [f"restore.json.damaged-{number}" for number in (1, 2, 3)]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_in_the_journal_crash_a_restore(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "restore.json").write_bytes(raw)
    report = restore(str(folder), str(folder / "restore.json"), io.StringIO())
    assert report.status == "damaged"


@pytest.mark.parametrize(
    ("path", "kind", "original"),
    [
        ("/etc/shadow", "min", "0"),
        ("/sys/class/devfreq/../../../etc/min_freq", "min", "0"),
        ("/sys/kernel/min_freq", "min", "0"),
        ("/sys/class/devfreq/x/max_freq", "min", "0"),
        ("/sys/class/devfreq/x/min_freq", "min", "1; reboot"),
        ("/sys/class/devfreq/x/governor", "governor", "a\nb"),
        ("/sys/class/devfreq/x/trans_stat", "trans_stat", "0"),
    ],
)
def test_a_forged_journal_makes_root_write_nowhere_else(board: Board, path: str, kind: str, original: str) -> None:
    knob = {"path": path, "kind": kind, "original": original, "written": ["7"], "pending": True}
    data = {"schema": "traingov.journal/1", "boot_id": "this-boot", "power_mode": "", "written_at": "", "knobs": [knob]}
    board.path.write_text(json.dumps(data))
    assert board.restore().status == "damaged"
    assert board.writes == []


def test_a_link_that_leads_out_of_devfreq_is_not_followed(board: Board) -> None:
    board.kernel.put("/etc/min_freq", "460800000\n")
    board.kernel.link("/sys/class/devfreq/evil", "../../../etc")
    data = json.loads(board.path.read_text())
    data["knobs"][0]["path"] = "/sys/class/devfreq/evil/min_freq"
    board.path.write_text(json.dumps(data))
    assert board.restore().exit_status == 1
    assert board.kernel.read_text("/etc/min_freq") == "460800000\n"


def test_a_journal_that_is_a_link_is_not_followed(board: Board, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    board.path.rename(real)
    board.path.symlink_to(real)
    report = board.restore()
    assert report.exit_status == 1
    assert board.writes == []


def test_a_restore_beside_a_live_governor_refuses(board: Board) -> None:
    lock = FolderLock(str(board.path.parent))
    lock.acquire(0)
    report = board.restore()
    assert report.exit_status == 1
    assert "stop that one first" in board.text
    assert board.writes == []
    lock.release()
    assert board.restore().exit_status == 0
