"""The tegrastats child process: what it may do to us, and what becomes of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from traingov.telemetry.reading import Reading
from traingov.telemetry.sampling import SourceLimits, interval_of, set_interval
from traingov.telemetry.source import TegrastatsSource

QUICK = SourceLimits(back_off_s=0.02, back_off_most_s=0.1, healthy_s=0.3, silence_s=0.3, start_s=2.0)
LINE = "RAM 100/3956MB (lfb 1x4MB) GR3D_FREQ 50%@921 POM_5V_IN 7000/7000"
WAIT_S = 20.0  # far more than any of this takes; only a broken source waits for it


def child(body: str) -> list[str]:
    """A command that runs ``body`` with ``say(text)`` for a flushed write and ``LINE``."""
    head = f"import sys, os, time, signal\nLINE = {LINE!r}\ndef say(text):\n    os.write(1, text.encode('latin-1'))\n"
    return [sys.executable, "-S", "-c", head + body]


FOREVER = "while True:\n    say(LINE + '\\n')\n    time.sleep(0.01)\n"


class Watcher:
    """A source and everything it said."""

    def __init__(self, command: list[str], limits: SourceLimits = QUICK) -> None:
        self.readings: list[tuple[float, Reading]] = []
        self.states: list[tuple[str, str]] = []
        self.source = TegrastatsSource(command, self._reading, self._state, limits)

    def _reading(self, t_s: float, reading: Reading) -> None:
        self.readings.append((t_s, reading))

    def _state(self, state: str, text: str) -> None:
        self.states.append((state, text))

    def texts(self, state: str) -> list[str]:
        return [text for name, text in self.states if name == state]

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"never came true; states: {self.states}"
            await asyncio.sleep(0.005)

    async def end(self) -> None:
        self.source.stop()
        assert await self.source.wait_stopped(WAIT_S)


def watch(command: list[str], condition: Callable[[Watcher], bool], limits: SourceLimits = QUICK) -> Watcher:
    watcher = Watcher(command, limits)

    async def main() -> None:
        watcher.source.start()
        try:
            await watcher.until(lambda: condition(watcher))
        finally:
            await watcher.end()

    asyncio.run(main())
    return watcher


def alive(pid: int) -> bool:
    """Whether the process runs: not gone, and not a zombie that somebody has still to collect."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_readings_come_with_rising_monotonic_times() -> None:
    before = time.monotonic()
    watcher = watch(child(FOREVER), lambda w: len(w.readings) >= 10)
    times = [t for t, _ in watcher.readings]
    assert times == sorted(times)
    assert before < times[0] < times[-1] < time.monotonic()
    assert watcher.readings[0][1].rails_w == {"POM_5V_IN": 7.0}
    assert [state for state, _ in watcher.states] == ["running", "stopped"]


def test_a_child_that_dies_is_started_again_and_its_last_words_are_told() -> None:
    body = "say(LINE + '\\n' + LINE[:19])\nos.write(2, b'i2c bus\\x07 is stuck\\n')\nsys.exit(3)\n"
    watcher = watch(child(body), lambda w: w.source.counters.restarts >= 3)
    assert watcher.source.counters.readings >= 2
    assert "ended with exit status 3; it said: i2c bus is stuck; trying again in" in watcher.texts("restarting")[0]
    # The half line before the end, and the next child's first one, did not become one line.
    assert watcher.source.counters.foreign == 0
    assert all(reading.rails_w == {"POM_5V_IN": 7.0} for _, reading in watcher.readings)
    assert all(reading.unknown == () for _, reading in watcher.readings)


def test_a_child_killed_by_a_signal_is_started_again() -> None:
    watcher = watch(child("say(LINE + '\\n')\nos.kill(os.getpid(), signal.SIGSEGV)"), lambda w: len(w.readings) >= 2)
    assert "was killed by SIGSEGV" in watcher.texts("restarting")[0]


def test_waits_double_up_to_a_bound() -> None:
    watcher = watch(child("sys.exit(1)"), lambda w: w.source.counters.restarts >= 5)
    waits = [text.rpartition("again in ")[2] for text in watcher.texts("restarting")]
    assert waits[:5] == ["0.02 s", "0.04 s", "0.08 s", "0.1 s", "0.1 s"]


def test_a_child_that_ran_well_starts_the_waits_anew() -> None:
    body = "for _ in range(60):\n    say(LINE + '\\n')\n    time.sleep(0.01)\n"
    watcher = watch(child(body), lambda w: w.source.counters.restarts >= 2)
    assert all(text.endswith("again in 0.02 s") for text in watcher.texts("restarting"))


def test_a_child_that_hangs_is_replaced() -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay(LINE + '\\n')\ntime.sleep(1000)\n"
    watcher = watch([*child(body), "--interval", "10"], lambda w: len(w.readings) >= 2)
    assert "gave no reading for" in watcher.texts("restarting")[0]


