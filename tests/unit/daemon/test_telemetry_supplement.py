"""Utilization from a second source: filled in where it is missing and fresh, and never anything else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from traingov.telemetry import choose as choosing
from traingov.telemetry.choose import Candidate, open_source
from traingov.telemetry.interface import OnReading, OnState
from traingov.telemetry.reading import Reading
from traingov.telemetry.sampling import SourceCounters
from traingov.telemetry.supplement import FRESH_S, WithUtilization


class Fake:
    """A source that says what it is told to."""

    def __init__(self, on_reading: OnReading, on_state: OnState) -> None:
        self.say, self.report = on_reading, on_state
        self.counters = SourceCounters()
        self.interval_s: float | None = 1.0
        self.state = "stopped"

    def start(self) -> None:
        self.state = "running"

    def set_interval(self, interval_s: float | None) -> None:
        self.interval_s = interval_s

    def stop(self) -> None:
        self.state = "stopped"

    async def wait_stopped(self, timeout_s: float = 1.0) -> bool:
        return self.state == "stopped"


class Pair:
    def __init__(self) -> None:
        self.fakes: list[Fake] = []
        self.readings: list[Reading] = []
        self.states: list[str] = []
        self.source = WithUtilization(
            self._open, self._open, lambda t, r: self.readings.append(r), lambda s, x: self.states.append(s)
        )
        self.main, self.second = self.fakes

    def _open(self, on_reading: OnReading, on_state: OnState) -> Fake:
        self.fakes.append(Fake(on_reading, on_state))
        return self.fakes[-1]


THOR = Reading(rails_w={"VIN": 60.0}, gpu_frequency_hz=1_575_000_000)
BUSY = Reading(rails_w={"NVML_SOC_GPU": 40.0}, gpu_utilization=0.87, gpu_frequency_hz=1)


def test_a_missing_utilization_is_filled_in_and_nothing_else() -> None:
    pair = Pair()
    pair.second.say(10.0, BUSY)
    pair.main.say(10.05, THOR)
    assert pair.readings == [Reading(rails_w={"VIN": 60.0}, gpu_frequency_hz=1_575_000_000, gpu_utilization=0.87)]


def test_a_utilization_of_the_first_source_stays() -> None:
    pair = Pair()
    pair.second.say(10.0, BUSY)
    pair.main.say(10.1, Reading(gpu_utilization=0.1))
    assert pair.readings[0].gpu_utilization == 0.1


def test_an_old_or_missing_or_failed_utilization_is_missing() -> None:
    pair = Pair()
    pair.main.say(9.9, THOR)
    pair.second.say(10.0, BUSY)
    pair.main.say(10.1 + FRESH_S, THOR)
    pair.second.say(12.0, Reading())
    pair.main.say(12.1, THOR)
    pair.second.say(13.0, BUSY)
    pair.second.report("restarting", "NVML: GPU is lost")
    pair.main.say(13.1, THOR)
    assert [reading.gpu_utilization for reading in pair.readings] == [None] * 4
    assert pair.states == [], "trouble of the second source is not the telemetry's"


def test_both_are_started_paced_and_stopped() -> None:
    pair = Pair()
    pair.source.start()
    assert (pair.main.state, pair.second.state) == ("running", "running")
    pair.source.set_interval(0.01)
    assert (pair.source.interval_s, pair.second.interval_s) == (0.01, 0.1)
    pair.source.set_interval(None)
    assert (pair.main.interval_s, pair.second.interval_s) == (None, None)
    pair.main.counters.readings = 7
    assert pair.source.counters.readings == 7
    pair.source.stop()
    assert pair.source.state == "stopped"
    assert asyncio.run(pair.source.wait_stopped())


@pytest.mark.parametrize(("load", "nvml", "joined"), [(False, True, True), (True, True, False), (False, False, False)])
def test_nvml_is_asked_beside_tegrastats_only_where_the_board_shows_no_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: bool, nvml: bool, joined: bool
) -> None:
    node = tmp_path / "sys/class/devfreq/gpu-gpc-0"
    (node / "device").mkdir(parents=True)
    for name in ("min_freq", "max_freq"):
        (node / name).write_text("315000000\n")
    if load:
        (node / "device/load").write_text("500\n")
    monkeypatch.setattr(choosing, "_nvml", lambda root: Candidate("nvml", nvml, "played"))
    for name in ("tegrastats", "sysfs"):
        source = open_source(name, str(tmp_path), ["tegrastats"], lambda t, r: None, lambda s, x: None)
        assert isinstance(source, WithUtilization) == joined
