"""A meter in a thread of its own, as a source: the loop never waits for a sensor (DESIGN 5.8).

A read that hangs cannot be ended: its thread is given up and another one is started with a new meter, at most
``threads_most`` at a time; after that it is said, and looked again until one of them comes back. Readings that
arrive faster than the loop takes them replace one another, so that nothing piles up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .interface import Meter, MeterError, OnReading, OnState
from .reading import Reading
from .sampling import SourceCounters

log = logging.getLogger("traingov.telemetry")


@dataclass(frozen=True)
class PollLimits:
    """Bounds and waits, in seconds."""

    back_off_s: float = 0.2  # the first wait; doubles with each failure
    back_off_most_s: float = 30.0
    healthy_s: float = 5.0  # a meter that gave readings for this long starts the back-off anew
    silence_s: float = 2.0  # without a reading for max(this, 5 intervals) a read counts as hung
    start_s: float = 10.0  # but the first one may take this long (imports, a service that wakes up)
    threads_most: int = 4  # threads that hang in a read, the present one among them


class PolledSource:
    """Reads ``open_meter()`` every interval, and calls back on the loop (see interface.py). Not thread-safe."""

    def __init__(
        self,
        open_meter: Callable[[], Meter],
        on_reading: OnReading,
        on_state: OnState,
        limits: PollLimits | None = None,
    ) -> None:
        self.counters = SourceCounters()
        self._open_meter = open_meter
        self._name = "telemetry"
        self._on_reading = on_reading
        self._on_state = on_state
        self._limits = limits or PollLimits()
        self._interval_s: float | None = 1.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._active = False
        self._reader: _Reader | None = None
        self._given_up: list[_Reader] = []
        self._watch_timer: asyncio.TimerHandle | None = None
        self._start_timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._state = "stopped"
        self._first_t: float | None = None
        self._last_t = 0.0

    @property
    def state(self) -> str:
        """The state reported last."""
        return self._state

    @property
    def interval_s(self) -> float | None:
        """The sampling interval asked for; None when sampling is off."""
        return self._interval_s

    def start(self) -> None:
        """Start sampling. Must be called with a running loop."""
        self._loop = asyncio.get_running_loop()
        self._active = True
        if self._reader is None and self._start_timer is None and self._interval_s is not None:
            self._begin()

    def set_interval(self, interval_s: float | None) -> None:
        """Sample every ``interval_s`` seconds from now on; None stops the thread."""
        if interval_s is not None and not interval_s > 0:
            raise ValueError(f"sampling interval: must be a positive number of seconds, not {interval_s!r}")
        if interval_s == self._interval_s:
            return
        self._interval_s = interval_s
        if not self._active:
            return
        if interval_s is None:
            self._end()
            self._report("stopped", "sampling is off")
        elif self._reader is not None:
            self._reader.set_interval(interval_s)
        elif self._start_timer is None:
            self._begin()

    def stop(self) -> None:
        """End the thread and every timer. ``start`` may follow."""
        if not self._active:
            return
        self._active = False
        self._end()
        self._report("stopped", "stopped")

    async def wait_stopped(self, timeout_s: float = 1.0) -> bool:
        """After ``stop``: wait until the threads ended. False where one still hangs (it ends with the process)."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self._hanging() and loop.time() < until:
            await asyncio.sleep(0.005)
        return not self._given_up

    def _begin(self) -> None:
        self._start_timer = None
        loop, interval_s = self._loop, self._interval_s
        if loop is None or interval_s is None or not self._active:
            return
        if self._hanging() >= self._limits.threads_most:
            self._fail("failed", f"{len(self._given_up)} reads hang, so no further one is started")
            return
        self.counters.starts += 1
        self._first_t, self._last_t = None, loop.time()
        self._reader = _Reader(self._open_meter, interval_s, loop, self._arrived, self._broke)
        self._reader.start()
        self._watch_timer = loop.call_later(self._watch_s, self._watch)

    def _end(self) -> None:
        for timer in (self._watch_timer, self._start_timer):
            if timer is not None:
                timer.cancel()
        self._watch_timer = self._start_timer = None
        if self._reader is not None:
            self._reader.stop()
            self._given_up.append(self._reader)
            self._reader = None

    def _hanging(self) -> int:
        self._given_up = [reader for reader in self._given_up if reader.is_alive()]
        return len(self._given_up)

    def _arrived(self, reader: _Reader, reading: Reading) -> None:
        if reader is not self._reader or self._loop is None:
            return
        now = self._loop.time()
        self.counters.readings += 1
        self._last_t = now
        if self._first_t is None:
            self._first_t = now
            self._name = reader.name_of_meter
            self._report("running", f"{self._name} gives readings")
            if reader is not self._reader:
                return  # whoever was told stopped us
        self._on_reading(now, reading)

    def _broke(self, reader: _Reader, text: str) -> None:
        if reader is self._reader:
            self._fail("restarting", text)

    @property
    def _watch_s(self) -> float:
        return min(0.5, self._limits.silence_s / 4)

    def _watch(self) -> None:
        loop, reader = self._loop, self._reader
        if loop is None or reader is None:
            return
        quiet_s = loop.time() - self._last_t
        allowed_s = max(self._limits.silence_s, 5 * reader.interval_s)
        if self._first_t is None:
            allowed_s = max(allowed_s, self._limits.start_s)
        if quiet_s > allowed_s:
            self._fail("restarting", f"{reader.name_of_meter} has not answered for {quiet_s:.1f} s")
        else:
            self._watch_timer = loop.call_later(self._watch_s, self._watch)

    def _fail(self, state: str, text: str) -> None:
        if self._first_t is not None and self._last_t - self._first_t >= self._limits.healthy_s:
            self._failures = 0
        self._end()
        self._failures += 1
        wait_s = min(self._limits.back_off_s * 2.0 ** min(self._failures - 1, 30), self._limits.back_off_most_s)
        self.counters.restarts += 1
        if self._loop is not None:
            self._start_timer = self._loop.call_later(wait_s, self._begin)
        self._report(state, f"{text}; trying again in {wait_s:g} s")

    def _report(self, state: str, text: str) -> None:
        self._state = state
        self._on_state(state, text)


