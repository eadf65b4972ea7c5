"""A point is measured no longer than needed, given up once surely above the cap, and repeated where it is not valid."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from traingov_policies.events import Sample, StepsReported
from traingov_policies.measure import PointMeter, StepTimes, Verdict
from traingov_policies.settings import ProfileSettings
from traingov_policies.values import OperatingPoint

HZ = 460_800_000
POINT = OperatingPoint(16, HZ)


def measure(
    watts: Callable[[float], float | None], step_s: float = 0.05, cap_w: float | None = None, *, until: float = 30.0,
    hz: Callable[[float], int | None] = lambda t: HZ, first_step_s: float = 0.0, earliest_s: float | None = None,
    settings: ProfileSettings | None = None, durations: Callable[[int], float] | None = None,
) -> tuple[Verdict | None, float]:  # fmt: skip
    """Feeds 10 ms samples and a report per step (at most one each 100 ms); the clock is to settle until 1 s."""
    meter = PointMeter(POINT, 1.0, settings or ProfileSettings(), cap_w, 1.0, earliest_s=earliest_s)
    t, begun, steps, count = 0.0, first_step_s, 0, 0
    end = begun + (durations(0) if durations else step_s)
    while t < until:
        t = round(t + 0.01, 6)
        meter.sample(Sample(t, watts(t), None, hz(t)))
        while end <= t:
            steps, count = steps + 1, count + 1
            if end - begun >= 0.1 or (durations(count) if durations else step_s) > 0.1:
                meter.steps(StepsReported(end, "j", 16, steps, 16 * steps, end - begun, True))
                begun, steps = end, 0
            end += durations(count) if durations else step_s
        verdict = meter.verdict(t)
        if verdict is not None:
            return verdict, t
    return None, t


def steady(level: float) -> Callable[[float], float]:
    return lambda t: level + 0.004 * ((t * 37.0) % 1.0 - 0.5)


def test_steady_short_steps_are_measured_in_little_more_than_the_least_window() -> None:
    verdict, t = measure(steady(4.0))
    assert verdict is not None
    assert verdict.cell is not None
    assert verdict.cell.time_s == pytest.approx(0.05 / 16 * 4096)
    assert verdict.cell.peak_power_w == pytest.approx(4.0, abs=0.01)
    assert verdict.cell.time_std_s == pytest.approx(0.0, abs=0.2)
    assert verdict.cell.power_std_w == pytest.approx(0.005 * 4.0, rel=0.01)
    assert t < 1.0 + 1.2 + 0.3


def test_one_long_step_is_enough_and_its_time_carries_the_assumed_error() -> None:
    verdict, t = measure(steady(4.0), step_s=9.0, first_step_s=1.0)
    assert verdict is not None
    assert verdict.cell is not None
    assert verdict.cell.time_s == pytest.approx(9.0 / 16 * 4096)
    assert verdict.cell.time_std_s == pytest.approx(0.02 * verdict.cell.time_s)
    assert t == pytest.approx(10.0, abs=0.1)


def test_a_step_that_began_before_the_clock_held_is_left_out() -> None:
    late = lambda t: 76_800_000 if t < 0.6 else HZ  # noqa: E731
    verdict, t = measure(steady(4.0), step_s=3.0, hz=late)
    assert verdict is not None
    assert t == pytest.approx(6.0, abs=0.1)  # the first ended at 3 s and was not counted


def test_a_step_that_the_clock_held_for_all_but_two_percent_of_is_counted() -> None:
    late = lambda t: 76_800_000 if t < 0.15 else HZ  # noqa: E731
    verdict, t = measure(steady(4.0), step_s=9.0, hz=late, first_step_s=0.0)
    assert verdict is not None
    assert t == pytest.approx(9.0, abs=0.1)


def test_where_telemetry_shows_the_clock_it_settles_no_longer_than_it_has_to() -> None:
    shown, t_shown = measure(steady(4.0), hz=lambda t: 76_800_000 if t < 0.3 else HZ, earliest_s=0.5)
    hidden, t_hidden = measure(steady(4.0), hz=lambda t: None, earliest_s=0.5)
    assert shown is not None
    assert hidden is not None
    assert t_shown < 1.75  # a window and the sensor's lag after 0.3 s
    assert t_hidden > 2.15  # a window after the full time to settle


def test_a_point_clearly_above_the_cap_is_given_up_before_a_window_is_over() -> None:
    verdict, t = measure(steady(5.0), cap_w=4.5)
    assert verdict is not None
    assert verdict.cell is not None
    assert (verdict.cell.origin, verdict.cell.time_s) == ("infeasible", None)
    assert verdict.cell.peak_power_w == pytest.approx(5.0, abs=0.02)
    assert t < 1.5


def test_a_hungry_part_of_a_long_step_does_not_condemn_a_point_whose_windows_keep_the_cap() -> None:
    """0.45 s at 5.4 W and 0.55 s at 3.4 W: one second means of 4.3 W, below the cap at all times."""
    phases = lambda t: (5.4 if t % 1.0 < 0.45 else 3.4) + 0.001 * (t * 37 % 1)  # noqa: E731
    verdict, _ = measure(phases, step_s=1.0, cap_w=4.5)
    assert verdict is not None
    assert verdict.cell is not None
    assert verdict.cell.origin == "measured"
    assert verdict.cell.peak_power_w == pytest.approx(4.3, abs=0.06)


def test_the_peak_is_the_largest_window_mean_not_the_mean() -> None:
    phases = lambda t: (6.0 if t % 4.0 < 2.0 else 3.0) + 0.001 * (t * 37 % 1)  # noqa: E731
    verdict, _ = measure(phases, step_s=4.0, until=60)
    assert verdict is not None
    assert verdict.cell is not None
    assert verdict.cell.peak_power_w == pytest.approx(6.0, abs=0.02)
    assert verdict.cell.mean_power_w == pytest.approx(4.5, abs=0.03)


def test_the_rest_before_the_first_counted_step_is_no_part_of_the_mean_power() -> None:
    """The clock holds, and the job still changes its batch size: half a second at idle power, then steps at 4 W."""
    step = steady(4.0)
    verdict, _ = measure(lambda t: 1.5 if t < 2.0 else step(t), first_step_s=2.0, earliest_s=0.0)
    assert verdict is not None
    assert verdict.cell is not None
    assert verdict.cell.mean_power_w == pytest.approx(4.0, abs=0.02)


def test_near_the_cap_it_is_measured_longer_but_not_for_ever() -> None:
    _, clear = measure(steady(4.0), cap_w=4.5)
    near, longer = measure(steady(4.48), cap_w=4.5)
    assert near is not None
    assert near.cell is not None
    assert near.cell.origin == "measured"
    assert clear < longer < 1.0 + 4.0 + 1.0


def test_a_point_within_its_error_above_the_cap_is_measured_and_not_given_up() -> None:
    verdict, _ = measure(steady(4.52), cap_w=4.5)
    assert verdict is not None
    assert verdict.cell is not None
    assert verdict.cell.origin == "measured"
    assert verdict.cell.peak_power_w > 4.5


def test_steps_that_vary_are_measured_longer_and_then_called_unsteady() -> None:
    verdict, t = measure(steady(4.0), durations=lambda k: 0.9 if k % 4 == 0 else 0.2)
    assert verdict is not None
    assert verdict.invalid is not None
    assert "something else may have run" in verdict.invalid
    assert verdict.cell is not None
    assert verdict.cell.time_std_s > 0.05 * verdict.cell.time_s
    assert t > 4.5


@pytest.mark.parametrize(
    ("watts", "hz", "text"),
    [
        (steady(4.0), lambda t: 921_600_000, "the clock was 922 MHz"),
        (lambda t: 4.0, lambda t: HZ, "the sensor may be stuck"),
        (lambda t: None, lambda t: HZ, "no power reading"),
    ],
)
def test_a_measurement_that_cannot_be_trusted_says_why(watts, hz, text) -> None:
    verdict, _ = measure(watts, hz=hz)
    assert verdict is not None
    assert verdict.cell is None
    assert verdict.invalid is not None
    assert text in verdict.invalid


def test_without_steps_the_point_is_given_up_after_the_stated_time() -> None:
    verdict, t = measure(steady(4.0), step_s=1e9, settings=ProfileSettings(max_window_s=10.0))
    assert verdict is not None
    assert verdict.invalid == "only 0 steps in 10 s"
    assert t == pytest.approx(11.0, abs=0.1)


def test_reports_of_another_batch_size_are_left_out() -> None:
    meter = PointMeter(POINT, 0.0, ProfileSettings(), None, 1.0)
    meter.steps(StepsReported(5.0, "j", 32, 50, 1600, 4.0, True))
    for k in range(1, 400):
        meter.sample(Sample(k / 100, 4.0 + 0.001 * (k % 9), None, HZ))
    assert meter.verdict(4.0) is None


def test_the_standard_deviation_of_step_times_is_the_ratio_estimators() -> None:
    times = StepTimes()
    for k, elapsed in enumerate((1.0, 1.1, 0.9, 1.0)):
        times.add(StepsReported(float(k), "j", 16, 1, 16, elapsed, True))
    assert times.sample_s == pytest.approx(1.0 / 16)
    assert times.relative_std == pytest.approx((0.02 * 4 / 3) ** 0.5 / 4.0)


def test_an_unknown_plan_is_named() -> None:
    with pytest.raises(ValueError, match=r"profile\.plan is 'random'; use one of adaptive, staircase, full"):
        ProfileSettings(plan="random")
