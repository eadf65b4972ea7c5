"""SIGKILL at any instant: every file operation of journal and knob is a place to die (DESIGN 5.1)."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traingov.device.devfreq import GpuKnob, find_gpu
from traingov.device.disk import Disk
from traingov.device.files import SystemFiles
from traingov.device.journal import RestoreJournal
from traingov.device.restore import restore
from traingov_sim.kernel.devfreqnode import DevfreqSettings
from traingov_sim.kernel.kernelfiles import KernelFiles

NODE = "/sys/devices/17000000.gpu/devfreq/17000000.gpu"
ORIN_HZ = (306_000_000, 408_000_000, 510_000_000, 612_000_000, 714_000_000, 816_000_000, 918_000_000)
ORIGINAL = (408_000_000, 918_000_000)
# Lower, raise, off the table, a value seen before.
STEPS = ((510, 510), (816, 816), (555, 777), (510, 510))


class Killed(BaseException):
    """The process is gone: nothing of it catches this."""


class Death:
    """Dies at the ``at``-th operation: before it, or after it took effect. The dead do nothing more."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.count, self.dead = at, after, 0, False

    def around(self, operation, *arguments):  # type: ignore[no-untyped-def]
        if self.dead:
            raise Killed
        self.count += 1
        dies = self.count == self.at
        self.dead = dies
        if dies and not self.after:
            raise Killed
        result = operation(*arguments)
        if dies:
            raise Killed
        return result


class MortalDisk(Disk):
    """The real disk of a process that may die."""

    def __init__(self, death: Death) -> None:
        self.death = death

    def create(self, path: str) -> int:
        return int(self.death.around(super().create, path))

    def write(self, fd: int, data: bytes) -> int:
        # Short writes, so that there are instants in the middle of a file.
        return int(self.death.around(super().write, fd, data[:400]))

    def sync(self, fd: int) -> None:
        self.death.around(lambda: None)  # an instant to die at; a SIGKILL does not need the medium

    def rename(self, source: str, target: str) -> None:
        self.death.around(super().rename, source, target)

    def remove(self, path: str) -> None:
        self.death.around(super().remove, path)

    def sync_folder(self, path: str) -> None:
        self.death.around(lambda: None)


class MortalFiles:
    """The kernel's files as seen by a process that may die."""

    def __init__(self, kernel: KernelFiles, death: Death) -> None:
        self.kernel, self.death = kernel, death

    def read_text(self, path: str) -> str:
        return str(self.death.around(self.kernel.read_text, path))

    def write_text(self, path: str, text: str) -> None:
        self.death.around(self.kernel.write_text, path, text)

    def exists(self, path: str) -> bool:
        return self.kernel.exists(path)

    def list(self, path: str) -> tuple[str, ...]:
        return self.kernel.list(path)

    def real_path(self, path: str) -> str:
        return self.kernel.real_path(path)


def board(folder: Path, snap: str, minmax: str) -> KernelFiles:
    kernel = KernelFiles(str(folder / "tree"))
    kernel.put("/proc/sys/kernel/random/boot_id", "this-boot\n")
    kernel.add_devfreq(NODE, DevfreqSettings(ORIN_HZ, snap=snap, minmax=minmax))
    kernel.write_text(f"{NODE}/min_freq", f"{ORIGINAL[0]}\n")
    return kernel


def shown(kernel: KernelFiles) -> tuple[int, int]:
    return int(kernel.read_text(f"{NODE}/min_freq")), int(kernel.read_text(f"{NODE}/max_freq"))


def live(kernel: KernelFiles, journal_path: Path, death: Death, *, give_back: bool) -> None:
    """A governor's life, as far as it gets."""
    files = MortalFiles(kernel, death)
    journal = RestoreJournal(str(journal_path), files, pytest.fail, disk=MortalDisk(death))
    try:
        node = find_gpu(files)
        assert node is not None
        knob = GpuKnob(node, files, journal)
        for low, high in STEPS:
            assert knob.set_bounds(low * 1_000_000, high * 1_000_000).errors == ()
        if give_back:
            assert knob.restore().status == "restored"
    except Killed:
        pass
    finally:
        journal.close()  # the kernel drops a dead process's lock


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("snap", "minmax"), [("up", "refuse"), ("nearest", "clamp")])
def test_the_originals_come_back_after_a_death_at_every_single_operation(
    tmp_path: Path, snap: str, minmax: str, after: bool
) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        kernel, path, death = board(folder, snap, minmax), folder / "state" / "restore.json", Death(at, after=after)
        live(kernel, path, death, give_back=True)
        out = io.StringIO()
        report = restore("/", str(path), out, files=kernel)
        assert report.exit_status == 0, f"operation {at}: {out.getvalue()}"
        assert shown(kernel) == ORIGINAL, f"operation {at}: {out.getvalue()}"
        assert not path.exists()
        if not death.dead:
            break
    assert at > 60, "the life must have had many instants to die at"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_restore_that_dies_is_finished_by_the_next_one(tmp_path: Path, after: bool) -> None:
    at = 0
    while True:
        at += 1
        kernel, path = board(tmp_path / str(at), "keep", "refuse"), tmp_path / str(at) / "restore.json"
        live(kernel, path, Death(0, after=False), give_back=False)
        assert shown(kernel) != ORIGINAL
        death = Death(at, after=after)
        try:
            restore("/", str(path), io.StringIO(), files=MortalFiles(kernel, death), disk=MortalDisk(death))
        except Killed:
            assert restore("/", str(path), io.StringIO(), files=kernel).exit_status == 0
        assert shown(kernel) == ORIGINAL
        if not death.dead:
            break
    assert at > 8


def test_a_governor_that_starts_over_a_leftover_journal_keeps_the_true_originals(tmp_path: Path) -> None:
    kernel, path = board(tmp_path, "keep", "refuse"), tmp_path / "restore.json"
    live(kernel, path, Death(0, after=False), give_back=False)
    live(kernel, path, Death(0, after=False), give_back=False)
    assert restore("/", str(path), io.StringIO(), files=kernel).exit_status == 0
    assert shown(kernel) == ORIGINAL


GOVERN = """
import sys
from traingov.device.devfreq import GpuKnob, find_gpu
from traingov.device.files import SystemFiles
from traingov.device.journal import RestoreJournal
files = SystemFiles(sys.argv[1])
knob = GpuKnob(find_gpu(files), files, RestoreJournal(sys.argv[2], files, print))
print("governing", flush=True)
step = 0
while True:
    step += 1
    hz = 306_000_000 + step % 600 * 1_000_000
    assert not knob.set_bounds(hz, hz).errors
"""


def test_a_real_sigkill_leaves_nothing_that_a_restore_cannot_take_back(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    node = root / NODE.lstrip("/")
    node.mkdir(parents=True)
    boot = root / "proc/sys/kernel/random"
    boot.mkdir(parents=True)
    (boot / "boot_id").write_text("this-boot\n")
    chance = random.Random(7)
    for _ in range(8):
        (node / "min_freq").write_text("408000000\n")
        (node / "max_freq").write_text("918000000\n")
        child = subprocess.Popen(
            [sys.executable, "-c", GOVERN, str(root), str(state / "restore.json")], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "governing\n"
        time.sleep(chance.uniform(0, 0.05))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        out = io.StringIO()
        assert restore(str(root), str(state / "restore.json"), out).exit_status == 0, out.getvalue()
        bounds = [SystemFiles(str(root)).read_text(f"{NODE}/{name}") for name in ("min_freq", "max_freq")]
        assert bounds == ["408000000\n", "918000000\n"], out.getvalue()
