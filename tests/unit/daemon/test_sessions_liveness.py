"""Noticing the end of a process: by pidfd, and by start time where the kernel has none."""

import asyncio
import os
import subprocess
import sys

import pytest

from traingov.sessions.liveness import ProcessWatch, start_time


def sleeper():
    return subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)


def stat_line(state, started, name="x"):
    return f"7 ({name}) {state} " + " ".join(["0"] * 18) + f" {started} 0 0\n"


@pytest.mark.parametrize("use_pidfd", [True, False])
def test_the_end_of_a_process_is_told_once(use_pidfd):
    async def scene():
        process = sleeper()
        told = []
        watch = ProcessWatch(
            process.pid,
            lambda: told.append(1),
            asyncio.get_running_loop(),
            use_pidfd=use_pidfd,
            poll_interval_s=0.01,
        )
        assert watch.by_pidfd == use_pidfd
        await asyncio.sleep(0.05)
        assert told == [], "it still runs"
        process.stdin.close()
        # Not waited for: it stays a zombie, and has ended all the same.
        for _ in range(1000):
            if told:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        process.wait()
        return told

    assert asyncio.run(scene()) == [1]


def test_a_process_that_had_ended_before_is_told():
    async def scene():
        process = sleeper()
        process.stdin.close()
        process.wait()
        ended = asyncio.Event()
        ProcessWatch(process.pid, ended.set, asyncio.get_running_loop(), poll_interval_s=0.01)
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(scene())


@pytest.mark.parametrize("use_pidfd", [True, False])
def test_a_closed_watch_is_silent_and_leaves_no_descriptor(use_pidfd):
    async def scene():
        before = len(os.listdir("/proc/self/fd"))
        process = sleeper()
        told = []
        watch = ProcessWatch(
            process.pid, lambda: told.append(1), asyncio.get_running_loop(), use_pidfd=use_pidfd, poll_interval_s=0.01
        )
        watch.close()
        watch.close()
        process.stdin.close()
        process.wait()
        await asyncio.sleep(0.05)
        assert len(os.listdir("/proc/self/fd")) == before
        return told

    assert asyncio.run(scene()) == []


def test_a_pid_that_was_given_to_another_process_counts_as_ended(tmp_path):
    (tmp_path / "7").mkdir()
    file = tmp_path / "7" / "stat"
    file.write_text(stat_line("R", 100))

    async def scene():
        ended = asyncio.Event()
        ProcessWatch(7, ended.set, asyncio.get_running_loop(), use_pidfd=False, poll_interval_s=0.01, proc=tmp_path)
        await asyncio.sleep(0.05)
        assert not ended.is_set()
        file.write_text(stat_line("R", 101))
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(scene())


def test_the_start_time_is_read_past_any_name_and_a_zombie_has_none(tmp_path):
    (tmp_path / "7").mkdir()
    file = tmp_path / "7" / "stat"
    file.write_text(stat_line("S", 4711, name="a) R 1 (b"))
    assert start_time(7, tmp_path) == 4711
    for state in ("Z", "X"):
        file.write_text(stat_line(state, 4711))
        assert start_time(7, tmp_path) is None
    file.write_text("7 (x) R 1\n")
    assert start_time(7, tmp_path) is None
    assert start_time(8, tmp_path) is None
    assert start_time(os.getpid()) is not None
