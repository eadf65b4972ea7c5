"""systemd's watchdog is fed while the control loop gets on, and only then."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from traingov.config import Config, load_config
from traingov.data import data_dir
from traingov.device.worker import DeviceWorker
from traingov.loop import Loop
from traingov.telemetry.rails import RailTable
from traingov.telemetry.samples import Sampler
from traingov.watchdog import Watchdog, period_s


def test_signs_of_life_come_three_times_as_often_as_systemd_asks() -> None:
    assert period_s({"WATCHDOG_USEC": "6000000", "WATCHDOG_PID": str(os.getpid())}) == pytest.approx(2.0)
    assert period_s({"WATCHDOG_USEC": "6000000"}) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "environ",
    [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "6000000", "WATCHDOG_PID": "1"}],
)
def test_without_a_watchdog_of_ours_nothing_is_sent(environ: dict[str, str]) -> None:
    assert period_s(environ) is None
    sent: list[str] = []
    Watchdog(lambda: None, period_s(environ), sent.append).start()
    assert sent == []


def test_it_is_silent_while_the_loop_is_stuck_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[str] = []
    stuck: list[str | None] = [None]

    async def main() -> None:
        watchdog = Watchdog(lambda: stuck[0], 0.002, sent.append)
        watchdog.start()
        while len(sent) < 3:
            await asyncio.sleep(0.002)
        stuck[0] = "no tick"
        before = len(sent)
        while not caplog.records:
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.02)
        assert len(sent) == before
        stuck[0] = None
        while len(sent) == before:
            await asyncio.sleep(0.002)
        watchdog.stop()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert set(sent) == {"WATCHDOG=1"}
    assert [r.message for r in caplog.records] == [
        "no tick: the watchdog is no longer fed, so that the service is started anew"
    ]


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def config_of(folder: Path) -> Config:
    file = folder / "c.yaml"
    file.write_text(f"root: {folder}\nstate_dir: {folder}/state\nsocket: {folder}/s\ntegrastats: 'false'\n")
    return load_config([file])


def test_a_tick_that_fails_is_no_progress_although_the_event_loop_runs_on(tmp_path: Path) -> None:
    config, clock = config_of(tmp_path), Clock()

    async def main() -> None:
        worker = DeviceWorker(config.root, config.state_dir, lambda entry: None)
        board = worker.find()
        sampler = Sampler(RailTable.load(data_dir() / "boards"), board.name, lambda rule, unknown: None)
        loop = Loop(config, config.settings(sampler.rule), board, worker=worker, sampler=sampler, clock=clock)
        clock.now_s += 1000
        assert loop.stuck() is None, "without a job nothing ticks, and nothing is stuck"
        loop.busy(True)
        assert loop.stuck() is None

        def broken(event: object) -> None:
            raise RuntimeError("a defect")

        asyncio.get_running_loop().set_exception_handler(lambda running, context: None)
        working, loop.feed = loop.feed, broken  # type: ignore[method-assign]
        clock.now_s += 3
        await asyncio.sleep(0.25)  # longer than a tick: it came, and failed
        assert "no tick of the control loop was finished for 3.0 s" in str(loop.stuck())
        loop.busy(True)  # another job does not hide it
        assert loop.stuck() is not None
        loop.feed = working  # type: ignore[method-assign]
        await loop.stop()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_ticks_that_work_are_progress(tmp_path: Path) -> None:
    config, clock = config_of(tmp_path), Clock()

    async def main() -> None:
        worker = DeviceWorker(config.root, config.state_dir, lambda entry: None)
        board = worker.find()
        sampler = Sampler(RailTable.load(data_dir() / "boards"), board.name, lambda rule, unknown: None)
        loop = Loop(config, config.settings(sampler.rule), board, worker=worker, sampler=sampler, clock=clock)
        loop.busy(True)
        clock.now_s += 3
        while loop.stuck() is not None:
            await asyncio.sleep(0.01)
        await loop.stop()

    asyncio.run(asyncio.wait_for(main(), 20))
