"""Bounds, counters and small helpers of the tegrastats source."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLimits:
    """Bounds and waits. Times in seconds."""

    back_off_s: float = 0.2  # the first wait; doubles with each failure
    back_off_most_s: float = 30.0
    healthy_s: float = 5.0  # a child that gave readings for this long starts the back-off anew
    silence_s: float = 2.0  # without a reading for max(this, 5 intervals) the child counts as hung
    start_s: float = 5.0  # but its first reading may take this long
    lines_per_wakeup: int = 16  # of more that wait, the newest are handled and the rest is dropped
    flood_lines_per_s: float = 1000.0  # allowed on top of ten times what the interval promises
    flood_bytes_per_s: float = 4e6
    pause_s: float = 0.005  # how long a flooding pipe is left alone after each look at it


@dataclass
class SourceCounters:
    """What happened so far; only ever grows."""

    readings: int = 0
    foreign: int = 0  # lines that are not tegrastats
    oversized: int = 0
    skipped: int = 0  # dropped in a flood
    starts: int = 0
    restarts: int = 0


class Allowance:
    """How much a child may print until the next look at it; more than that is a flood."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._lines = self._bytes = 0.0

    def refill(self, interval_s: float | None) -> None:
        """Allow a second's worth, at one sample every ``interval_s``. Looks are at most a second apart."""
        self._lines = self._limits.flood_lines_per_s + (10.0 / interval_s if interval_s else 0.0)
        self._bytes = self._limits.flood_bytes_per_s

    def take(self, lines: int, count: int) -> bool:
        """Use up ``lines`` lines and ``count`` bytes. False when that is more than was left."""
        self._lines -= lines
        self._bytes -= count
        return self._lines >= 0 and self._bytes >= 0


def printable(text: str) -> str:
    """The end of ``text`` on one line, without control characters: for a message."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[-160:]


def interval_of(command: Sequence[str]) -> float:
    """Seconds behind ``--interval``; tegrastats' own default is one second."""
    with contextlib.suppress(ValueError, IndexError):
        return int(command[list(command).index("--interval") + 1]) / 1000
    return 1.0


def set_interval(command: list[str], interval_s: float) -> None:
    """Write ``interval_s`` into ``command`` as whole milliseconds, at least one."""
    value = str(max(1, round(interval_s * 1000)))
    if "--interval" in command:
        at = command.index("--interval")
        command[at + 1 : at + 2] = [value]
    else:
        command += ["--interval", value]
