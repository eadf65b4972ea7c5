"""A source whose readings lack the GPU's utilization, and a second one that has it (Thor: tegrastats and NVML).

Thor has no load file, and its tegrastats prints clocks without a share. NVML knows it. Only what is missing is filled
in, and only with a value that is fresh; when the second source fails, utilization is missing again and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from .interface import OnReading, OnState, Source
from .reading import Reading
from .sampling import SourceCounters

log = logging.getLogger("traingov.telemetry")

FRESH_S = 1.0
_INTERVAL_S = 0.1  # NVML's utilization is a mean over a sixth of a second to a second


class WithUtilization:
    """The source that ``open_main`` opens, with the utilization of the one that ``open_second`` opens."""

    def __init__(
        self,
        open_main: Callable[[OnReading, OnState], Source],
        open_second: Callable[[OnReading, OnState], Source],
        on_reading: OnReading,
        on_state: OnState,
    ) -> None:
        self._on_reading = on_reading
        self._seen: tuple[float, float] | None = None  # when, and 0..1
        self._main = open_main(self._reading, on_state)
        self._second = open_second(self._utilization, self._second_state)

    @property
    def counters(self) -> SourceCounters:
        """Those of the first source."""
        return self._main.counters

    @property
    def state(self) -> str:
        """The first source's."""
        return self._main.state

    @property
    def interval_s(self) -> float | None:
        """The first source's."""
        return self._main.interval_s

    def start(self) -> None:
        """Start both."""
        self._main.start()
        self._second.start()

    def set_interval(self, interval_s: float | None) -> None:
        """The second one is read ten times a second at most."""
        self._main.set_interval(interval_s)
        self._second.set_interval(None if interval_s is None else max(interval_s, _INTERVAL_S))

    def stop(self) -> None:
        """Stop both."""
        self._main.stop()
        self._second.stop()
        self._seen = None

    async def wait_stopped(self, timeout_s: float = 1.0) -> bool:
        """Wait for both."""
        stopped = await self._main.wait_stopped(timeout_s)
        return await self._second.wait_stopped(timeout_s) and stopped

    def _reading(self, t_s: float, reading: Reading) -> None:
        seen = self._seen
        if reading.gpu_utilization is None and seen is not None and t_s - seen[0] <= FRESH_S:
            reading = replace(reading, gpu_utilization=seen[1])
        self._on_reading(t_s, reading)

    def _utilization(self, t_s: float, reading: Reading) -> None:
        self._seen = None if reading.gpu_utilization is None else (t_s, reading.gpu_utilization)

    def _second_state(self, state: str, text: str) -> None:
        if state not in ("running", "stopped"):
            self._seen = None
        log.info("GPU utilization %s: %s", state, text)
