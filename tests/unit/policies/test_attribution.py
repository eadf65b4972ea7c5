"""Whose energy it was: parts follow the work, and add up to the board's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.actions import JobIdle
from traingov_policies.attribution import split
from traingov_policies.events import JobEnded, JobRegistered, Sample, StepsReported
from traingov_policies.ledger import Ledger
from traingov_policies.lut import Cell, Lut
from traingov_policies.values import OperatingPoint


def fill(ledger: Ledger, begin: float, seconds: float, watts: float) -> None:
    for k in range(round(seconds * 100) + 1):
        ledger.see(Sample(begin + k / 100, watts, watts / 2))


def test_the_idle_boards_energy_is_split_equally_and_the_rest_by_work() -> None:
    assert split(100.0, 20.0, {"a": 3.0, "b": 1.0}) == {"a": 10 + 60, "b": 10 + 20}
    assert split(100.0, 20.0, {"a": 3.0, "b": 0.0}) == {"a": 90, "b": 10}


def test_without_a_known_sample_time_the_jobs_that_worked_get_equal_parts_and_none_at_work_all_do() -> None:
    assert split(90.0, 0.0, {"a": None, "b": 1.0, "c": 0.0}) == {"a": 45, "b": 45, "c": 0}
    assert split(90.0, 30.0, {"a": 0.0, "b": 0.0, "c": 0.0}) == {"a": 30, "b": 30, "c": 30}
    assert split(5.0, 0.0, {}) == {}


def test_idle_energy_never_exceeds_what_there_was() -> None:
    assert split(10.0, 50.0, {"a": 1.0, "b": 0.0}) == {"a": 5, "b": 5}


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.none() | st.floats(0, 1e6), min_size=1, max_size=6),
)
def test_parts_add_up_and_none_is_negative(energy_j: float, idle_j: float, work: dict[str, float | None]) -> None:
    parts = split(energy_j, idle_j, work)
    assert math.fsum(parts.values()) == pytest.approx(energy_j, rel=1e-12, abs=1e-9)
    assert min(parts.values()) >= -1e-9 * max(1.0, energy_j)


def test_jobs_parts_add_up_to_the_boards_energy_over_registrations_pauses_and_ends() -> None:
    ledger = Ledger(0.01, None)
    ledger.see(JobRegistered(0.0, "a", "w", (8,), 8))
    fill(ledger, 0.0, 3.0, 4.0)
    ledger.see(StepsReported(3.0, "a", 8, 10, 80, 3.0))
    ledger.see(JobRegistered(3.0, "b", "w", (8,), 8))
    fill(ledger, 3.0, 5.0, 7.0)
    ledger.see(StepsReported(8.0, "a", 8, 10, 80, 5.0))
    ledger.see(StepsReported(8.0, "b", 8, 5, 40, 5.0))
    ledger.act(JobIdle("a", True))
    fill(ledger, 8.0, 5.0, 5.0)
    ledger.see(StepsReported(13.0, "b", 8, 5, 40, 5.0))
    ledger.see(JobRegistered(13.0, "c", "v", (8,), 8))
    fill(ledger, 13.0, 2.0, 6.0)
    ledger.see(JobEnded(15.0, "a"))
    fill(ledger, 15.0, 2.0, 6.0)
    total = math.fsum(s.input_energy_j for s in (*ledger.ended, *ledger.running(17.0)))
    assert total == pytest.approx(ledger.input.energy_j, rel=1e-12)
    compute = math.fsum(s.compute_energy_j for s in (*ledger.ended, *ledger.running(17.0)))
    assert compute == pytest.approx(ledger.compute.energy_j, rel=1e-12)


def test_work_counts_by_the_time_a_sample_takes_the_job_alone() -> None:
    ledger = Ledger(0.01, None)
    # A board that idles at 2 W is seen before, so that its part is known.
    fill(ledger, 0.0, 5.0, 2.0)
    ledger.see(JobRegistered(5.0, "a", "w", (8,), 8))
    fill(ledger, 5.0, 5.0, 6.0)
    ledger.see(StepsReported(10.0, "a", 8, 50, 400, 5.0))  # alone: 12.5 ms a sample
    table = Lut.empty("nano", "v", 1000, (8,), (100, 200))
    table = table.with_cell(OperatingPoint(8, 100), Cell(99.0, 3.0, 3.0, "measured"))
    table = table.with_cell(OperatingPoint(8, 200), Cell(25.0, 5.0, 5.0, "measured"))  # 25 ms a sample at the top
    ledger.see(JobRegistered(10.0, "b", "v", (8,), 8, lut=table))
    fill(ledger, 10.0, 10.0, 8.0)
    ledger.see(StepsReported(20.0, "a", 8, 30, 240, 10.0))  # 3 s of work
    ledger.see(StepsReported(20.0, "b", 8, 30, 240, 10.0))  # 6 s of work
    a, b = ledger.running(20.0)
    above_j = (8.0 - 2.0) * 10
    assert a.input_energy_j == pytest.approx(6.0 * 5 + 10 + above_j / 3, rel=1e-3)
    assert b.input_energy_j == pytest.approx(10 + above_j * 2 / 3, rel=1e-3)
    assert (a.attributed_by, b.attributed_by, a.shared_s, b.shared_s) == ("steps", "steps", 10.0, 10.0)


def test_a_report_that_began_before_the_other_job_came_counts_with_its_part_only() -> None:
    ledger = Ledger(0.01, None)
    ledger.see(JobRegistered(0.0, "a", "w", (8,), 8))
    ledger.see(StepsReported(1.0, "a", 8, 1, 8, 1.0))
    fill(ledger, 1.0, 9.0, 5.0)
    ledger.see(JobRegistered(10.0, "b", "w", (8,), 8))
    ledger.see(StepsReported(10.0, "b", 8, 1, 8, 0.0))
    fill(ledger, 10.0, 1.0, 5.0)
    ledger.see(StepsReported(11.0, "a", 8, 10, 80, 10.0))
    account = ledger._accounts["a"]
    assert account.work.seconds() == pytest.approx(8 * 0.125)
