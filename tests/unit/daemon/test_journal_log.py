"""Records in the journal: fields that can be asked for, and no client's text that adds one."""

from __future__ import annotations

import io
import logging
import os
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov.journal_log import JOB_ENDED, JournalHandler, encode, fields, is_journal


def decode(datagram: bytes) -> list[tuple[str, str]]:
    """As systemd-journald reads it: NAME, newline, length, value, newline."""
    found = []
    while datagram:
        name, _, rest = datagram.partition(b"\n")
        (size,) = struct.unpack("<Q", rest[:8])
        assert rest[8 + size : 9 + size] == b"\n"
        found.append((name.decode(), rest[8 : 8 + size].decode("utf-8", "replace")))
        datagram = rest[9 + size :]
    return found


def record(text: str, level: int = logging.INFO, **extra: str) -> logging.LogRecord:
    return logging.getLogger("traingov.test").makeRecord(
        "traingov.test", level, __file__, 7, "job %s", (text,), None, "function", extra
    )


def test_a_record_has_its_message_priority_place_job_and_identifier() -> None:
    found = dict(decode(encode(record("a ended", logging.ERROR, **fields(JOB_ENDED, job="a", knob=None)))))
    assert found["MESSAGE"] == "job a ended"
    assert (found["PRIORITY"], found["LOGGER"], found["CODE_LINE"]) == ("3", "traingov.test", "7")
    assert (found["JOB"], found["MESSAGE_ID"]) == ("a", JOB_ENDED)
    assert "KNOB" not in found


@pytest.mark.parametrize(("level", "priority"), [(10, "7"), (20, "6"), (30, "4"), (40, "3"), (50, "2")])
def test_levels_are_syslogs(level: int, priority: str) -> None:
    assert dict(decode(encode(record("x", level))))["PRIORITY"] == priority


@given(st.text(), st.text())
def test_no_text_can_add_a_field(text: str, job: str) -> None:
    names = [name for name, _ in decode(encode(record(text, **fields(JOB_ENDED, job=job))))]
    expected = [
        "MESSAGE",
        "PRIORITY",
        "SYSLOG_IDENTIFIER",
        "LOGGER",
        "CODE_FILE",
        "CODE_LINE",
        "CODE_FUNC",
        "MESSAGE_ID",
    ]
    assert names == [*expected, *(["JOB"] if job else [])]


def test_a_very_long_text_is_cut() -> None:
    assert len(encode(record("x" * 1_000_000))) < 40_000


def test_it_is_sent_as_one_datagram_and_to_text_where_nobody_listens(tmp_path: Path) -> None:
    path, text = str(tmp_path / "journal"), io.StringIO()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(path)
        handler = JournalHandler(logging.StreamHandler(text), path)
        handler.emit(record("a"))
        assert dict(decode(journal.recv(65536)))["MESSAGE"] == "job a"
        assert text.getvalue() == ""
    os.unlink(path)
    handler.emit(record("b"))
    assert text.getvalue() == "job b\n"
    handler.close()


def test_the_journal_is_recognised_by_device_and_inode(tmp_path: Path) -> None:
    with (tmp_path / "f").open("w") as file:
        status = os.fstat(file.fileno())
        assert is_journal({"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}, file.fileno())
        assert not is_journal({"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino + 1}"}, file.fileno())
        assert not is_journal({}, file.fileno())
        descriptor = file.fileno()
    assert not is_journal({"JOURNAL_STREAM": "1:2"}, descriptor)
