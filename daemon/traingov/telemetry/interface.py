"""What a telemetry source is. One small interface: the loop starts it, sets its rate, stops it, and gets readings.

There are two kinds. tegrastats is a stream: a child process that prints (source.py). The others are meters: asked
for one reading a call, in a thread, so that a kernel file or a service that never answers keeps nobody (polled.py).
Both call ``on_reading(t_s, reading)`` and ``on_state(state, text)`` on the event loop's thread. ``t_s`` is the
loop's monotonic time when the reading arrived. States: "running", "restarting" (with reason and wait), "failed"
(cannot be started now; it is tried again), "stopped".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .reading import Reading
from .sampling import SourceCounters

OnReading = Callable[[float, Reading], None]
OnState = Callable[[str, str], None]


class Source(Protocol):
    """Gives readings until it is stopped. Used from the event loop's thread only; nothing here raises for what a
    sensor does."""

    @property
    def counters(self) -> SourceCounters:
        """What happened so far."""

    @property
    def state(self) -> str:
        """The state reported last."""

    @property
    def interval_s(self) -> float | None:
        """The sampling interval asked for; None when sampling is off."""

    def start(self) -> None:
        """Start sampling. Must be called with a running loop."""

    def set_interval(self, interval_s: float | None) -> None:
        """Sample every ``interval_s`` seconds from now on; None turns sampling off."""

    def stop(self) -> None:
        """End sampling. ``start`` may follow."""

    async def wait_stopped(self, timeout_s: float = 1.0) -> bool:
        """After ``stop``: wait until nothing of it runs any more. False if something still does."""


class MeterError(Exception):
    """No reading can be had now; one line says why, and what to do where something can be done."""


class Meter(Protocol):
    """Asked for one reading at a time, always from one thread. Making one touches no sensor and imports nothing big;
    the first ``read`` does."""

    @property
    def name(self) -> str:
        """Its name in the configuration, such as "sysfs"."""

    @property
    def least_interval_s(self) -> float:
        """Asking more often than this brings nothing new."""

    def read(self) -> Reading:
        """What the sensors show now; what cannot be read is missing. Raises MeterError where nothing can be."""

    def close(self) -> None:
        """Let go of files and connections. Never raises."""
