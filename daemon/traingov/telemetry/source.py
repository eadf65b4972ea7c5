"""tegrastats as a child process: readings as they come, and a child that is started again when it fails.

The descriptor is read straight from the event loop; asyncio's stream objects cost four times as much per line.
A reading is stamped with the loop's monotonic time when its bytes arrive, whatever clock the line itself shows.
tegrastats flushes every line; where lines arrive together all the same (the loop was busy, or a wrapper buffers)
they carry one time, and whoever integrates power gives the last of them the weight.

Nothing that the child does stops the loop: it may die, hang, flood, print half lines or another language. The
states reported are "running" (a reading came), "restarting" (with the reason and the wait), "failed" (the
command cannot be started; it is still tried again) and "stopped".
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence

from .child import Child
from .interface import OnReading, OnState
from .lines import LineSplitter
from .sampling import Allowance, SourceCounters, SourceLimits, interval_of, printable, set_interval
from .tegrastats import NotTegrastats, parse_line


class TegrastatsSource:
    """Runs ``command`` and calls ``on_reading(t_s, reading)`` and ``on_state(state, text)`` from the loop.

    ``command`` is a list such as ["tegrastats", "--interval", "10"]; ``set_interval`` rewrites the value behind
    ``--interval`` (milliseconds), or appends both. Not thread-safe: use it from the loop's thread, which also
    has to be one that stays (see child.py).
    """

    def __init__(
        self,
        command: Sequence[str],
        on_reading: OnReading,
        on_state: OnState,
        limits: SourceLimits | None = None,
    ) -> None:
        if not command:
            raise ValueError("tegrastats command: is empty; give the program and its arguments as a list")
        self.counters = SourceCounters()
        self._command = list(command)
        self._on_reading = on_reading
        self._on_state = on_state
        self._limits = limits = limits or SourceLimits()
        self._interval_s: float | None = interval_of(self._command)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._child: Child | None = None
        self._dying: list[Child] = []
        self._splitter = LineSplitter()
        # systemd ends a unit's whole control group, and its filter of system calls refuses setpriv anyway.
        self._die_with_parent = "NOTIFY_SOCKET" not in os.environ
        self._failures = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._state = "stopped"
        self._said = ""
        self._allowance = Allowance(limits)
        self._active = False
        self._reading_t = 0.0  # of the newest reading, or of the start
        self._first_reading_t: float | None = None

    @property
    def state(self) -> str:
        """The state reported last."""
        return self._state

    @property
    def interval_s(self) -> float | None:
        """The sampling interval asked for; None when sampling is off."""
        return self._interval_s

    @property
    def pid(self) -> int | None:
        """Process id of the running child."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start sampling. Must be called with a running loop."""
        self._loop = asyncio.get_running_loop()
        self._active = True
        if self._child is None and self._interval_s is not None:
            self._spawn()

    def set_interval(self, interval_s: float | None) -> None:
        """Sample every ``interval_s`` seconds from now on (at least 1 ms); None stops the child."""
        if interval_s is not None and not interval_s > 0:
            raise ValueError(f"sampling interval: must be a positive number of seconds, not {interval_s!r}")
        if interval_s == self._interval_s:
            return
        self._interval_s = interval_s
        if interval_s is not None:
            set_interval(self._command, interval_s)
        if not self._active:
            return
        self._end_child()
        if interval_s is None:
            self._report("stopped", "sampling is off")
        else:
            self._spawn()

    def stop(self) -> None:
        """End the child and every timer but the one that reaps it. ``start`` may follow."""
        if not self._active:
            return
        self._active = False
        self._end_child()
        self._report("stopped", "stopped")

    async def wait_stopped(self, timeout_s: float = 1.0) -> bool:
        """After ``stop``: wait until the children are reaped, at most ``timeout_s``. False if one still is there."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self._reap() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)
        return not self._dying

    def _spawn(self) -> None:
        loop = self._loop
        if loop is None or not self._active:
            return
        self._cancel("spawn")
        self._splitter.reset()
        self._said = ""
        try:
            child = Child(self._command, self._die_with_parent)
        except (OSError, ValueError) as error:
            self._failures += 1
            self._retry("failed", f"cannot start {self._command[0]}: {getattr(error, 'strerror', None) or error}")
            return
        self._child = child
        self.counters.starts += 1
        now = loop.time()
        self._reading_t = now
        self._first_reading_t = None
        self._allowance.refill(self._interval_s)
        loop.add_reader(child.stdout, self._readable)
        loop.add_reader(child.stderr, self._complaining)
        self._later("watch", self._watch_s, self._watch)

    def _end_child(self) -> None:
        for name in list(self._timers):
            if name != "reap":
                self._cancel(name)
        child, self._child = self._child, None
        if child is None or self._loop is None:
            return
        self._loop.remove_reader(child.stdout)
        self._loop.remove_reader(child.stderr)
        child.kill()
        self._dying.append(child)
        self._reap()

    def _reap(self) -> bool:
        """Collect the children that were killed; True, and it looks again later, while one is left."""
        self._dying = [child for child in self._dying if not child.reap()]
        if self._dying and self._loop is not None:
            self._later("reap", 0.05, self._reap)
        return bool(self._dying)

    def _fail(self, reason: str) -> None:
        """The child is of no use any more: end it, and start another one after the back-off."""
        if self._said:
            reason += f"; it said: {self._said}"
        first, last = self._first_reading_t, self._reading_t
        self._end_child()
        if first is not None and last - first >= self._limits.healthy_s:
            self._failures = 0
        self._failures += 1
        self._retry("restarting", f"{self._command[0]} {reason}")

    def _retry(self, state: str, text: str) -> None:
        doublings = min(self._failures - 1, 30)
        wait = min(self._limits.back_off_s * 2.0**doublings, self._limits.back_off_most_s)
        self.counters.restarts += 1
        self._later("spawn", wait, self._spawn)
        self._report(state, f"{text}; trying again in {wait:g} s")

    @property
    def _silence_s(self) -> float:
        return max(self._limits.silence_s, 5.0 * (self._interval_s or 0.0))

    @property
    def _watch_s(self) -> float:
        return min(0.5, self._limits.silence_s / 4)

    def _watch(self) -> None:
        """Look after the child a few times a second: has it ended, or gone silent?"""
        child, loop = self._child, self._loop
        if child is None or loop is None:
            return
        now = loop.time()
        allowed = self._silence_s if self._first_reading_t is not None else max(self._silence_s, self._limits.start_s)
        ended = child.ended()
        if ended and now - self._reading_t > self._watch_s:
            # The pipe did not end with it (somebody else holds it), but no reading comes any more.
            self._fail(ended)
        elif now - self._reading_t > allowed:
            self._fail(f"gave no reading for {now - self._reading_t:.1f} s")
        else:
            self._allowance.refill(self._interval_s)
            self._later("watch", self._watch_s, self._watch)

    def _ended(self) -> None:
        """Its output ended. How the process ended is known a moment later."""
        child = self._child
        if child is not None:
            self._fail(child.ended() or "closed its output")

    def _readable(self) -> None:
        child, loop = self._child, self._loop
        if child is None or loop is None:
            return
        try:
            data = os.read(child.stdout, 65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(f"cannot be read: {error.strerror}")
            return
        now = loop.time()
        if not data:
            loop.remove_reader(child.stdout)
            self._later("ended", 0.02, self._ended)
            return
        limits, splitter = self._limits, self._splitter
        lines = splitter.feed(data, limits.lines_per_wakeup)
        for line in lines:
            self._line(now, line)
            if self._child is not child:
                return  # whoever got the reading changed the interval or stopped us
        if len(lines) > 1 or not lines:
            self.counters.oversized, self.counters.skipped = splitter.oversized, splitter.skipped
        if not self._allowance.take(data.count(b"\n"), len(data)):
            self._fail("prints far more than it was asked for")
        elif len(lines) >= limits.lines_per_wakeup:
            # More waits than is worth reading. Leave the pipe full for a moment: that slows its writer.
            loop.remove_reader(child.stdout)
            self._later("resume", limits.pause_s, self._resume)

    def _line(self, now: float, line: str) -> None:
        try:
            reading = parse_line(line)
        except NotTegrastats:
            self.counters.foreign += 1
            if not line.isspace():
                self._said = printable(line)
            return
        child = self._child
        self.counters.readings += 1
        self._reading_t = now
        if self._first_reading_t is None:
            self._first_reading_t = now
            self._said = ""
            self._report("running", f"{self._command[0]} gives readings")
            if self._child is not child:
                return
        self._on_reading(now, reading)

    def _resume(self) -> None:
        if self._child is not None and self._loop is not None:
            self._loop.add_reader(self._child.stdout, self._readable)

    def _complaining(self) -> None:
        """The child wrote to stderr: keep the end of it for the report."""
        child = self._child
        if child is None or self._loop is None:
            return
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(child.stderr, 4096)
        text = printable(str(data, "utf-8", "replace"))
        if text:
            self._said = text
        if not self._allowance.take(0, len(data)):
            self._fail("prints far more errors than can be read")
            return
        if self._die_with_parent and child.guarded and (data.startswith(b"setpriv:") or b"pdeathsig" in data):
            # This setpriv does not know the option, or the service's filter of system calls refuses it capset:
            # SIGPIPE has to do, and systemd, which ends the whole control group.
            self._die_with_parent = False
        if not data:
            self._loop.remove_reader(child.stderr)

    def _later(self, name: str, delay_s: float, call: Callable[[], object]) -> None:
        self._cancel(name)
        if self._loop is not None:
            self._timers[name] = self._loop.call_later(delay_s, call)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _report(self, state: str, text: str) -> None:
        self._state = state
        self._on_state(state, text)
