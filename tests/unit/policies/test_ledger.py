"""What a job cost: energy, time above the cap, samples by batch."""

from __future__ import annotations

import pytest

from traingov_policies.events import CapChanged, JobEnded, JobRegistered, Sample, StepsReported
from traingov_policies.ledger import Ledger
from traingov_policies.values import Cap


def fill(ledger: Ledger, begin: float, seconds: float, watts: float | None) -> None:
    for k in range(round(seconds * 100) + 1):
        ledger.see(Sample(begin + k / 100, watts, None if watts is None else watts / 2))


def test_a_job_is_charged_from_registration_to_end_only() -> None:
    ledger = Ledger(0.01, Cap(4.5))
    fill(ledger, 0.0, 2.0, 9.0)
    ledger.see(JobRegistered(2.0, "j", "w", (8, 16), 8))
    fill(ledger, 2.0, 10.0, 4.0)
    ledger.see(StepsReported(11.0, "j", 8, 5, 40, 1.0))
    ledger.see(StepsReported(12.0, "j", 16, 2, 32, 1.0))
    ledger.see(JobEnded(12.0, "j", "end"))
    fill(ledger, 12.0, 5.0, 9.0)
    (summary,) = ledger.ended
    assert summary.input_energy_j == pytest.approx(40.0, rel=1e-6)
    assert summary.compute_energy_j == pytest.approx(20.0, rel=1e-6)
    assert summary.mean_input_power_w == pytest.approx(4.0)
    assert (summary.samples, summary.steps, summary.samples_by_batch) == (72, 7, {8: 40, 16: 32})
    assert summary.elapsed_s == pytest.approx(10.0)
    # the window still holds the nine watts from before the job for up to a second
    assert summary.above_cap_s <= 1.0
    assert not summary.shared


def test_time_above_the_cap_is_counted_over_changes_of_the_cap() -> None:
    ledger = Ledger(0.01, Cap(4.5))
    ledger.see(JobRegistered(0.0, "j", "w", (8,), 8))
    fill(ledger, 0.0, 5.0, 5.0)
    ledger.see(CapChanged(5.0, Cap(6.0)))
    fill(ledger, 5.01, 5.0, 5.0)
    ledger.see(CapChanged(10.01, Cap(4.0)))
    fill(ledger, 10.02, 5.0, 5.0)
    summary = ledger.summary("j", 15.02)
    # 0.8 s of the first window cannot be judged; later caps judge the window that is there
    assert summary.above_cap_s == pytest.approx((5.0 - 0.8) + 5.0, abs=0.1)
    assert summary.overshoot_j == pytest.approx((5.0 - 0.8) * 0.5 + 5.0 * 1.0, abs=0.2)


def test_a_cap_that_changes_all_the_time_is_judged_all_the_same() -> None:
    ledger = Ledger(0.01, Cap(4.5))
    ledger.see(JobRegistered(0.0, "j", "w", (8,), 8))
    for k in range(1000):
        if k % 5 == 0:
            ledger.see(CapChanged(k / 100, Cap(4.5 if k % 2 else 4.51)))
        ledger.see(Sample(k / 100, 6.0, 3.0))
    assert ledger.summary("j", 10.0).above_cap_s > 8.5


def test_a_reading_missing_now_and_then_does_not_blind_the_judgement() -> None:
    ledger = Ledger(0.01, Cap(4.5))
    ledger.see(JobRegistered(0.0, "j", "w", (8,), 8))
    for k in range(1000):
        ledger.see(Sample(k / 100, None if k % 8 == 0 else 6.0, None))
    summary = ledger.summary("j", 10.0)
    assert summary.above_cap_s > 8.5
    assert summary.missed >= 125


def test_a_gap_is_told_and_not_filled() -> None:
    ledger = Ledger(0.01, None)
    ledger.see(JobRegistered(0.0, "j", "w", (8,), 8))
    fill(ledger, 0.0, 1.0, 5.0)
    fill(ledger, 21.0, 1.0, 5.0)
    summary = ledger.summary("j", 22.0)
    assert summary.input_energy_j == pytest.approx(10.0, rel=1e-6)
    assert summary.gap_s == pytest.approx(20.0)
    assert summary.missed >= 1990


def test_jobs_that_ran_together_are_marked_shared() -> None:
    ledger = Ledger(0.01, None)
    ledger.see(JobRegistered(0.0, "a", "w", (8,), 8))
    ledger.see(JobRegistered(1.0, "b", "w", (8,), 8))
    assert all(summary.shared for summary in ledger.running(2.0))


def test_only_the_last_summaries_are_kept() -> None:
    ledger = Ledger(0.01, None, keep=3)
    for k in range(10):
        ledger.see(JobRegistered(float(k), f"j{k}", "w", (8,), 8))
        ledger.see(JobEnded(k + 0.5, f"j{k}"))
    assert [s.job for s in ledger.ended] == ["j7", "j8", "j9"]
