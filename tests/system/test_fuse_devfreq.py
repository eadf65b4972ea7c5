"""The real knob through a real mount: writes are system calls, refusals are errnos."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from traingov.device.devfreq import GpuKnob, find_gpu
from traingov.device.files import SystemFiles
from traingov.device.journal import RestoreJournal
from traingov.device.restore import restore
from traingov_sim.kernel.devfreqnode import DevfreqSettings
from traingov_sim.kernel.fusefs import mounted, unavailable
from traingov_sim.kernel.kernelfiles import KernelFiles

NODE = "/sys/devices/57000000.gpu/devfreq/57000000.gpu"
NANO_HZ = tuple(76_800_000 * step for step in range(1, 13))

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(unavailable() is not None, reason=f"no FUSE mount here: {unavailable()}"),
]


@pytest.fixture
def kernel(tmp_path: Path) -> KernelFiles:
    files = KernelFiles(str(tmp_path / "tree"))
    files.put("/proc/sys/kernel/random/boot_id", "this-boot\n")
    files.add_devfreq(NODE, DevfreqSettings(NANO_HZ, snap="up"))
    files.put("/sys/devices/57000000.gpu/load", "412\n")
    files.link("/sys/class/devfreq/57000000.gpu", "../../devices/57000000.gpu/devfreq/57000000.gpu")
    return files


@pytest.fixture
def root(kernel: KernelFiles, tmp_path: Path) -> Iterator[str]:
    with mounted(kernel, str(tmp_path / "mnt")) as mountpoint:
        yield mountpoint
    assert not os.path.ismount(tmp_path / "mnt"), "the mount must go at the end"
    assert not any(thread.name == "fuse" for thread in threading.enumerate())


def knob_of(root: str, journal: Path) -> GpuKnob:
    files = SystemFiles(root)
    node = find_gpu(files)
    assert node is not None
    assert node.path == NODE
    return GpuKnob(node, files, RestoreJournal(str(journal), files, pytest.fail))


def test_a_pin_lands_in_the_kernel_and_comes_back_through_the_mount(
    kernel: KernelFiles, root: str, tmp_path: Path
) -> None:
    knob = knob_of(root, tmp_path / "state" / "restore.json")
    assert knob.node.available_frequencies_hz == NANO_HZ
    result = knob.set_bounds(460_800_000, 460_800_000)
    assert result.errors == ()
    assert result.writes == (("min_freq", 460_800_000), ("max_freq", 460_800_000))
    assert kernel.read_text(f"{NODE}/cur_freq") == "460800000\n"
    assert knob.restore().status == "restored"
    assert kernel.read_text(f"{NODE}/max_freq") == "921600000\n"
    assert kernel.read_text(f"{NODE}/min_freq") == "76800000\n"


def test_a_snapped_value_is_seen_through_the_mount_although_nothing_told_the_reader(root: str, tmp_path: Path) -> None:
    result = knob_of(root, tmp_path / "restore.json").set_bounds(400_000_000, 700_000_000)
    assert (result.actual.min_hz, result.actual.max_hz) == (460_800_000, 768_000_000)
    assert len(result.notes) == 2


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBUSY, errno.EIO, errno.EACCES])
def test_a_refusal_comes_back_as_its_errno(kernel: KernelFiles, root: str, tmp_path: Path, number: int) -> None:
    knob = knob_of(root, tmp_path / "restore.json")
    kernel.fail(f"{NODE}/max_freq", number)
    result = knob.set_bounds(76_800_000, 460_800_000)
    assert len(result.errors) == 1
    assert errno.errorcode[number] in result.errors[0]
    assert result.actual.max_hz == 921_600_000


def test_a_minimum_above_the_maximum_is_refused_by_the_mounted_kernel(root: str) -> None:
    SystemFiles(root).write_text(f"{NODE}/max_freq", "153600000\n")
    with pytest.raises(OSError, match="Invalid argument"):
        SystemFiles(root).write_text(f"{NODE}/min_freq", "307200000\n")
    with pytest.raises(OSError, match="Invalid argument"):
        SystemFiles(root).write_text(f"{NODE}/min_freq", "rubbish\n")


def test_a_change_in_the_kernel_is_read_at_once_because_nothing_is_cached(kernel: KernelFiles, root: str) -> None:
    files = SystemFiles(root)
    for load in ("5", "1000", "17"):
        kernel.put("/sys/devices/57000000.gpu/load", f"{load}\n")
        assert files.read_text("/sys/devices/57000000.gpu/load") == f"{load}\n"


def test_a_process_that_dies_between_writes_is_cleaned_up_by_the_restore_command(
    kernel: KernelFiles, root: str, tmp_path: Path
) -> None:
    # The child pins the clock and is killed by its own kernel file: SIGKILL inside the second write.
    child_pid: list[int] = []

    def kill_at_second_write(path: str, _text: str) -> None:
        if path.endswith("/max_freq") and child_pid:
            os.kill(child_pid.pop(), 9)

    script = (
        "import sys; from traingov.device.devfreq import *; from traingov.device.files import SystemFiles;"
        "from traingov.device.journal import RestoreJournal\n"
        "files = SystemFiles(sys.argv[1]); journal = RestoreJournal(sys.argv[2], files, print)\n"
        "knob = GpuKnob(find_gpu(files), files, journal)\n"
        "sys.stdin.readline(); knob.set_bounds(153600000, 153600000); knob.set_bounds(307200000, 307200000)\n"
    )
    state = tmp_path / "state"
    child = subprocess.Popen([sys.executable, "-c", script, root, str(state / "restore.json")], stdin=subprocess.PIPE)
    child_pid.append(child.pid)
    kernel.on_write.append(kill_at_second_write)
    child.communicate(b"go\n", timeout=60)
    assert child.returncode == -9
    assert kernel.read_text(f"{NODE}/max_freq") == "153600000\n"
    report = restore(root, str(state / "restore.json"), io.StringIO())
    assert report.exit_status == 0
    assert kernel.read_text(f"{NODE}/max_freq") == "921600000\n"
    assert kernel.read_text(f"{NODE}/min_freq") == "76800000\n"
    assert not (state / "restore.json").exists()
