"""Times, durations and energies as people read them: wall-clock time of this machine, never CLOCK_MONOTONIC."""

from __future__ import annotations

import math
from datetime import datetime, timezone


def local(at: str) -> datetime:
    """UTC text such as 2026-01-31T12:00:00Z in this machine's time zone. Raises ValueError."""
    return datetime.fromisoformat(at.replace("Z", "+00:00")).astimezone()


def clock_time(at: str) -> str:
    """The time of the day; with the date where it is not today."""
    when = local(at)
    return when.strftime("%H:%M:%S" if when.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M:%S")


def date_time(at: str) -> str:
    """Date and time."""
    return local(at).strftime("%Y-%m-%d %H:%M:%S")


def utc(text: str) -> str:
    """What a person writes as a date, or date and time, of this machine's time zone, as UTC text. Raises ValueError."""
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def duration(seconds: float) -> str:
    """Two units at most: "8.2 s", "4 min 10 s", "3 h 5 min", "2 d 4 h"."""
    if not math.isfinite(seconds):
        return "—"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, small, small_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {small_name}" if rest else "")
    raise AssertionError(seconds)


def energy(joules: float | None) -> str:
    """Joules, kilojoules from ten thousand on; "not measured" for None."""
    if joules is None:
        return "not measured"
    return f"{joules:.1f} J" if joules < 10_000 else f"{joules / 1000:.1f} kJ"


def now() -> str:
    """This moment as UTC text."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
