"""Feeds systemd's watchdog (sd_watchdog_enabled(3)) from the event loop, and only while the control loop gets on."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping

from .notify import notify

log = logging.getLogger("traingov.watchdog")

_SHARE = 1 / 3
"""Of the time that systemd allows between two signs of life: one may come late, or get lost."""


def period_s(environ: Mapping[str, str]) -> float | None:
    """Seconds between two signs of life; None where systemd asks this process for none."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or int(usec) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 1e6 * _SHARE


class Watchdog:
    """Sends WATCHDOG=1 as long as ``stuck`` returns None; else says once what it returned, and keeps silent.

    After silence systemd ends the service with SIGABRT, gives the knobs back (ExecStopPost=) and starts it anew.
    """

    def __init__(
        self, stuck: Callable[[], str | None], period_s: float | None, send: Callable[[str], None] = notify
    ) -> None:
        self._stuck = stuck
        self._period_s = period_s
        self._send = send
        self._timer: asyncio.TimerHandle | None = None
        self._said = False

    def start(self) -> None:
        """Begin; does nothing where no watchdog is set."""
        if self._period_s is not None:
            self._turn()

    def stop(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        assert self._period_s is not None
        self._timer = asyncio.get_running_loop().call_later(self._period_s, self._turn)
        reason = self._stuck()
        if reason is None:
            self._said = False
            self._send("WATCHDOG=1")
        elif not self._said:
            self._said = True
            log.error("%s: the watchdog is no longer fed, so that the service is started anew", reason)
