"""The measurements of drift detection: their noise is what it says, their figures are counted right."""

from __future__ import annotations

import numpy as np
import pytest

from traingov_policies.drift.settings import DriftSettings
from traingov_sim.evaluate.drift_detector import clean_hours, delays
from traingov_sim.evaluate.drift_noise import Jobs, Noise
from traingov_sim.evaluate.drift_partial import SHAPES, partial_figures
from traingov_sim.evaluate.drift_probing import probing_figures

BARE = Noise(size_sd=0.0, bias=0.0, wander_sd=0.0, tide=0.0, stalls_a_second=0.0, missing=0.0, pauses_a_second=0.0)


def test_the_noise_has_the_size_and_the_correlation_that_the_targets_name() -> None:
    jobs = Jobs(400, BARE, np.random.default_rng(1))
    x = np.array([jobs.second()[0] for _ in range(400)])[50:]
    assert np.std(x) == pytest.approx(0.01, rel=0.03)
    assert float(np.mean(x[1:] * x[:-1]) / np.mean(x * x)) == pytest.approx(0.70, abs=0.02)


def test_the_full_noise_has_stalls_missing_seconds_and_a_bias() -> None:
    jobs = Jobs(300, Noise(), np.random.default_rng(2))
    x = np.array([jobs.second()[0] for _ in range(600)])
    assert 0.001 < np.isnan(x).mean() < 0.02
    assert 0.002 < (x > 0.2).mean() < 0.01
    medians = np.abs(np.nanmedian(x, axis=0))
    assert 0.007 < float(np.median(medians)) < 0.014


def test_a_threshold_that_is_too_low_gives_false_alarms_and_they_are_counted() -> None:
    found = clean_hours(12, DriftSettings(), Noise(), seed=3, threshold=4.0)
    assert found["hours"] == 12.0
    assert found["false_alarms"] > 20
    assert found["per_1000_h"] == pytest.approx(1000 * found["false_alarms"] / 12)
    assert clean_hours(12, DriftSettings(), Noise(), seed=3)["false_alarms"] == 0


def test_delays_are_shorter_for_larger_shifts() -> None:
    small, large = (delays(60, DriftSettings(), Noise(), 4, size=s) for s in (0.05, 0.10))
    assert large["mean_s"] < small["mean_s"] < 35
    assert small["missed"] == 0


def test_figures_of_probing_and_partial_re_profiling_have_what_the_reports_read() -> None:
    partial = partial_figures(cases=2, seed=5)
    assert set(partial["shapes"]) == set(SHAPES)
    assert all(shape["share"]["largest"] <= 0.15 for shape in partial["shapes"].values() if shape["share"])
    probing = probing_figures(cases=2, seed=6)
    assert [row["budget"] for row in probing["budgets"]][2] == 0.005
