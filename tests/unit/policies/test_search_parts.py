"""The small parts of a search: window, noise, budget, lengths, log, remembered curves."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.events import Sample, StepsReported
from traingov_policies.search.budget import Budget
from traingov_policies.search.curves import OLD_SD, Curve, most_alike
from traingov_policies.search.lengths import Lengths
from traingov_policies.search.log import Log
from traingov_policies.search.window import Measured, Noise, Window
from traingov_policies.values import Board, Objective

HZ = (300_000_000, 600_000_000, 900_000_000)


def window(wanted_s: float = 4.0) -> Window:
    return Window(
        HZ[1], 8, 0.0, wanted_s, 20.0, power="compute", min_steps=2, min_readings=5, tolerance=0.03
    )  # fmt: skip


def fill(
    w: Window, seconds: float, *, hz: int = HZ[1], watts: float | None = 10.0, step_s: float = 0.1, wiggle: float = 0.01
) -> None:
    for k in range(round(seconds * 100)):
        t = k / 100
        power = None if watts is None else watts + wiggle * (k % 7)
        w.sample(Sample(t, 20.0 + wiggle * (k % 5), power, hz))
        if k and k % round(step_s * 100) == 0:
            w.steps(StepsReported(t, "j", 8, 1, 8, step_s))


def test_a_window_gives_energy_and_time_per_sample() -> None:
    w = window()
    fill(w, 4.3)
    done = w.outcome(4.3, Noise())
    assert done is not None
    assert done.measured is not None
    assert done.measured.time_s == pytest.approx(0.1 / 8)
    assert done.measured.compute_energy_j == pytest.approx(10.03 * 0.1 / 8, rel=1e-3)
    assert done.measured.input_energy_j == pytest.approx(20.02 * 0.1 / 8, rel=1e-3)
    assert 0.002 <= done.measured.sd < 0.05


def test_a_window_goes_on_until_it_is_long_enough() -> None:
    w = window()
    fill(w, 3.0)
    assert w.outcome(3.0, Noise()) is None


def test_samples_and_steps_from_before_the_clock_settled_do_not_count() -> None:
    w = Window(HZ[1], 8, 2.0, 1.0, 20.0, power="compute", min_steps=2, min_readings=2, tolerance=0.03)
    w.sample(Sample(1.0, 99.0, 99.0, HZ[0]))
    w.steps(StepsReported(2.5, "j", 8, 10, 80, 1.0))
    w.steps(StepsReported(2.6, "j", 4, 10, 40, 0.1))
    assert w.outcome(2.7, Noise()) is None
    for k in range(150):
        w.sample(Sample(2 + k / 100, 20.0, 10.0 + k % 3, HZ[1]))
    w.steps(StepsReported(3.5, "j", 8, 10, 80, 1.5))
    done = w.outcome(3.5, Noise())
    assert done is not None
    assert done.measured is not None
    assert done.measured.time_s == pytest.approx(1.5 / 80)


@pytest.mark.parametrize(
    ("seconds", "more", "text"),
    [
        (5.0, {"hz": HZ[2]}, "the clock was 900 MHz on average, not 600 MHz"),
        (30.0, {"watts": None}, "no reading of compute power"),
        (30.0, {"wiggle": 0.0}, "only 1 distinct power readings"),
        (30.0, {"step_s": 100.0}, "no whole step in"),
    ],
)
def test_a_window_that_cannot_be_used_says_why(seconds: float, more: dict[str, float], text: str) -> None:
    w = window()
    fill(w, seconds, **more)  # type: ignore[arg-type]
    done = w.outcome(seconds, Noise())
    assert done is not None
    assert done.invalid is not None
    assert text in done.invalid


def test_a_window_in_which_the_job_paused_is_not_used_and_not_held_against_the_clock() -> None:
    w = window()
    fill(w, 3.0)
    for k in range(300, 900):
        w.sample(Sample(k / 100, 9.0, 4.0 + 0.01 * (k % 7), HZ[1]))
    w.steps(StepsReported(9.0, "j", 8, 12, 96, 1.2))
    done = w.outcome(9.0, Noise())
    assert done is not None
    assert done.paused
    assert "steps were reported for 4.1 of 9.0 s" in (done.invalid or "")


def test_an_evaluation_between_steps_is_not_counted_as_a_loss() -> None:
    b = Budget(0.0, 100.0, 0.0, Objective.ENERGY)
    b.tree(1.0, 0.1)
    b.power(0.0, 10.0)
    b.leave()
    for k in range(1, 101):
        b.power(k / 10, 10.0)
        b.report(1, 0.1)
    before = b.extra_j()
    for k in range(101, 701):  # a minute without steps
        b.power(k / 10, 10.0)
        assert b.extra_j() <= before + 15.0
    b.report(1, 0.1)
    assert b.extra_j() == pytest.approx(before, abs=1.0)


def test_noisier_power_asks_for_longer_windows_and_a_lone_stall_does_not() -> None:
    calm, rough, stalled = Noise(), Noise(), Noise()
    for _ in range(10):
        calm.add([10.0, 10.01, 9.99, 10.0])
        rough.add([10.0, 10.6, 9.4, 10.0])
    for k in range(10):
        stalled.add([10.0, 10.01, 9.99, 1.0 if k == 5 else 10.0])
    assert calm.needed_s(0.01) < 4 < rough.needed_s(0.01)
    assert stalled.sd < rough.sd


def test_a_budget_counts_what_a_stay_costs_more_and_no_savings() -> None:
    b = Budget(0.0, 100.0, 0.0, Objective.ENERGY)
    b.tree(1.0, 0.1)
    b.power(0.0, 10.0)
    b.leave()
    for k in range(1, 11):
        b.power(k, 20.0)
        b.report(10, 1.0)
    b.back()
    assert b.spent_j == pytest.approx(200 - 100, rel=0.06)
    spent = b.spent_j
    b.leave()
    for k in range(11, 21):
        b.power(k, 5.0)
        b.report(10, 1.0)
    b.back()
    assert b.spent_j == pytest.approx(spent, abs=16)  # the first interval is billed at the higher of its two readings


def test_under_edp_a_slow_clock_of_low_power_counts_as_a_loss() -> None:
    energy, edp = (Budget(0.0, 100.0, 0.0, o) for o in (Objective.ENERGY, Objective.EDP))
    for b in (energy, edp):
        b.tree(1.0, 0.1)
        b.power(0.0, 5.0)
        b.leave()
        for k in range(1, 11):
            b.power(k, 5.0)
            b.report(5, 1.0)
    assert energy.extra_j() == pytest.approx(0.0)
    assert edp.extra_j() == pytest.approx(50.0)


def test_a_missing_power_reading_does_not_blind_the_budget() -> None:
    b = Budget(0.0, 100.0, 0.0, Objective.ENERGY)
    b.tree(1.0, 0.1)
    b.power(0.0, 10.0)
    b.leave()
    b.power(5.0, None)
    b.report(10, 5.0)
    assert b.extra_j() == pytest.approx(50.0 - 10.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 200.0), st.integers(0, 50)), min_size=1, max_size=200),
    st.floats(0.0, 0.02),
    st.floats(0.5, 20.0),
)
def test_who_goes_back_when_exhausted_never_spends_more_than_the_limit_and_one_interval(
    trace: list[tuple[float, int]], share: float, seconds: float
) -> None:
    b = Budget(share, seconds, 0.0, Objective.ENERGY)
    b.tree(1.0, 0.1)
    b.power(0.0, 10.0)
    away, now = False, 0.0
    for watts, samples in trace:
        if not away and b.allowance_j > 0:
            b.leave()
            away = True
        now += 0.1
        b.power(now, watts)
        b.report(samples if away else 1, 0.1)
        assert b.spent_j <= b.limit_j + 0.1 * 200.0
        if b.exhausted:
            b.back()
            away = False


def answer(length: float) -> int:
    return 714 if length <= 53.0 else 816


def follow(lengths: Lengths, means: list[float], present: int) -> list[int]:
    went = []
    for k, mean in enumerate(means):
        for s in range(10):
            now = 10.0 * (10 * k + s)
            lengths.add(mean, 32)
            if (moved := lengths.due(now, present, answer)) is not None:
                present = moved[0]
                went.append(present)
    return went


def test_data_that_changed_for_good_moves_the_trees_answer_once() -> None:
    assert follow(Lengths(60.0, 0.1), [40.0] * 3 + [90.0] * 10, 714) == [816]


def test_a_length_near_the_threshold_moves_nothing() -> None:
    assert follow(Lengths(60.0, 0.1), [52.0, 54.0] * 30, 714) == []
    assert follow(Lengths(60.0, 0.1), [56.0] * 30, 714) == []


def test_one_odd_period_moves_nothing() -> None:
    means = [40.0] * 60
    lengths, went = Lengths(60.0, 0.1), []
    for k, mean in enumerate([*means, 90.0, *means]):
        lengths.add(mean, 32)
        if (moved := lengths.due(60.0 * k, 714, answer)) is not None:
            went.append(moved)
    assert went == []


def test_data_that_alternates_for_ever_makes_the_clock_follow_ever_more_rarely() -> None:
    means = ([40.0] * 3 + [90.0] * 3) * 100
    went = follow(Lengths(60.0, 0.1), means, 714)
    assert 0 < len(went) <= 10


def test_a_slowdown_limit_is_judged_by_what_was_measured_and_a_fit() -> None:
    log = Log(HZ, reference_time_s=1.0)
    assert log.fast_enough(2.0) == {1, 2}  # nothing measured: all of the time follows the clock
    log.add(1, Measured(1.0, 1.0, 1.1, 0.01))  # 0.8 host + 0.2 device at the top clock
    assert log.fast_enough(2.0) == {0, 1, 2}
    assert log.fast_enough(1.05) == {2}


def test_a_cap_rules_out_clocks_by_the_cube_of_the_clock_above_what_was_measured() -> None:
    log = Log(HZ)
    log.add(0, Measured(1.0, 4.0, 1.0, 0.01))
    assert log.within(4.5, 2) == {0}
    assert log.within(33.0, 2) == {0, 1}
    assert log.within(200.0, 1) == {0, 1}


BOARD = Board("AGX Orin", "R36.4", "MAXN", HZ)


def curve(hz: tuple[int, ...] = HZ, scale: float = 1.0, sd: float = 0.005) -> Curve:
    n = len(hz)
    energy = tuple(scale * h / 1e9 for h in hz)
    return Curve("AGX Orin", "w", 32, hz, energy, (None,) * n, tuple(1e9 / h for h in hz), (sd,) * n, hz[0], hz[0])


def test_a_curve_survives_its_file() -> None:
    assert Curve.from_json(json.loads(json.dumps(curve().to_json()))) == curve()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": "traingov.curve/2"}, "schema is"),
        ({"sd": [0.1]}, "sd has 1 values for 3 clocks"),
        ({"time_s": [1.0, -1.0, 1.0]}, "time_s must hold positive numbers"),
        ({"time_s": [1.0, None, 1.0]}, "must not hold null"),
        ({"gpu_frequencies_hz": [3, 2, 1]}, "ascending"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_curve_is_refused_with_what_is_wrong(change: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Curve.from_json({**curve().to_json(), **change})


def test_an_older_curve_gives_its_other_clocks_at_the_new_level_and_joining_again_changes_nothing() -> None:
    new = curve(HZ[:2], scale=2.0)
    joined = new.joined(curve())
    assert joined.gpu_frequencies_hz == HZ
    assert joined.compute_energy_j == pytest.approx((0.6, 1.2, 1.8))
    assert joined.sd[2] == OLD_SD
    again = new.joined(joined)
    assert again.compute_energy_j == pytest.approx(joined.compute_energy_j)
    assert again.sd == joined.sd


def test_curves_with_more_of_the_boards_clocks_are_learnt_from_first() -> None:
    one, three = curve(HZ[:1]), curve()
    assert most_alike([one, three], HZ)[0] is three
    assert len(most_alike([three] * 40, HZ)) == 12


def test_a_log_becomes_a_curve_with_the_errors_of_its_means() -> None:
    log = Log(HZ, 0.5)
    for energy in (1.0, 1.2):
        log.add(1, Measured(energy, None, 1.0, 0.01))
    made = log.curve(BOARD, "w", 8, tree=1, best=1, utilization=50.0)
    assert made.gpu_frequencies_hz == (HZ[1],)
    assert made.compute_energy_j == pytest.approx((1.1,))
    assert made.input_energy_j == (None,)
    assert made.sd[0] == pytest.approx(0.01 / math.sqrt(2))
