"""The evaluation of profiling counts what it says it counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traingov_policies.relation import RelationVector
from traingov_policies.values import Objective, OperatingPoint
from traingov_sim.evaluate import profiling_run as run
from traingov_sim.evaluate.profiling import evaluate_profiling, measured_rows
from traingov_sim.surfaces import CLOCKS_HZ

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
NANO = run.virtual_table("nano", "mobilenetv2", (153_600_000, 307_200_000, 460_800_000, 614_400_000))


@pytest.mark.parametrize("plan", run.PLANS)
def test_without_noise_every_plan_finds_the_best_point_of_a_smooth_surface(plan: str) -> None:
    for relation in run.relation_vectors(NANO.batch_sizes):
        outcome = run.profile(run.Case(NANO, relation, 4.5), plan, 0.0, 1)
        assert outcome is not None
        assert (outcome.same, outcome.loss, outcome.violates) == (True, 0.0, False)


def test_the_full_plan_measures_every_point_and_the_adaptive_one_at_most_twelve() -> None:
    points = {plan: run.profile(run.Case(NANO, None, 4.5), plan, 0.01, 1).points for plan in run.PLANS}
    assert points["full"] == NANO.time_s.size
    assert points["adaptive"] <= 12
    assert points["adaptive"] < points["staircase"] < points["full"]


def test_gross_and_net_add_up_by_hand_for_a_table_of_one_point() -> None:
    one = run.Table("one", (8,), (100_000_000,), np.array([[512.0]]), np.array([[3.0]]), np.array([[3.0]]))
    outcome = run.profile(run.Case(one, None, None), "full", 0.0, 1)
    assert outcome is not None
    # A step takes 1 s: half a batch change's second, settling, half a step that straddles, two steps for 1.2 s.
    assert outcome.gross_s == pytest.approx(0.5 + 1.0 + 0.5 + 2.0)
    assert outcome.net_s == pytest.approx(0.5)  # the rest was training at the best point


def test_a_switch_waits_for_the_step_under_way_and_staying_costs_nothing() -> None:
    here, there = OperatingPoint(8, 200_000_000), OperatingPoint(16, 100_000_000)
    assert run._switch(here, here, 5.0) == (0.0, 0.0)
    assert run._switch(OperatingPoint(8, 300_000_000), here, 4.0) == (run.SETTLE_S + 2.0, 0.0)
    assert run._switch(there, here, 9.0) == (run.SETTLE_S, run.BATCH_CHANGE_S)
    assert run._switch(here, there, 9.0) == (9.0, run.BATCH_CHANGE_S)


def test_a_point_above_the_cap_is_no_gain_and_a_cap_below_every_point_is_no_case() -> None:
    outcome = run.profile(run.Case(NANO, None, 3.9), "full", 0.0, 1)
    assert outcome is not None
    assert 0 <= outcome.net_s <= outcome.gross_s
    assert run.profile(run.Case(NANO, None, 1.0), "full", 0.0, 1) is None


def test_the_objective_and_the_relation_decide_what_is_best() -> None:
    table = run.virtual_table("nano", "mobilenetv2", CLOCKS_HZ["nano"])
    steep = RelationVector("w", table.batch_sizes, tuple(b / table.batch_sizes[-1] for b in table.batch_sizes))
    chosen = set()
    for relation in (None, steep):
        for objective in Objective:
            case = run.Case(table, relation, None, objective)
            truth = run._truth(case)
            chosen.add(np.unravel_index(int(np.argmin(truth)), truth.shape))
            assert run.profile(case, "full", 0.0, 1).same
    assert len(chosen) >= 3


def test_rows_say_what_they_rest_on_and_what_is_absent(tmp_path: Path) -> None:
    rows = list(measured_rows(tmp_path, [Objective.TIME], 1, 1))
    assert [(row["kind"], row["surface"]) for row in rows] == [
        ("measured-data", "loudva/nano"),
        ("measured-data", "loudva/xavier-nx"),
    ]
    assert all("is not there" in row["absent"] for row in rows)


@pytest.mark.skipif(not (DATA / "loudva").is_dir(), reason="../shared/data/loudva is not there")
def test_on_measured_tables_few_points_mostly_give_the_full_tables_choice() -> None:
    """Noise-free, raw cells, powers of two and all clocks; the whole figure comes from the evaluation."""
    same = cases = 0
    for name in run.LOUDVA.values():
        whole = run.measured_table(DATA / "loudva" / name)
        table = whole.part([b for b in whole.batch_sizes if b & (b - 1) == 0], whole.clocks_hz)
        low, high = float(table.peak_w.min()), float(table.peak_w.max())
        for relation in run.relation_vectors(table.batch_sizes):
            for share in (0.2, 0.4, 0.6, 0.8):
                outcome = run.profile(run.Case(table, relation, low + share * (high - low)), "adaptive", 0.0, 1)
                assert outcome is not None
                assert outcome.points <= 12
                assert not outcome.violates
                same += outcome.same
                cases += 1
    assert same >= 0.85 * cases


@pytest.mark.slow
def test_the_whole_evaluation_has_a_row_for_every_plan_noise_and_kind() -> None:
    rows = evaluate_profiling(DATA, quick=True)
    assert {row["kind"] for row in rows} == {"measured-data", "predicted"}
    virtual = [row for row in rows if row["surface"] == "virtual boards"]
    assert {(row["plan"], row["noise"]) for row in virtual} >= {(p, n) for p in run.PLANS for n in run.NOISES}
    adaptive = [row for row in virtual if row["plan"] == "adaptive"]
    assert all(row["points_most"] <= 12 and row["long_gross_share_mean"] < 0.005 for row in adaptive)
