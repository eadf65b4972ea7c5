"""The measures of ``traingov-sim evaluate cap``: true power against a cap, the clairvoyant, and a quick run."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

from traingov_sim.cli import main
from traingov_sim.evaluate.cap import settings
from traingov_sim.evaluate.cap_run import Setting, run
from traingov_sim.evaluate.caps_over_time import SERIES, CapSeries, solar_day
from traingov_sim.evaluate.clairvoyant import best_progress
from traingov_sim.evaluate.true_power import TruePower

NANO = Setting("nano", "resnet18", (8, 32, 128))


class Still:
    """A twin whose board draws what ``watts`` says at each grid point."""


def power(watts: list[float], caps: list[float]) -> TruePower:
    meter = TruePower(Still())  # type: ignore[arg-type]
    meter.joules = [0.0, *np.cumsum(np.array(watts) * 0.1).tolist()]
    meter.caps_w = [*caps, caps[-1]]
    return meter


def test_a_window_is_one_second_and_counts_against_the_cap_at_its_end() -> None:
    mean_w, cap_w, steady = power([5.0] * 10 + [7.0] * 10, [6.0] * 20).windows()
    assert mean_w[0] == pytest.approx(5.0)
    assert mean_w[5] == pytest.approx(6.0)
    assert mean_w[-1] == pytest.approx(7.0)
    assert set(cap_w) == {6.0}
    assert steady.all()


def test_after_a_fall_of_the_cap_five_seconds_pass_until_windows_are_steady_again() -> None:
    _, _, steady = power([5.0] * 100, [6.0] * 30 + [5.5] * 70).windows()
    assert steady[:19].all()
    assert not steady[21:79].any()
    assert steady[81:].all()


def test_settling_ends_with_the_last_window_above_the_new_cap() -> None:
    meter = power([6.0] * 40 + [4.0] * 60, [7.0] * 30 + [5.0] * 70)
    assert meter.settling_s() == [pytest.approx(1.5, abs=0.11)]
    assert meter.overshoot_j()[0] > 0


def test_the_clairvoyant_takes_the_fastest_point_below_each_cap() -> None:
    rates = np.array([[1.0, 2.0], [1.5, 4.0]])
    peaks = np.array([[3.0, 5.0], [4.0, 8.0]])
    caps = CapSeries("x", 30.0, ((0.0, 9.0), (10.0, 4.5), (20.0, 3.5)))
    best, changes = best_progress(rates, peaks, caps, batch_change_s=0.5)
    assert best == pytest.approx(40 + 15 + (10 - 0.5) * 1.0)
    assert changes == 1


def test_a_change_that_does_not_repay_itself_is_not_made_even_by_a_clairvoyant() -> None:
    rates = np.array([[1.0], [1.1]])
    peaks = np.array([[3.0], [5.0]])
    flickering = CapSeries("x", 40.0, tuple((2.0 * k, 6.0 if k % 2 else 4.0) for k in range(20)))
    best, changes = best_progress(rates, peaks, flickering, batch_change_s=0.5)
    assert (best, changes) == (pytest.approx(40.0), 0)


def test_one_batch_size_is_never_better_than_the_choice_among_all() -> None:
    rates, peaks = np.array([[1.0, 2.0], [1.5, 4.0]]), np.array([[3.0, 5.0], [4.0, 8.0]])
    caps = CapSeries("x", 30.0, ((0.0, 9.0), (10.0, 4.5), (20.0, 3.5)))
    staying, changes = best_progress(rates, peaks, caps, batch_change_s=0.5, stay=True)
    assert (staying, changes) == (pytest.approx(40 + 15 + 0), 0)
    assert staying < best_progress(rates, peaks, caps, batch_change_s=0.5)[0]


def test_where_nothing_fits_the_clairvoyant_runs_at_the_least_power() -> None:
    best, _ = best_progress(np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]]), CapSeries("x", 10.0, ((0.0, 2.0),)),
                            batch_change_s=0.5)  # fmt: skip
    assert best == pytest.approx(10.0)


@pytest.mark.parametrize("name", sorted(SERIES))
def test_a_series_begins_at_once_rises_in_time_and_stays_within_its_range(name: str) -> None:
    low, high = 4.0, 9.0
    series = SERIES[name](low, high, random.Random(1))
    times = [t for t, _ in series.steps]
    assert times[0] == 0.0
    assert times == sorted(times)
    assert times[-1] < series.seconds
    assert all(low - 1e-9 <= w <= 1.1 * high + 1e-9 for _, w in series.steps)
    assert series.at(times[-1] + 0.1) == series.steps[-1][1]
    assert series == SERIES[name](low, high, random.Random(1))


def test_a_solar_day_is_dark_at_midnight_and_brightest_around_noon() -> None:
    day = solar_day(4.0, 9.0, random.Random(2))
    assert day.at(0.0) == day.at(86_000.0) == 4.0
    assert max(day.steps, key=lambda s: s[1])[0] == pytest.approx(43_200, abs=3 * 3600)


def test_every_board_that_has_a_surface_is_evaluated() -> None:
    known = {s.board for s in settings()}
    assert {"nano", "tx2-nx", "agx-orin", "orin-nano", "xavier-nx"} <= known
    low, high = NANO.cap_range()
    assert 3 < low < high < 12


def test_a_run_under_a_cap_that_nothing_exceeds_is_never_above_it() -> None:
    high = 1.5 * NANO.cap_range()[1]
    found = run(NANO, CapSeries("high", 60.0, ((0.0, high),)), 1, 0.05, keep_trace=True)
    assert (found.above, found.steady_above, found.overshoot_j) == (0.0, 0.0, 0.0)
    assert found.latencies == ()
    assert found.lost < 0.05
    assert len(found.trace) >= 100


@pytest.mark.slow
def test_the_command_prints_every_comparison_as_json_and_names_wrong_boards() -> None:
    result = CliRunner().invoke(main, ["evaluate", "cap", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert {r["series"] for r in answer["rows"]} == set(SERIES)
    for row in answer["rows"]:
        assert row["kind"] == "predicted"
        assert 0 <= row["steady_share_above"] <= 1
        assert row["lost_against_clairvoyant"] < 0.9
    wrong = CliRunner().invoke(main, ["evaluate", "cap", "--board", "toaster"])
    assert (wrong.exit_code, "toaster" in wrong.output) == (2, True)