@pytest.mark.parametrize(
    ("body", "counter"),
    [
        ("say('hello\\n')", "foreign"),
        ("say(bytes(range(256)).decode('latin-1'))", "foreign"),
        ("say('RAM 5/' * 500)", "oversized"),
        ("say('x' * 10000)", "oversized"),
    ],
    ids=["other text", "all bytes", "no line ends", "endless line"],
)
def test_a_child_that_prints_something_else_is_replaced_and_never_believed(body: str, counter: str) -> None:
    limits = SourceLimits(back_off_s=0.02, silence_s=0.3, start_s=0.3)
    command = [*child(f"while True:\n    {body}\n    time.sleep(0.0005)\n"), "--interval", "10"]
    watcher = watch(command, lambda w: w.source.counters.restarts >= 1, limits)
    assert watcher.readings == []
    assert getattr(watcher.source.counters, counter) >= 1
    assert "running" not in [state for state, _ in watcher.states]


def test_foreign_lines_between_readings_change_nothing() -> None:
    body = "while True:\n    say('kernel: oops\\n' + LINE + '\\n')\n    time.sleep(0.01)\n"
    watcher = watch(child(body), lambda w: len(w.readings) >= 5)
    assert watcher.source.counters.foreign >= 5
    assert watcher.source.counters.restarts == 0


@pytest.mark.parametrize("text", ["LINE + '\\n'", "'\\n'", "'y' * 99 + '\\n'", "'y' * 99999"])
def test_a_flood_is_bounded_and_ended(text: str) -> None:
    watcher = watch(
        child(f"text = ({text}) * 100\nwhile True:\n    say(text)\n"), lambda w: w.source.counters.restarts >= 1
    )
    assert "prints far more than it was asked for" in watcher.texts("restarting")[0]
    counters = watcher.source.counters
    assert counters.readings + counters.foreign < 1000
    assert counters.skipped + counters.oversized > 0


def test_a_flood_of_complaints_is_ended() -> None:
    body = "say(LINE + '\\n')\nwhile True:\n    os.write(2, b'no ' * 10000)\n"
    watcher = watch(child(body), lambda w: w.source.counters.restarts >= 1, SourceLimits(flood_bytes_per_s=1e5))
    assert "more errors than can be read" in watcher.texts("restarting")[0]


def test_the_loop_goes_on_while_a_child_misbehaves() -> None:
    """Turns of the loop are counted: a source that waited for its child would stop them."""
    turns = 0

    async def main() -> None:
        nonlocal turns
        watcher = Watcher(
            [*child("time.sleep(1000)"), "--interval", "10"], SourceLimits(silence_s=0.2, start_s=0.2, back_off_s=0.02)
        )
        watcher.source.start()
        while watcher.source.counters.restarts < 2:
            turns += 1
            await asyncio.sleep(0.001)
        await watcher.end()

    asyncio.run(main())
    assert turns > 50


def test_a_missing_command_is_reported_and_tried_again() -> None:
    watcher = watch(["/nonexistent/tegrastats"], lambda w: len(w.texts("failed")) >= 2)
    assert "cannot start /nonexistent/tegrastats: No such file or directory" in watcher.texts("failed")[0]
    assert watcher.readings == []


def test_a_command_that_appears_later_is_used(tmp_path: Path) -> None:
    program = tmp_path / "tegrastats"
    watcher = Watcher([str(program)])

    async def main() -> None:
        watcher.source.start()
        await watcher.until(lambda: len(watcher.texts("failed")) >= 1)
        program.with_suffix(".new").write_text(f"#!/bin/sh\nwhile :; do echo '{LINE}'; sleep 0.02; done\n")
        program.with_suffix(".new").chmod(0o755)
        program.with_suffix(".new").rename(program)
        await watcher.until(lambda: len(watcher.readings) >= 3)
        await watcher.end()

    asyncio.run(main())
    assert watcher.source.state == "stopped"


def test_the_whole_group_goes_with_the_child(tmp_path: Path) -> None:
    pids = tmp_path / "pid"
    grandchild = (
        "pid = os.fork()\nif pid == 0:\n    time.sleep(1000)\n"
        f"f = open({str(pids)!r}, 'w'); f.write(str(pid)); f.close()\n" + FOREVER
    )
    watch(child(grandchild), lambda w: len(w.readings) >= 1)
    pid = int(pids.read_text())
    deadline = time.monotonic() + WAIT_S
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_that_leaves_its_pipe_to_another_process_is_replaced() -> None:
    body = "say(LINE + '\\n')\nif os.fork() == 0:\n    time.sleep(1000)\nos._exit(7)\n"
    watcher = watch(child(body), lambda w: w.source.counters.restarts >= 1)
    assert "ended with exit status 7" in watcher.texts("restarting")[0]


