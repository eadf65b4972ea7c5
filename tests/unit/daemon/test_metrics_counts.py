"""What is counted, and that no label grows without bound."""

from __future__ import annotations

import random
from dataclasses import replace

from traingov.metrics.counts import JOB_METRICS, JOBS_KEPT, OTHER, Counts, JobTotals, Kept, Tally, totals_of
from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.ledger import JobSummary, Ledger


def summary(job: str, samples: int = 10) -> JobSummary:
    ledger = Ledger(0.01, None)
    ledger.see(ev.JobRegistered(0.0, job, job, (8,), 8))
    ledger.see(ev.StepsReported(1.0, job, 8, 1, samples, 1.0))
    return ledger.summary(job, 2.0)


def samples_of(totals: dict[str, list[float]]) -> dict[str, float]:
    at = list(JOB_METRICS).index("traingov_job_samples_total")
    return {job: row[at] for job, row in totals.items()}


def test_twenty_jobs_have_names_and_the_longest_ended_makes_room() -> None:
    jobs = JobTotals()
    for number in range(JOBS_KEPT):
        jobs.registered(f"job-{number}")
        jobs.ended(summary(f"job-{number}", number + 1))
    jobs.registered("late")
    shown = samples_of(jobs.by_job([summary("late", 500)]))
    assert "job-0" not in shown
    assert (shown["job-1"], shown["late"], shown[OTHER]) == (2, 500, 1)
    assert len(shown) == JOBS_KEPT + 1


def test_a_job_beyond_the_bound_is_counted_as_other_from_first_to_last() -> None:
    jobs = JobTotals(most=2)
    for name in ("a", "b", "c"):
        jobs.registered(name)
    running = [summary("a", 1), summary("b", 2), summary("c", 4)]
    assert samples_of(jobs.by_job(running)) == {"a": 1, "b": 2, OTHER: 4}
    jobs.ended(summary("c", 7))
    assert samples_of(jobs.by_job(running[:2])) == {"a": 1, "b": 2, OTHER: 7}
    assert not jobs.shows("c")


def test_a_name_used_again_goes_on_from_where_it_was() -> None:
    jobs = JobTotals()
    jobs.registered("net")
    jobs.ended(summary("net", 30))
    jobs.registered("net")
    assert samples_of(jobs.by_job([summary("net", 5)])) == {"net": 35}
    jobs.ended(summary("net", 6))
    assert samples_of(jobs.by_job([])) == {"net": 36}


def test_a_job_called_other_and_the_others_share_a_label_once() -> None:
    jobs = JobTotals(most=1)
    jobs.registered(OTHER)
    jobs.registered("b")
    assert samples_of(jobs.by_job([summary(OTHER, 3), summary("b", 4)])) == {OTHER: 7}


def test_no_total_over_all_labels_ever_falls_whatever_comes_and_goes() -> None:
    source = random.Random(4)
    jobs, running, last, names = JobTotals(most=4), {}, 0.0, [f"n{i}" for i in range(9)]
    for _ in range(2000):
        name = source.choice(names)
        if name not in running:
            jobs.registered(name)
            running[name] = 0
        elif source.random() < 0.4:
            jobs.ended(summary(name, running.pop(name)))
        else:
            running[name] += source.randrange(1, 9)
        shown = jobs.by_job([summary(n, s) for n, s in running.items()])
        assert len(shown) <= 5
        total = sum(samples_of(shown).values())
        assert total >= last
        last = total


def test_a_part_of_the_energy_that_is_revised_downwards_waits_instead_of_falling() -> None:
    jobs = JobTotals()
    jobs.registered("net")
    for energy_j, shown_j in ((100.0, 100.0), (60.0, 100.0), (130.0, 130.0)):
        running = replace(summary("net"), input_energy_j=energy_j)
        assert jobs.by_job([running])["net"][0] == shown_j
    jobs.ended(replace(summary("net"), input_energy_j=120.0))
    assert jobs.by_job([])["net"][0] == 130.0
    jobs.registered("net")  # a new job of the name begins from its own 0
    assert jobs.by_job([replace(summary("net"), input_energy_j=1.0)])["net"][0] == 131.0


def test_tallies_and_zones_are_bounded() -> None:
    tally, zones = Tally(), Kept(most=2)
    for number in range(1000):
        tally.count(f"kind-{number}")
    assert len(tally) == 65
    assert tally[OTHER] == 1000 - 64
    assert [zones.has(name) for name in ("a", "b", "c", "a")] == [True, True, False, True]


def counted() -> tuple[Counts, Ledger]:
    ledger = Ledger(0.01, None)
    return Counts(ledger), ledger


def test_the_loops_events_and_actions_are_counted() -> None:
    counts, ledger = counted()
    events: list[ev.Event] = [
        ev.JobRegistered(1.0, "net", "net", (8, 16), 8),
        ev.StepsReported(2.0, "net", 8, 5, 40, 1.0),
        ev.KnobReadBack(2.5, 1, 1, 300, 400),
        ev.JobEnded(3.0, "net", "exited"),
    ]
    for event in events:
        ledger.see(event)
        counts.see(event)
    assert (counts.jobs_registered, counts.jobs_ended) == (1, {"exited": 1})
    assert counts.jobs.by_job([])["net"] == totals_of(replace(ledger.ended[0]))
    assert counts.bounds == events[2]
    for kind in ("guard-down", "guard-down", "guard-up", "joint"):
        counts.carried_out(act.Decided(None, kind, "text"))
    counts.carried_out(act.RaiseCondition("foreign-writer", "text"))
    counts.carried_out(act.RestoreGpuBounds("the job ended"))
    assert counts.guard_steps == {"up": 1, "down": 2}
    assert counts.conditions == {"foreign-writer": 1}
    assert counts.bounds is None
    for source in ("file /run/cap.json", "command, uid 0", "schedule 22:00"):
        counts.see(ev.CapChanged(4.0, None, source))
        assert counts.cap_source == source.replace(",", " ").split()[0]
    counts.see(ev.CapChanged(4.0, None, "uid 4711"))
    assert counts.cap_source == OTHER
    counts.see(ev.OverCurrentCounted(5.0, (("oc1", 3), ("oc3", 1))))
    counts.see(ev.OverCurrentCounted(6.0, (("oc1", 2),)))
    assert counts.over_current == {"oc1": 5, "oc3": 1}
    for error, notes in ((None, ()), (None, ("snapped",)), ("refused", ("snapped",))):
        counts.written(error, notes)
    assert counts.knob_writes == {"taken": 1, "snapped": 1, "refused": 1}


def test_lag_and_interval_of_samples_are_counted_and_a_pause_is_no_interval() -> None:
    counts, _ = counted()
    for t_s in (100.0, 100.01, 100.02, 500.0):
        counts.sampled(t_s, t_s + 0.0002)
    assert counts.lag.counts[1] == 4
    assert sum(counts.interval.counts) == 2
