"""The terminal while a live view is shown: keys without Enter, and everything put back however it ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


class Keys:
    """A context in which keys come at once and unseen. Where stdin is no terminal, no key ever comes."""

    def __init__(self) -> None:
        self._saved: list[object] | None = None
        self._fd = -1

    def __enter__(self) -> Keys:
        with contextlib.suppress(OSError, ValueError, termios.error):
            fd = sys.stdin.fileno()
            if os.isatty(fd):
                self._saved = list(termios.tcgetattr(fd))
                self._fd = fd
                tty.setcbreak(fd, termios.TCSADRAIN)  # Ctrl-C stays a signal
        return self

    def __exit__(self, *exc: object) -> None:
        if self._saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]

    def quit_within(self, seconds: float) -> bool:
        """Wait; True at once where the user pressed q, or the terminal has gone."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._saved is None:
                time.sleep(left)
                return False
            ready, _, _ = select.select([self._fd], [], [], left)
            if ready:
                data = os.read(self._fd, 64)
                if not data or b"q" in data.lower():
                    return True
        return False


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP end the context as an exception does, so that the terminal is put back."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