def test_the_interval_can_change_and_sampling_can_stop() -> None:
    body = "while True:\n    say('RAM %s/3956MB POM_5V_IN 1/1\\n' % sys.argv[-1])\n    time.sleep(0.01)\n"
    watcher = Watcher([*child(body), "--interval", "1000"])

    def asked() -> set[int]:
        return {(reading.ram_used_bytes or 0) >> 20 for _, reading in watcher.readings}

    async def main() -> None:
        source = watcher.source
        assert source.interval_s == 1.0
        source.start()
        await watcher.until(lambda: asked() == {1000})
        source.set_interval(0.01)
        first = source.pid
        await watcher.until(lambda: asked() == {1000, 10})
        source.set_interval(0.01)
        assert source.pid == first
        source.set_interval(None)
        assert source.pid is None
        assert watcher.states[-1] == ("stopped", "sampling is off")
        seen = len(watcher.readings)
        await asyncio.sleep(0.1)
        assert len(watcher.readings) == seen
        source.set_interval(0.02)
        await watcher.until(lambda: asked() == {1000, 10, 20})
        await watcher.end()

    asyncio.run(main())
    assert watcher.source.counters.restarts == 0


def test_whoever_gets_a_reading_may_stop_the_source() -> None:
    watcher = Watcher(child("say((LINE + '\\n') * 5)\ntime.sleep(1000)\n"))

    def stop(t_s: float, reading: Reading) -> None:
        watcher.readings.append((t_s, reading))
        watcher.source.stop()

    watcher.source._on_reading = stop

    async def main() -> None:
        watcher.source.start()
        await watcher.until(lambda: watcher.source.state == "stopped" and bool(watcher.readings))
        assert await watcher.source.wait_stopped(WAIT_S)

    asyncio.run(main())
    assert len(watcher.readings) == 1


@pytest.mark.parametrize(
    "complaint", ["unrecognized option '--pdeathsig'", "activate capabilities: Operation not permitted"]
)
def test_a_setpriv_that_does_not_know_the_option_or_may_not_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: str
) -> None:
    setpriv = tmp_path / "setpriv"
    setpriv.write_text(f'#!/bin/sh\necho "setpriv: {complaint}" >&2\nexit 1\n')
    setpriv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    watcher = watch(child(FOREVER), lambda w: len(w.readings) >= 1)
    assert watcher.source.counters.restarts == 1


SILENT_CHILD = "time.sleep(1000)"


@pytest.mark.parametrize("body", [FOREVER, SILENT_CHILD], ids=["printing", "silent"])
def test_a_killed_daemon_leaves_no_orphan(body: str) -> None:
    if body == SILENT_CHILD and not any(
        os.access(os.path.join(folder, "setpriv"), os.X_OK) for folder in os.get_exec_path()
    ):
        pytest.skip("setpriv (util-linux) is not here: a silent child dies with its first line only")
    program = (
        "import asyncio\nfrom traingov.telemetry.source import TegrastatsSource\n"
        "async def main():\n"
        f"    source = TegrastatsSource({child(body)!r}, lambda t, r: None, lambda s, x: None)\n"
        "    source.start()\n    await asyncio.sleep(0.3)\n    print(source.pid, flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    daemon = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert daemon.stdout is not None
    pid = int(daemon.stdout.readline())
    assert alive(pid)
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.wait()
    daemon.stdout.close()
    deadline = time.monotonic() + WAIT_S
    while alive(pid):
        assert time.monotonic() < deadline, "the child outlived its parent"
        time.sleep(0.01)


def test_no_descriptor_is_left_behind() -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    watch(child("sys.exit(0)"), lambda w: w.source.counters.restarts >= 1)
    before = count()
    watch(child("sys.exit(0)"), lambda w: w.source.counters.restarts >= 4)
    assert count() == before


@pytest.mark.parametrize(
    ("command", "interval_s"),
    [(["t", "--interval", "10"], 0.01), (["t"], 1.0), (["t", "--interval"], 1.0), (["t", "--interval", "x"], 1.0)],
)
def test_the_interval_is_read_from_the_command(command: list[str], interval_s: float) -> None:
    assert interval_of(command) == interval_s
    set_interval(command, 0.0001)
    assert command[-2:] == ["--interval", "1"]


def test_a_command_or_an_interval_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="tegrastats command"):
        Watcher([])
    with pytest.raises(ValueError, match="sampling interval"):
        Watcher(["t"]).source.set_interval(0)


def test_under_a_unit_systemd_ends_the_child_and_setpriv_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setpriv = tmp_path / "setpriv"
    setpriv.write_text(f'#!/bin/sh\ntouch {tmp_path}/tried\nexec "$3"\n')
    setpriv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody-listens"))

    async def scenario() -> list[tuple[str, str]]:
        watcher = Watcher(child(FOREVER))
        watcher.source.start()
        watcher.source.set_interval(0.01)
        await watcher.until(lambda: len(watcher.readings) > 3)
        await watcher.end()
        return watcher.states

    assert all(state != "failed" for state, _ in asyncio.run(scenario()))
    assert not (tmp_path / "tried").exists()
