"""Over-current counters, thermal zones and cooling devices are found by what they say, in a fake sysfs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from traingov.device.files import SystemFiles
from traingov.device.health import HealthReader, HealthWorker
from traingov_policies.events import OverCurrentCounted, Thermals, Zone


def put(root: Path, path: str, text: str) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")
    return file


def zone(root: Path, number: int, name: str, temp: str | None, trips: tuple[tuple[str, str], ...] = ()) -> None:
    folder = f"/sys/class/thermal/thermal_zone{number}"
    put(root, f"{folder}/type", name)
    if temp is not None:
        put(root, f"{folder}/temp", temp)
    for k, (kind, celsius) in enumerate(trips):
        put(root, f"{folder}/trip_point_{k}_type", kind)
        put(root, f"{folder}/trip_point_{k}_temp", celsius)


def counters(root: Path, hwmon: str, *counts: int) -> None:
    put(root, f"/sys/class/hwmon/{hwmon}/name", "soctherm_oc")
    for k, count in enumerate(counts, 1):
        put(root, f"/sys/class/hwmon/{hwmon}/oc{k}_event_cnt", str(count))
        put(root, f"/sys/class/hwmon/{hwmon}/oc{k}_throt_en", "1")


def reader(root: Path) -> HealthReader:
    found = HealthReader(SystemFiles(str(root)))
    found.find()
    found.begin()
    return found


def test_only_what_the_counters_rose_by_counts(tmp_path: Path) -> None:
    put(tmp_path, "/sys/class/hwmon/hwmon0/name", "ina3221")
    counters(tmp_path, "hwmon4", 0, 27390, 12)
    health = reader(tmp_path)
    assert health.has_counters
    assert health.risen() == ()
    counters(tmp_path, "hwmon4", 0, 27395, 13)
    assert health.risen() == (("oc2", 5), ("oc3", 1))
    assert health.risen() == ()


def test_a_counter_that_was_set_back_did_not_rise(tmp_path: Path) -> None:
    counters(tmp_path, "hwmon4", 9, 9, 9)
    health = reader(tmp_path)
    counters(tmp_path, "hwmon4", 0, 9, 9)
    assert health.risen() == ()
    counters(tmp_path, "hwmon4", 2, 9, 9)
    assert health.risen() == (("oc1", 2),)


def test_a_counter_that_cannot_be_read_is_missing_and_not_zero(tmp_path: Path) -> None:
    counters(tmp_path, "hwmon4", 5, 5)
    health = reader(tmp_path)
    put(tmp_path, "/sys/class/hwmon/hwmon4/oc1_event_cnt", "?")
    assert health.risen() == ()
    counters(tmp_path, "hwmon4", 7, 5)
    assert health.risen() == (("oc1", 2),)


def test_a_board_without_counters_has_none(tmp_path: Path) -> None:
    put(tmp_path, "/sys/class/hwmon/hwmon0/name", "ina3221")
    health = reader(tmp_path)
    assert not health.has_counters
    assert health.risen() == ()


def test_zones_have_their_lowest_passive_trip_and_gated_ones_no_temperature(tmp_path: Path) -> None:
    zone(tmp_path, 0, "cpu-thermal", "51250", (("critical", "104500"), ("passive", "99000"), ("passive", "97000")))
    zone(tmp_path, 1, "cv0-thermal", "-256000")
    zone(tmp_path, 2, "tboard", None)
    put(tmp_path, "/sys/class/thermal/thermal_zone3/temp", "40000")
    assert reader(tmp_path).thermals(7.0) == Thermals(
        7.0,
        (
            Zone("cpu-thermal", 51.25, 97.0),
            Zone("cv0-thermal", None, None),
            Zone("tboard", None, None),
            Zone("thermal_zone3", 40.0, None),
        ),
    )


def test_cooling_devices_at_work_are_told_and_fans_are_none(tmp_path: Path) -> None:
    devices = (("pwm-fan", "3"), ("gpu-throttle-alert", "1"), ("cpu-throttle-alert", "0"), ("hot-surface-alert", "1"))
    for k, (kind, state) in enumerate(devices):
        put(tmp_path, f"/sys/class/thermal/cooling_device{k}/type", kind)
        put(tmp_path, f"/sys/class/thermal/cooling_device{k}/cur_state", state)
    put(tmp_path, "/sys/class/thermal/cooling_device9/type", "devfreq-17000000.gpu")  # no cur_state
    assert reader(tmp_path).thermals(7.0).cooling == (("gpu-throttle-alert", 1),)


def test_a_board_without_a_thermal_class_is_no_error(tmp_path: Path) -> None:
    assert reader(tmp_path).thermals(7.0) == Thermals(7.0)


def test_the_worker_tells_the_loop_while_jobs_run_and_is_quiet_otherwise(tmp_path: Path) -> None:
    counters(tmp_path, "hwmon2", 0, 0)
    zone(tmp_path, 0, "gpu-thermal", "50000")
    told: list[object] = []

    async def scenario() -> None:
        worker = HealthWorker(SystemFiles(str(tmp_path)), told.append)
        worker.attach(asyncio.get_running_loop())
        await asyncio.sleep(0.05)
        assert told == []
        worker.busy(True)
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        counters(tmp_path, "hwmon2", 0, 3)
        while not any(isinstance(e, OverCurrentCounted) for e in told) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        worker.busy(False)
        await asyncio.sleep(0.3)
        count = len(told)
        counters(tmp_path, "hwmon2", 0, 9)
        await asyncio.sleep(0.5)
        assert len(told) == count
        worker.busy(True)  # what was counted without a job is nobody's
        await asyncio.sleep(0.5)
        worker.close()

    asyncio.run(scenario())
    assert [e.counts for e in told if isinstance(e, OverCurrentCounted)] == [(("oc2", 3),)]
    assert isinstance(told[0], Thermals)