class _Reader(threading.Thread):
    """Reads one meter until told to stop. A daemon thread: a read that never returns must not keep the process."""

    def __init__(
        self,
        open_meter: Callable[[], Meter],
        interval_s: float,
        loop: asyncio.AbstractEventLoop,
        arrived: Callable[[_Reader, Reading], None],
        broke: Callable[[_Reader, str], None],
    ) -> None:
        super().__init__(name="traingov-telemetry", daemon=True)
        self.name_of_meter = "telemetry"
        self.interval_s = interval_s
        self._least_s = 0.0
        self._open_meter = open_meter
        self._event_loop = loop
        self._report_reading, self._report_break = arrived, broke
        self._stopping = threading.Event()
        self._changed = threading.Event()
        self._box: Reading | None = None
        self._lock = threading.Lock()

    def set_interval(self, interval_s: float) -> None:
        self.interval_s = max(interval_s, self._least_s)
        self._changed.set()

    def stop(self) -> None:
        self._stopping.set()
        self._changed.set()

    def run(self) -> None:
        meter: Meter | None = None
        try:
            meter = self._open_meter()
            self.name_of_meter, self._least_s = meter.name, meter.least_interval_s
            self.interval_s = max(self.interval_s, self._least_s)
            self._read_on(meter)
        except MeterError as error:
            self._break(str(error))
        except Exception as error:  # of a library's that is not ours
            log.exception("telemetry: %s failed", self.name_of_meter)
            self._break(f"{self.name_of_meter} failed: {type(error).__name__}: {error}")
        finally:
            if meter is not None:
                with contextlib.suppress(Exception):
                    meter.close()

    def _read_on(self, meter: Meter) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            reading = meter.read()
            with self._lock:
                waiting, self._box = self._box is not None, reading
            if not waiting:
                self._post(self._deliver)
            # Absolute deadlines: lateness does not add up. What was missed altogether is left out.
            due = max(due + self.interval_s, time.monotonic() - self.interval_s)
            while (left_s := due - time.monotonic()) > 0 and not self._stopping.is_set():
                if self._changed.wait(left_s):
                    self._changed.clear()
                    due = min(due, time.monotonic() + self.interval_s)

    def _deliver(self) -> None:
        with self._lock:
            reading, self._box = self._box, None
        if reading is not None and not self._stopping.is_set():
            self._report_reading(self, reading)

    def _break(self, text: str) -> None:
        self._post(lambda: self._report_break(self, text))

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop closed: the process ends
            self._event_loop.call_soon_threadsafe(call)
