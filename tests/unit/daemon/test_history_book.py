"""The loop's account of each run: points, caps and choices from the same events as the governor's."""

from __future__ import annotations

import pytest

from traingov.history.book import Book
from traingov.history.records import Run
from traingov.history.trail import MOST_SPANS
from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.ledger import Ledger
from traingov_policies.values import Board, Cap, Objective, OperatingPoint, PolicyName

BOARD = Board("nano", "R32.7.4", "MAXN", (100, 200))


class Desk:
    """Feeds ledger and book as the loop does; the wall clock may jump, durations must not."""

    def __init__(self, cap: Cap | None = None) -> None:
        self.ledger = Ledger(0.01, cap)
        self.wall_s = 1_000.0
        self.runs: list[Run] = []
        self.book = Book(self.ledger, PolicyName.JOINT, Objective.TIME, cap, lambda: self.wall_s)

    def feed(self, event: ev.Event, *answer: act.Action) -> None:
        self.ledger.see(event)
        if isinstance(event, ev.JobRegistered):
            self.book.registered(event, f"{event.job}-sig", BOARD)
        elif isinstance(event, ev.Sample):
            self.book.sample(event)
        elif isinstance(event, ev.JobEnded):
            self.runs += [run] if (run := self.book.ended(event)) is not None else []
        else:
            self.book.see(event)
        self.book.carry_out(answer, event.t_s)

    def sample(self, start_s: float, end_s: float, power_w: float | None, compute_w: float | None = None) -> None:
        """Readings every 10 ms from ``start_s`` to ``end_s``."""
        for n in range(round((end_s - start_s) * 100) + 1):
            self.feed(ev.Sample(start_s + n / 100, power_w, compute_w))


def registered(desk: Desk, job: str = "j", t_s: float = 0.0, **more: object) -> None:
    desk.feed(ev.JobRegistered(t_s, job, "w", (8, 32), 32, **more))  # type: ignore[arg-type]


def test_time_energy_and_work_go_to_the_point_that_was_in_use() -> None:
    desk = Desk()
    registered(desk)
    desk.sample(0.0, 1.0, 4.0, 2.0)
    desk.feed(ev.Tick(1.0), act.SetGpuBounds(100, 100, "x"))
    desk.feed(ev.KnobReadBack(1.0, 100, 100, 100, 100))
    desk.sample(1.01, 3.0, 2.0, 1.0)
    desk.feed(ev.StepsReported(3.0, "j", 32, 4, 128, 1.9))
    desk.feed(ev.BatchApplied(3.0, "j", 8))
    desk.sample(3.01, 4.0, 2.0, 1.0)
    desk.feed(ev.StepsReported(4.0, "j", 8, 5, 40, 0.9))
    run = desk.book.record("j", 4.0)
    by_point = {(p.batch_size, p.gpu_frequency_hz): p for p in run.points}
    assert list(by_point) == [(32, None), (32, 100), (8, 100)]
    assert [p.time_s for p in run.points] == [pytest.approx(1), pytest.approx(2), pytest.approx(1)]
    assert [p.samples for p in run.points] == [0, 128, 40]
    assert by_point[32, None].input_energy_j == pytest.approx(4.0, rel=0.02)
    assert by_point[32, 100].compute_energy_j == pytest.approx(2.0, rel=0.02)
    assert sum(p.input_energy_j or 0 for p in run.points) == pytest.approx(run.input_energy_j)
    assert (run.samples, run.steps, run.signature) == (168, 9, "j-sig")


def test_a_board_without_a_power_sensor_has_no_energy_rather_than_none_used() -> None:
    desk = Desk()
    registered(desk)
    desk.sample(0.0, 1.0, None)
    run = desk.book.record("j", 1.0)
    assert (run.input_energy_j, run.compute_energy_j) == (None, None)
    assert all(p.input_energy_j is None for p in run.points)


def test_a_clock_that_is_not_ours_counts_as_the_boards_own_governor() -> None:
    desk = Desk()
    registered(desk)
    desk.feed(ev.KnobReadBack(1.0, None, None, 100, 200))  # a look, before anything was written
    desk.feed(ev.Tick(2.0), act.SetGpuBounds(200, 200, "x"))
    desk.feed(ev.KnobReadBack(2.0, 200, 200, 200, 200))
    desk.feed(ev.Tick(3.0), act.RestoreGpuBounds("over"))
    desk.feed(ev.KnobReadBack(4.0, None, None, 100, 200))
    times = {p.gpu_frequency_hz: p.time_s for p in desk.book.record("j", 5.0).points}
    assert times == {None: pytest.approx(4.0), 200: pytest.approx(1.0)}


def test_a_wall_clock_that_jumps_changes_no_duration() -> None:
    desk = Desk()
    registered(desk, t_s=10.0)
    desk.wall_s -= 86_400.0
    desk.feed(ev.JobEnded(15.0, "j", "end"))
    [run] = desk.runs
    assert (run.elapsed_s, run.started_s, run.ended_s) == (pytest.approx(5.0), 1_000.0, -85_400.0)


def test_caps_and_policies_that_change_are_in_the_record() -> None:
    desk = Desk(Cap(7.0))
    registered(desk)
    desk.feed(ev.CapChanged(1.0, Cap(5.0, 2.0), "uid 0"))
    desk.feed(ev.CapChanged(2.0, None, "uid 0"))
    desk.feed(ev.PolicyChanged(2.0, PolicyName.ENERGY, Objective.EDP))
    run = desk.book.record("j", 3.0)
    assert [(c.power_w, c.window_s, c.source) for c in run.caps] == [
        (7.0, 1.0, "configuration"), (5.0, 2.0, "uid 0"), (None, None, "uid 0"),
    ]  # fmt: skip
    assert (run.policy, run.objective) == ("energy", "edp")


