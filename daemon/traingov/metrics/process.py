"""What the kernel says of this process, under the names of Prometheus's own clients. Read by the scrape's thread."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from .text import Readings

_SELF = Path("/proc/self")


def read_process(readings: Readings) -> None:
    """Put memory, CPU time, threads, descriptors and start time into ``readings``; what cannot be read is left out."""
    try:
        fields = (_SELF / "stat").read_text().rpartition(")")[2].split()  # proc(5), from the third field on
        resident = int((_SELF / "statm").read_text().split()[1])
        descriptors = len(os.listdir(_SELF / "fd"))
    except (OSError, ValueError, IndexError):
        return
    ticks = os.sysconf("SC_CLK_TCK")
    readings.put("process_resident_memory_bytes", resident * os.sysconf("SC_PAGE_SIZE"))
    readings.put("process_threads", int(fields[17]))
    readings.put("process_open_fds", descriptors)
    readings.put("process_cpu_seconds_total", (int(fields[11]) + int(fields[12])) / ticks)
    booted = _booted_s()
    readings.put("process_start_time_seconds", None if booted is None else booted + int(fields[19]) / ticks)


@lru_cache(maxsize=1)
def _booted_s() -> int | None:
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("btime ")), None)
