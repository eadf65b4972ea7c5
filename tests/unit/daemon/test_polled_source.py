"""A meter in a thread: readings reach the loop, and no sensor that hangs, fails or floods ever stops it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from traingov.telemetry.interface import MeterError
from traingov.telemetry.polled import PolledSource, PollLimits
from traingov.telemetry.reading import Reading

QUICK = PollLimits(back_off_s=0.02, back_off_most_s=0.05, silence_s=0.2, start_s=0.2, threads_most=2)


class Meter:
    """Reads what ``script`` says at each call: a power in watts, an error to raise, or a call that may block."""

    name = "fake"
    least_interval_s = 0.001

    def __init__(self, script: Callable[[int], float]) -> None:
        self.script, self.calls, self.closed = script, 0, False

    def read(self) -> Reading:
        self.calls += 1
        return Reading(rails_w={"VDD_IN": self.script(self.calls)})

    def close(self) -> None:
        self.closed = True


class Seen:
    def __init__(self, open_meter: Callable[[], Meter], limits: PollLimits = QUICK) -> None:
        self.readings: list[tuple[float, Reading]] = []
        self.states: list[tuple[str, str]] = []
        self.threads: set[str] = set()
        self.source = PolledSource(
            open_meter, self._reading, lambda state, text: self.states.append((state, text)), limits
        )
        self.source.set_interval(0.005)

    def _reading(self, t_s: float, reading: Reading) -> None:
        self.readings.append((t_s, reading))
        self.threads.add(threading.current_thread().name)

    async def until(self, what: Callable[[], Any], text: str) -> None:
        deadline = time.monotonic() + 10
        while not what():
            assert time.monotonic() < deadline, f"not within 10 s: {text}; {self.states}"
            await asyncio.sleep(0.002)

    def names(self) -> list[str]:
        return [state for state, _ in self.states]


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 30))


def test_readings_arrive_on_the_loops_thread_with_the_loops_time_in_order() -> None:
    async def work() -> None:
        meter = Meter(float)
        seen = Seen(lambda: meter)
        begun = asyncio.get_running_loop().time()
        seen.source.start()
        await seen.until(lambda: len(seen.readings) >= 5, "five readings")
        seen.source.stop()
        assert await seen.source.wait_stopped()
        times = [t for t, _ in seen.readings]
        assert times == sorted(times)
        assert times[0] >= begun
        assert seen.threads == {"MainThread"}
        powers = [reading.rails_w["VDD_IN"] for _, reading in seen.readings]
        assert powers == sorted(powers)
        assert seen.names() == ["running", "stopped"]
        assert meter.closed

    run(work)


def test_a_read_that_hangs_is_reported_and_another_thread_goes_on() -> None:
    async def work() -> None:
        gate = threading.Event()
        meters: list[Meter] = []

        def open_meter() -> Meter:
            first = not meters
            meters.append(Meter(lambda n: gate.wait(20) if first and n == 3 else float(n)))
            return meters[-1]

        seen = Seen(open_meter)
        seen.source.start()
        await seen.until(lambda: seen.names().count("running") == 2, "a second meter gives readings")
        assert "fake has not answered for" in dict(seen.states)["restarting"]
        before = len(seen.readings)
        gate.set()  # the hung read comes back: its late reading is not taken for a present one
        await seen.until(lambda: meters[0].closed, "the first meter is let go")
        await seen.until(lambda: len(seen.readings) > before + 3, "the second one goes on")
        assert all(reading.rails_w["VDD_IN"] is not True for _, reading in seen.readings)
        seen.source.stop()
        assert await seen.source.wait_stopped()

    run(work)


def test_reads_that_hang_for_good_start_no_endless_row_of_threads() -> None:
    async def work() -> None:
        gate = threading.Event()
        opened: list[Meter] = []

        def open_meter() -> Meter:
            opened.append(Meter(lambda n: float(gate.wait(20))))
            return opened[-1]

        seen = Seen(open_meter)
        seen.source.start()
        await seen.until(lambda: "failed" in seen.names(), "it says that reads hang")
        assert len(opened) == QUICK.threads_most
        assert "2 reads hang" in dict(seen.states)["failed"]
        seen.source.stop()
        assert not await seen.source.wait_stopped(0.02)
        gate.set()
        assert await seen.source.wait_stopped()

    run(work)


def test_a_meter_that_cannot_read_says_why_and_is_tried_again() -> None:
    async def work() -> None:
        tries = []

        def script(_n: int) -> float:
            tries.append(1)
            if len(tries) < 3:
                raise MeterError("no power monitor here")
            return 5.0

        seen = Seen(lambda: Meter(script))
        seen.source.start()
        await seen.until(lambda: seen.readings, "a reading at the third try")
        assert seen.names()[:3] == ["restarting", "restarting", "running"]
        assert seen.states[0][1].startswith("no power monitor here; trying again in")
        seen.source.stop()

    run(work)


def test_an_error_of_a_library_ends_no_loop() -> None:
    async def work() -> None:
        def script(_n: int) -> float:
            raise KeyError("VDD_IN")

        seen = Seen(lambda: Meter(script))
        seen.source.start()
        await seen.until(lambda: seen.states, "a state")
        assert "fake failed: KeyError" in seen.states[0][1]
        seen.source.stop()

    run(work)


def test_readings_faster_than_the_loop_takes_them_replace_one_another() -> None:
    async def work() -> None:
        meter = Meter(float)
        seen = Seen(lambda: meter)
        seen.source.start()
        await seen.until(lambda: seen.readings, "a first reading")
        count, calls = len(seen.readings), meter.calls
        time.sleep(0.2)  # the loop is busy
        assert meter.calls > calls + 5
        await asyncio.sleep(0)
        assert len(seen.readings) <= count + 2
        seen.source.stop()

    run(work)


def test_no_faster_than_the_meter_can_and_off_when_sampling_is_off() -> None:
    async def work() -> None:
        meter = Meter(float)
        meter.least_interval_s = 0.05
        seen = Seen(lambda: meter)
        seen.source.start()
        await seen.until(lambda: len(seen.readings) >= 3, "three readings")
        assert seen.readings[2][0] - seen.readings[0][0] > 0.06
        seen.source.set_interval(None)
        assert seen.states[-1] == ("stopped", "sampling is off")
        assert await seen.source.wait_stopped()
        count = len(seen.readings)
        await asyncio.sleep(0.1)
        assert len(seen.readings) == count
        seen.source.set_interval(0.05)
        await seen.until(lambda: len(seen.readings) > count, "readings again")
        seen.source.stop()

    run(work)


def test_an_interval_of_nothing_is_refused() -> None:
    source = PolledSource(lambda: Meter(float), lambda t, r: None, lambda s, x: None)
    with pytest.raises(ValueError, match="must be a positive number of seconds"):
        source.set_interval(0)