def test_decisions_of_the_job_and_of_the_board_are_its_own_and_guard_steps_are_counted() -> None:
    desk = Desk()
    registered(desk)
    registered(desk, "k")
    chosen = act.Decided("j", "joint", "batch 8", OperatingPoint(8, 100))
    desk.feed(ev.Tick(1.0), chosen, act.Decided("k", "joint", "k's"), act.Decided(None, "guard-down", "to 100"))
    run = desk.book.record("j", 2.0)
    assert [(c.number, c.kind, c.batch_size) for c in run.choices] == [(1, "joint", 8), (2, "guard-down", None)]
    assert run.guard_steps == 1
    assert run.shared


def test_a_guard_that_works_all_day_does_not_fill_the_memory() -> None:
    desk = Desk()
    registered(desk)
    for n in range(2000):
        desk.feed(ev.Tick(float(n)), act.Decided(None, "guard-down", f"step {n}"))
    run = desk.book.record("j", 2001.0)
    assert len(run.choices) == 500
    assert (run.choices[-1].number, run.choices[-1].text, run.guard_steps) == (2000, "step 1999", 2000)


def test_the_speed_is_that_of_the_newest_windows() -> None:
    desk = Desk()
    registered(desk)
    assert desk.book.samples_per_s("j", 0.0) is None
    desk.feed(ev.StepsReported(1.0, "j", 32, 10, 320, 1.0))
    desk.feed(ev.StepsReported(50.0, "j", 32, 10, 320, 2.0))
    assert desk.book.samples_per_s("j", 51.0) == pytest.approx(160.0)
    assert desk.book.samples_per_s("j", 200.0) is None


def test_time_and_energy_of_an_idle_span_go_to_no_point() -> None:
    desk = Desk()
    registered(desk)
    desk.sample(0.0, 1.0, 4.0)
    desk.feed(ev.Tick(1.0), act.JobIdle("j", True, "evaluation"))
    desk.sample(1.01, 3.0, 1.0)
    desk.feed(ev.StepsReported(3.0, "j", 32, 4, 128, 0.1), act.JobIdle("j", False))
    desk.sample(3.01, 4.0, 4.0)
    (point,) = desk.book.record("j", 4.0).points
    assert point.time_s == pytest.approx(2)
    assert point.samples == 128
    assert point.input_energy_j == pytest.approx(8.0, rel=0.02)


def test_the_timeline_holds_each_second_with_its_least_mean_and_largest_reading() -> None:
    desk = Desk(Cap(5.0))
    registered(desk)
    for n in range(201):  # 3 W and 5 W in turn for a second, then 4 W
        desk.feed(
            ev.Sample(n / 100, (3.0 if n % 2 else 5.0) if n < 100 else 4.0, gpu_frequency_hz=100 if n < 150 else 200)
        )
    run = desk.book.record("j", 2.0)
    assert [(s.start_s, s.readings) for s in run.spans] == [(0.0, 100), (1.0, 100)]
    first, second = run.spans
    assert (first.least_w, first.power_w, first.most_w) == (3.0, pytest.approx(4.0), 5.0)
    assert (second.least_w, second.most_w) == (4.0, 4.0)
    assert (second.low_hz, second.high_hz) == (100, 200)
    assert second.window_w == pytest.approx(4.0, abs=0.05)
    assert {s.cap_w for s in run.spans} == {5.0}


def test_a_silence_is_a_stretch_without_power_and_not_a_long_second() -> None:
    desk = Desk()
    registered(desk)
    desk.sample(0.0, 0.5, 4.0)
    desk.sample(60.0, 61.5, 4.0)
    spans = desk.book.record("j", 61.5).spans
    assert [(s.start_s, s.width_s, s.readings > 0) for s in spans] == [
        (0.0, 1.0, True), (1.0, 59.0, False), (60.0, pytest.approx(1.0), True),
    ]  # fmt: skip
    assert (spans[1].power_w, spans[1].most_w) == (None, None)


def test_a_day_of_seconds_becomes_few_stretches_that_keep_every_peak() -> None:
    desk = Desk()
    registered(desk)
    for n in range(86_400):
        desk.feed(ev.Sample(n + 0.5, 9.0 if n in (12_345, 80_000) else 4.0))
    desk.feed(ev.JobEnded(86_400.0, "j"))
    run = desk.runs[-1]
    assert MOST_SPANS // 2 <= len(run.spans) < MOST_SPANS
    assert sum(s.most_w == 9.0 for s in run.spans) == 2
    assert sum(s.width_s for s in run.spans) == pytest.approx(86_400, abs=2)
    assert sum(s.readings for s in run.spans) == 86_400
    assert max(s.width_s for s in run.spans) < 130


def test_conditions_are_kept_and_one_that_held_before_a_job_is_told_at_its_beginning() -> None:
    desk = Desk()
    desk.feed(ev.Tick(0.0), act.RaiseCondition("no-table", "why"))
    registered(desk, t_s=1.0)
    desk.wall_s = 1_002.0
    desk.feed(ev.Tick(2.0), act.ClearCondition("no-table"))
    notices = desk.book.record("j", 3.0).notices
    assert [(n.at_s, n.name, n.text) for n in notices] == [(1_000.0, "no-table", "why"), (1_002.0, "no-table", None)]
