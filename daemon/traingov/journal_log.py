"""Log records to systemd's journal with fields, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).

    journalctl -u traingov JOB=resnet18            # one job
    journalctl -u traingov MESSAGE_ID=...          # one kind of event: the identifiers below, in docs/install.md too

Standard library only. Where stderr is no journal stream, records go to stderr as text.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
from collections.abc import Mapping

JOURNAL_SOCKET = "/run/systemd/journal/socket"
_TEXT_MOST_BYTES = 32 * 1024  # a datagram has to fit into the socket's buffer

# What happened, one identifier each (sd_journal_print(3): random, fixed for ever).
CLOCK_SET = "aee79c015cd94ea1a54c3ef5a4eeb590"
CLOCK_GIVEN_BACK = "c0d4c67f86b043958039fde8c97e7e68"
KNOB_TROUBLE = "bc98323771a244a8a06a167e3bdf28c7"
JOB_REGISTERED = "d204d2b1d3b84e59b1f0250af81714a7"
JOB_ENDED = "bd5ac233c5784acf923bec76e2f0e38f"
DECIDED = "233e0449e1f545aebddc785615717f53"
CONDITION = "f317d2310cd24a44946945ff040ce26b"

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_FIELDS = ("message_id", "job", "knob", "condition")


def fields(message_id: str, **more: str | None) -> dict[str, str]:
    """What goes into ``extra=`` of a log call. ``more``: job, knob, condition; None is left out."""
    return {"message_id": message_id, **{key: value for key, value in more.items() if value}}


def is_journal(environ: Mapping[str, str], descriptor: int) -> bool:
    """Whether ``descriptor`` leads to the journal: $JOURNAL_STREAM names its device and inode (systemd.exec(5))."""
    device, _, inode = environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))


def encode(record: logging.LogRecord) -> bytes:
    """The datagram of a record."""
    text = record.getMessage()
    if record.exc_text:
        text = f"{text}\n{record.exc_text}"
    values = {
        "MESSAGE": text,
        "PRIORITY": str(next((p for level, p in _PRIORITIES if record.levelno >= level), 7)),
        "SYSLOG_IDENTIFIER": "traingovd",
        "LOGGER": record.name,
        "CODE_FILE": record.pathname,
        "CODE_LINE": str(record.lineno),
        "CODE_FUNC": record.funcName or "",
        **{name.upper(): str(record.__dict__[name]) for name in _FIELDS if name in record.__dict__},
    }
    return b"".join(_field(name, value) for name, value in values.items())


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "backslashreplace")[:_TEXT_MOST_BYTES]
    # With its length before it, a value may hold anything: no text of a client can add a field of its own.
    return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


class JournalHandler(logging.Handler):
    """Sends records to the journal; to ``otherwise`` where the journal does not take one."""

    def __init__(self, otherwise: logging.Handler, path: str = JOURNAL_SOCKET) -> None:
        super().__init__()
        self._otherwise = otherwise
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record. Called by the log's own thread, so it may wait."""
        try:
            self._socket.sendto(encode(record), self._path)
        except OSError:
            self._otherwise.handle(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()


def output() -> logging.Handler:
    """Where log records go: the journal with fields where stderr leads there, else stderr as text."""
    text = logging.StreamHandler(sys.stderr)
    text.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    return JournalHandler(text) if is_journal(os.environ, 2) else text
