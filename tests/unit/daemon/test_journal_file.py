"""The journal's file: what is promised about it, and what is never believed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov.device.disk import Disk, FolderLock
from traingov.device.files import SystemFiles
from traingov.device.journal import RestoreJournal
from traingov.device.journal_format import (
    DamagedJournalError,
    Intent,
    JournalData,
    JournalError,
    Knob,
    decode,
    encode,
)

MAX = "/sys/class/devfreq/17000000.gpu/max_freq"
_HZ = st.integers(0, 10**17).map(str)


def journal(folder: Path, disk: Disk | None = None, warnings: list[str] | None = None) -> RestoreJournal:
    warn = pytest.fail if warnings is None else warnings.append
    return RestoreJournal(str(folder / "restore.json"), SystemFiles(str(folder)), warn, disk=disk, lock_wait_s=0)


@given(original=_HZ, written=st.lists(_HZ, max_size=5), pending=st.booleans(), boot=st.text(), mode=st.text())
def test_what_is_written_is_what_is_read(
    original: str, written: list[str], pending: bool, boot: str, mode: str
) -> None:
    data = JournalData(boot, mode, (Knob(MAX, "max", original, tuple(written), pending),), "2026-01-01T00:00:00Z")
    assert decode(encode(data)) == data


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_other_json_is_damaged_and_nothing_worse(value: object) -> None:
    import json  # noqa: PLC0415

    for content in (value, {"schema": "traingov.journal/1", "knobs": value}, {"schema": value}):
        with pytest.raises(DamagedJournalError):
            decode(json.dumps(content).encode())


def test_a_deeply_nested_file_is_damaged_and_does_not_exhaust_the_stack() -> None:
    with pytest.raises(DamagedJournalError):
        decode(b"[" * 200_000)


def test_a_huge_file_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "restore.json").write_bytes(b" " * (1 << 21))
    with pytest.raises(DamagedJournalError):
        decode(Disk().read(str(tmp_path / "restore.json")))


def test_a_new_value_is_pending_until_what_the_kernel_made_of_it_is_noted(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.prepare([Intent(MAX, "max", "900", "555")])
    assert decode((tmp_path / "restore.json").read_bytes()).knobs == (Knob(MAX, "max", "900", ("555",), True),)
    kept.settle({MAX: "600"})
    assert decode((tmp_path / "restore.json").read_bytes()).knobs == (Knob(MAX, "max", "900", ("600", "555"), False),)


def test_a_value_that_stands_after_a_refused_write_is_not_noted_as_ours(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.prepare([Intent(MAX, "max", "900", "555")])
    kept.settle({MAX: "777"}, refused=[MAX])
    assert kept.data is not None
    assert "777" not in kept.data.knobs[0].written


def test_a_refused_write_that_changed_nothing_is_no_longer_pending(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.prepare([Intent(MAX, "max", "900", "555")])
    kept.settle({MAX: "900"}, refused=[MAX])
    assert kept.data is not None
    assert kept.data.knobs == (Knob(MAX, "max", "900", ("555",), False),)


def test_the_first_original_is_never_replaced(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    kept.prepare([Intent(MAX, "max", "900", "555")])
    kept.prepare([Intent(MAX, "max", "555", "444")])
    assert kept.data is not None
    assert kept.data.knobs[0].original == "900"


class FailingDisk(Disk):
    """Fails at one named operation."""

    def __init__(self, operation: str, number: int) -> None:
        def fail(*_arguments: object) -> None:
            raise OSError(number, os.strerror(number))

        setattr(self, operation, fail)


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename", "sync_folder"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_anywhere_is_one_clear_refusal(tmp_path: Path, operation: str, number: int) -> None:
    kept = journal(tmp_path, FailingDisk(operation, number))
    with pytest.raises(JournalError, match=errno.errorcode[number]):
        kept.prepare([Intent(MAX, "max", "900", "555")])
    FolderLock(str(tmp_path)).acquire(0)  # and the folder was let go


def test_a_failed_rewrite_leaves_the_older_journal_whole(tmp_path: Path) -> None:
    disk = Disk()
    kept = journal(tmp_path, disk)
    kept.prepare([Intent(MAX, "max", "900", "555")])
    before = (tmp_path / "restore.json").read_bytes()
    disk.rename = FailingDisk("rename", errno.EIO).rename  # type: ignore[method-assign]
    with pytest.raises(JournalError):
        kept.prepare([Intent(MAX, "max", "900", "444")])
    assert (tmp_path / "restore.json").read_bytes() == before


def test_a_damaged_journal_found_at_start_is_set_aside_and_the_governor_goes_on(tmp_path: Path) -> None:
    (tmp_path / "restore.json").write_text('{"schema": "traingov.jour')
    warnings: list[str] = []
    journal(tmp_path, warnings=warnings).prepare([Intent(MAX, "max", "900", "555")])
    assert (tmp_path / "restore.json.damaged-1").read_text() == '{"schema": "traingov.jour'
    assert len(warnings) == 1
    assert "is damaged" in warnings[0]


def test_a_journal_of_an_earlier_boot_gives_no_originals(tmp_path: Path) -> None:
    boot = tmp_path / "proc/sys/kernel/random"
    boot.mkdir(parents=True)
    (boot / "boot_id").write_text("first\n")
    old = journal(tmp_path)
    old.prepare([Intent(MAX, "max", "900", "555")])
    old.close()
    (boot / "boot_id").write_text("second\n")
    new = journal(tmp_path)
    new.prepare([Intent(MAX, "max", "800", "555")])
    assert new.data is not None
    assert (new.data.boot_id, new.data.knobs[0].original) == ("second", "800")


def test_two_governors_never_share_a_journal(tmp_path: Path) -> None:
    first, second = journal(tmp_path), journal(tmp_path)
    first.prepare([Intent(MAX, "max", "900", "555")])
    with pytest.raises(JournalError, match="running traingovd"):
        second.prepare([Intent(MAX, "max", "900", "444")])
    first.clear()
    second.prepare([Intent(MAX, "max", "900", "444")])


@pytest.mark.parametrize("path", ["/etc/max_freq", "/sys/class/devfreq/x/../max_freq", "/sys/class/net/x/max_freq"])
def test_only_devfreq_files_are_ever_prepared(tmp_path: Path, path: str) -> None:
    with pytest.raises(JournalError, match="no devfreq knob"):
        journal(tmp_path).prepare([Intent(path, "max", "900", "555")])
    assert not (tmp_path / "restore.json").exists()
