"""The passive detector and the watch of one point: what raises an alarm, and what must not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from traingov_policies.drift.detector import LEVEL_MOST, Detector
from traingov_policies.drift.settings import DriftSettings
from traingov_policies.drift.watch import Watch
from traingov_policies.events import Sample, StepsReported
from traingov_policies.lut import Cell
from traingov_policies.values import OperatingPoint

POINT = OperatingPoint(32, 921_600_000)
SETTINGS = DriftSettings()


def first_alarm(values: list[float]) -> tuple[int, int] | None:
    """Second (from 1) and direction of the first alarm."""
    detector = Detector(SETTINGS, 1)
    for t, x in enumerate(values, 1):
        (way,) = detector.step(np.array([x]))
        if way:
            return t, int(way)
    return None


def correlated(seconds: int, sd: float, seed: int, rho: float = 0.7) -> list[float]:
    rng = np.random.default_rng(seed)
    out, x = [], 0.0
    for e in rng.standard_normal(seconds):
        x = rho * x + math.sqrt(1 - rho**2) * sd * float(e)
        out.append(x)
    return out


@pytest.mark.parametrize("sign", [1, -1])
def test_a_shift_of_five_percent_is_found_in_both_directions_within_half_a_minute(sign: int) -> None:
    noise = correlated(1200, 0.01, seed=1)
    shifted = [x + (sign * 0.05 if t >= 600 else 0.0) for t, x in enumerate(noise)]
    found = first_alarm(shifted)
    assert found is not None
    assert 600 < found[0] <= 630
    assert found[1] == sign


def test_four_hours_of_noise_alone_raise_nothing() -> None:
    assert first_alarm(correlated(4 * 3600, 0.01, seed=2)) is None


def test_a_table_that_is_off_by_one_percent_raises_nothing_and_is_learned() -> None:
    detector = Detector(SETTINGS, 1)
    for x in correlated(3600, 0.01, seed=3):
        assert not detector.step(np.array([x + 0.01])).any()
    assert detector.level[0] == pytest.approx(0.01, abs=0.004)


def test_what_creeps_up_to_six_percent_is_found_since_the_level_is_followed_only_so_far() -> None:
    found = first_alarm([0.06 * min(1.0, t / 3600) for t in range(7200)])
    assert found is not None
    assert found[1] == 1
    assert LEVEL_MOST < 0.02


def test_a_stall_of_eight_seconds_is_no_drift_and_thirty_seconds_of_it_are() -> None:
    quiet = correlated(400, 0.01, seed=4)
    assert first_alarm([x + (1.0 if 300 <= t < 308 else 0.0) for t, x in enumerate(quiet)]) is None
    assert first_alarm([x + (1.0 if 300 <= t < 330 else 0.0) for t, x in enumerate(quiet)]) is not None


def test_the_noise_is_estimated_whatever_the_first_guess_says() -> None:
    for sd, rho in ((0.004, 0.6), (0.02, 0.8)):
        detector = Detector(SETTINGS, 1)
        for x in correlated(8000, sd, seed=5, rho=rho):
            detector.step(np.array([x]))
        assert detector.sd[0] == pytest.approx(sd, rel=0.2)
        assert detector.rho[0] == pytest.approx(rho, abs=0.08)


def test_missing_seconds_are_missing_and_channels_are_independent() -> None:
    detector = Detector(SETTINGS, 2)
    for t in range(300):
        found = detector.step(np.array([math.nan, 0.0 if t < 200 else 0.1]))
        if t == 215:
            assert found.tolist() == [0, 1]
    assert detector.seen.tolist() == [0, 300]
    assert detector.up[0] == 0.0


def test_settings_that_make_no_sense_are_named() -> None:
    with pytest.raises(ValueError, match="shift 0.01 must lie above tolerance 0.02"):
        DriftSettings(shift=0.01, tolerance=0.02)
    with pytest.raises(ValueError, match="probe_budget must lie between 0 and 0.1"):
        DriftSettings(probe_budget=0.5)


# -- the watch -------------------------------------------------------------------------------------------------------


def fed(watch: Watch, seconds: int, step_s: float, watts: float, start_s: float = 0.0, **more: object) -> float:
    """Steps of ``step_s`` reported every tenth of a second, samples between them; the time at the end."""
    hz = int(str(more.get("hz", POINT.gpu_frequency_hz)))
    t = start_s
    for _ in range(seconds * 10):
        for k in range(5):
            watch.sample(Sample(t + 0.02 * k, watts, None, hz))
        t += 0.1
        alarm = watch.steps(StepsReported(t, "j", 32, 2, 64, 2 * step_s))
        if alarm is not None:
            raise AssertionError(alarm.text)
    return t


def a_watch(**more: object) -> Watch:
    cell = Cell(6.4, 7.0, 6.5, "measured", 0.01, 0.01)  # 4096 samples: 50 ms a step of 32
    return Watch(POINT, cell, 4096, SETTINGS, clock_tolerance=0.03, **more)  # type: ignore[arg-type]


def test_live_time_and_power_are_ratios_to_the_table() -> None:
    watch = a_watch()
    fed(watch, 30, 0.0505, 6.63)
    live = watch.live()
    assert live is not None
    assert live.time == pytest.approx(math.log(1.01))
    assert live.power == pytest.approx(math.log(1.02))


def test_power_that_rises_is_an_alarm_that_says_so() -> None:
    watch = a_watch()
    end = fed(watch, 60, 0.05, 6.5)
    with pytest.raises(AssertionError, match=r"power is 8\.0 % above the table's"):
        fed(watch, 60, 0.05, 7.02, end)


def test_a_known_offset_is_no_drift() -> None:
    watch = a_watch(offset=(math.log(0.93), 0.0))
    fed(watch, 120, 0.0465, 6.5)


def test_blocks_at_another_clock_do_not_count() -> None:
    watch = a_watch()
    fed(watch, 120, 0.08, 4.0, hz=691_200_000)
    assert watch.blocks == 0
    assert watch.live() is None


def test_a_missing_sensor_leaves_time_alone() -> None:
    watch = a_watch()
    for k in range(300):
        watch.steps(StepsReported(0.1 * k, "j", 32, 2, 64, 0.1))
    live = watch.live()
    assert live is not None
    assert live.power is None
    assert live.time == pytest.approx(0.0, abs=1e-9)


def test_long_steps_are_blocks_of_their_own() -> None:
    watch = a_watch()
    for k in range(1, 40):
        t = 2.5 * k
        for i in range(25):
            watch.sample(Sample(t - 2.5 + 0.1 * i, 6.5, None, POINT.gpu_frequency_hz))
        watch.steps(StepsReported(t, "j", 32, 50, 1600, 2.5))
    assert watch.blocks == 38


def test_a_pause_of_the_job_is_not_taken_for_training() -> None:
    watch = a_watch()
    end = fed(watch, 60, 0.05, 6.5)
    end = fed(watch, 60, 0.05, 6.5, end + 120)
    assert watch.live() is not None
    with pytest.raises(ValueError, match="no time"):
        Watch(POINT, Cell(), 4096, SETTINGS, clock_tolerance=0.03)
