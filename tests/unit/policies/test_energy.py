"""Energy and window means against exact integrals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.energy import EnergyMeter, TimeAbove, WindowMean

STEPS = st.lists(st.tuples(st.floats(0.001, 0.4), st.one_of(st.none(), st.floats(0, 100))), min_size=2, max_size=80)


def at_times(steps: list[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    t = 1000.0
    samples = []
    for step, power in steps:
        t += step
        samples.append((t, power))
    return samples


def exact(samples: list[tuple[float, float | None]], begin: float, end: float) -> tuple[float, float]:
    """Area and covered time of the straight lines between neighbouring readings, within [begin, end]."""
    area = covered = Fraction(0)
    for (t0, p0), (t1, p1) in itertools.pairwise(samples):
        low, high = max(t0, begin), min(t1, end)
        if p0 is None or p1 is None or high <= low:
            continue
        a, b = Fraction(t0), Fraction(t1)
        slope = (Fraction(p1) - Fraction(p0)) / (b - a)
        left, right = (Fraction(p0) + slope * (Fraction(x) - a) for x in (low, high))
        area += (left + right) / 2 * (Fraction(high) - Fraction(low))
        covered += Fraction(high) - Fraction(low)
    return float(area), float(covered)


@given(STEPS)
def test_energy_is_the_integral_of_the_straight_lines_between_readings(
    steps: list[tuple[float, float | None]],
) -> None:
    samples = at_times(steps)
    meter = EnergyMeter(None)
    for t, power in samples:
        meter.add(t, power)
    area, covered = exact(samples, -math.inf, math.inf)
    assert meter.energy_j == pytest.approx(area, rel=1e-9, abs=1e-9)
    assert meter.covered_s == pytest.approx(covered, rel=1e-9, abs=1e-9)
    assert meter.gap_s == pytest.approx(samples[-1][0] - samples[0][0] - covered, abs=1e-9)
    assert meter.missed == sum(power is None for _, power in samples)


def test_constant_power_gives_power_times_time() -> None:
    meter = EnergyMeter(0.01)
    for number in range(101):
        meter.add(5 + number * 0.01, 7.0)
    assert meter.energy_j == pytest.approx(7.0)
    assert meter.mean_power_w == pytest.approx(7.0)
    assert (meter.missed, meter.gap_s) == (0, pytest.approx(0, abs=1e-9))


def test_a_gap_of_twenty_hours_is_counted_and_not_integrated() -> None:
    meter = EnergyMeter(1.0, max_gap_s=2.0)
    for t in (0.0, 1.0, 72001.0, 72002.0):
        meter.add(t, 10.0)
    assert meter.energy_j == pytest.approx(20.0)
    assert meter.covered_s == pytest.approx(2.0)
    assert meter.gap_s == pytest.approx(72000.0)
    assert meter.missed == 71999


def test_a_missing_reading_is_not_zero_watts() -> None:
    meter = EnergyMeter(1.0, max_gap_s=5.0)
    for t, power in ((0.0, 10.0), (1.0, 10.0), (2.0, None), (3.0, 10.0), (4.0, 10.0)):
        meter.add(t, power)
    assert meter.energy_j == pytest.approx(20.0)
    assert meter.mean_power_w == pytest.approx(10.0)
    assert meter.gap_s == pytest.approx(2.0)
    assert meter.missed == 1


def test_before_anything_is_covered_there_is_no_mean() -> None:
    meter = EnergyMeter()
    assert (meter.mean_power_w, meter.energy_j, meter.gap_s, meter.missed) == (None, 0.0, 0.0, 0)
    meter.add(3.0, 5.0)
    assert meter.mean_power_w is None


def test_time_that_runs_backwards_is_ignored_and_equal_times_add_nothing() -> None:
    meter = EnergyMeter(None)
    for t, power in ((1.0, 10.0), (0.5, 1000.0), (1.0, 30.0), (2.0, 30.0)):
        meter.add(t, power)
    assert meter.energy_j == pytest.approx(30.0)


@pytest.mark.parametrize("gap", [0, -1, math.nan])
def test_a_gap_limit_that_makes_no_sense_is_refused(gap: float) -> None:
    with pytest.raises(ValueError, match="max_gap_s"):
        EnergyMeter(max_gap_s=gap)


@given(STEPS, st.floats(0.1, 3.0))
def test_a_window_mean_is_the_exact_mean_over_the_window(
    steps: list[tuple[float, float | None]], window_s: float
) -> None:
    samples = at_times(steps)
    mean = WindowMean(window_s, coverage=0.5, max_gap_s=10.0)
    for number, (t, power) in enumerate(samples, 1):
        mean.add(t, power)
        area, covered = exact(samples[:number], t - window_s, t)
        if abs(covered - 0.5 * window_s) < 1e-6:
            continue
        if covered < 0.5 * window_s:
            assert mean.value is None
            continue
        # Within the oldest piece the mean of the piece stands for its slope, and joined pieces blur 1/1024.
        value = mean.value
        assert value is not None
        assert abs(value * covered - area) <= 0.4 * 100 / 8 + 100 * window_s / 1024 + 1e-9


def test_a_window_mean_of_an_even_stream_is_exact_at_every_sample() -> None:
    mean = WindowMean(1.0)
    values = [float(number * 37 % 101) for number in range(400)]
    for number, power in enumerate(values):
        mean.add(number * 0.01, power)
        if number < 80:
            assert mean.value is None
        elif number >= 100:
            cut = values[number - 100 : number + 1]
            assert mean.value == pytest.approx((sum(cut) - (cut[0] + cut[-1]) / 2) / 100, abs=1e-9)


def test_one_sample_a_second_covers_a_window_of_one_second() -> None:
    mean = WindowMean(1.0)
    mean.add(0.0, 4.0)
    mean.add(1.0, 6.0)
    assert mean.value == pytest.approx(5.0)
    mean.add(2.0, 6.0)
    assert mean.value == pytest.approx(6.0)


def test_a_window_too_little_of_which_is_covered_has_no_mean() -> None:
    mean = WindowMean(1.0, coverage=0.8)
    for number in range(101):
        mean.add(number * 0.01, 5.0)
    assert mean.value == pytest.approx(5.0)
    for number in range(101, 118):
        mean.add(number * 0.01, None)
    assert mean.value == pytest.approx(5.0)
    for number in range(118, 125):
        mean.add(number * 0.01, None)
    assert mean.value is None


def test_a_mean_asked_for_too_late_is_not_given() -> None:
    mean = WindowMean(1.0, coverage=0.8)
    for number in range(101):
        mean.add(number * 0.01, 5.0)
    assert mean.mean(1.1) == pytest.approx(5.0)
    assert mean.mean(1.3) is None


def test_a_long_window_stays_small_in_memory_and_right_over_a_day() -> None:
    mean = WindowMean(60.0)
    rng = 1
    last: list[float] = []
    for number in range(200_000):
        rng = rng * 1103515245 + 12345 & 0x7FFFFFFF
        power = 1e6 if number < 1000 else 5.0 + rng / 0x7FFFFFFF
        mean.add(number * 0.432, power)
        last.append(power)
    assert len(mean._pieces) <= 1100
    assert mean.value == pytest.approx(sum(last[-139:]) / 139, rel=1e-2)
    mean.clear()
    assert mean.value is None


def test_a_fast_stream_does_not_fill_the_memory() -> None:
    mean = WindowMean(100.0)
    for number in range(150_000):
        mean.add(number * 0.001, 3.0)
    assert len(mean._pieces) <= 1100
    assert mean.value == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("window", "coverage", "word"), [(0, 0.8, "window_s"), (1, 0, "coverage"), (1, 1.1, "coverage")]
)
def test_a_window_that_makes_no_sense_is_refused(window: float, coverage: float, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        WindowMean(window, coverage)


def test_time_above_a_limit_is_counted_with_its_energy() -> None:
    above = TimeAbove(10.0, window_s=0.1)
    for number in range(101):
        above.add(number * 0.01, 8.0)
    assert (above.above_s, above.overshoot_j, above.share) == (0.0, 0.0, 0.0)
    for number in range(101, 301):
        above.add(number * 0.01, 12.0)
    # The window mean passes 10 W when half the window is at 12 W.
    assert above.above_s == pytest.approx(1.95, abs=0.011)
    assert above.overshoot_j == pytest.approx(2 * 1.95, rel=0.03)
    assert above.worst_w == pytest.approx(12.0)
    above.limit_w = None
    judged = above.judged_s
    above.add(3.01, 50.0)
    assert above.judged_s == judged


def test_time_without_readings_is_not_judged() -> None:
    above = TimeAbove(1.0, window_s=0.1)
    for number in range(50):
        above.add(number * 0.01, None)
    assert above.share is None
    assert above.above_s == 0.0
