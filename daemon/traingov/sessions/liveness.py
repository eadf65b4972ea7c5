"""Noticing that a process ended, also when a forked child keeps its socket open (DESIGN 4)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")


def start_time(pid: int, proc: Path = PROC) -> int | None:
    """When the process started, in clock ticks since boot (proc(5), field 22); None where it has ended.

    A zombie has ended: it trains no more. Pid and start time together name one process, a pid alone does not.
    """
    try:
        text = (proc / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name, in brackets, may hold anything, brackets and spaces too.
    fields = text[text.rfind(b")") + 1 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X", b"x"):
        return None
    return int(fields[19])


class ProcessWatch:
    """Calls ``on_exit`` once, on the loop, when the process ``pid`` has ended.

    With a pidfd (Linux 5.3) the kernel says so at once; without one, the start time is looked at every
    ``poll_interval_s``. A given ``pidfd`` becomes the watch's own and is closed with it.
    """

    def __init__(
        self,
        pid: int,
        on_exit: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        *,
        pidfd: int | None = None,
        poll_interval_s: float = 1.0,
        use_pidfd: bool = True,
        proc: Path = PROC,
    ) -> None:
        self._pid = pid
        self._on_exit: Callable[[], None] | None = on_exit
        self._loop = loop
        self._poll_interval_s = poll_interval_s
        self._proc = proc
        self._timer: asyncio.Handle | None = None
        self._pidfd = pidfd
        self._started: int | None = None
        if self._pidfd is None and use_pidfd:
            self._pidfd = _open_pidfd(pid)
        if self._pidfd is not None:
            loop.add_reader(self._pidfd, self._ended)
            return
        self._started = start_time(pid, proc)
        self._timer = loop.call_soon(self._poll)

    @property
    def by_pidfd(self) -> bool:
        """Whether the kernel tells; otherwise /proc is polled."""
        return self._pidfd is not None

    def close(self) -> None:
        """Stop watching. May be called twice."""
        self._on_exit = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _poll(self) -> None:
        if self._started is None or start_time(self._pid, self._proc) != self._started:
            self._ended()
            return
        self._timer = self._loop.call_later(self._poll_interval_s, self._poll)

    def _ended(self) -> None:
        on_exit = self._on_exit
        self.close()
        if on_exit is not None:
            on_exit()


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        # An old kernel, a seccomp filter, or the process has ended: polling tells these apart.
        return None
