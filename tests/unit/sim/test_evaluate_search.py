"""The evaluation of the energy search: its rows, what it compares, and that absent data is said, not passed over."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from traingov_policies.search.prior import Known, PriorSettings, prior
from traingov_sim.evaluate import search as evaluation
from traingov_sim.evaluate import search_methods as methods
from traingov_sim.evaluate.commands.search import command
from traingov_sim.evaluate.search_data import MeasuredCurve

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


def needs(path: str) -> Path:
    if not (SHARED / path).exists():
        pytest.skip(f"measured data is absent: ../shared/data/{path}")
    return SHARED / path


def bowl(best: int, n: int = 11, depth: float = 0.5) -> MeasuredCurve:
    levels = np.linspace(0.2, 1.0, n)
    cost = np.exp(depth * np.log(levels / levels[best]) ** 2)
    return MeasuredCurve(f"job-{best}", best, levels, cost)


def test_absent_data_gives_a_row_that_says_so(tmp_path: Path) -> None:
    rows = evaluation.evaluate_search(1, tmp_path)
    assert [r["board"] for r in rows] == ["jetson-nano", "xavier-nx", "v100", "rtx6000"]
    assert all("is absent" in r["skipped"] and r["kind"] == "measured-data" for r in rows)
    assert "skipped: loudva/jetson_nano.csv is absent" in evaluation.table(rows)


def test_a_curve_knows_its_start_and_its_gaps() -> None:
    curve = bowl(7)
    assert curve.gap(7) == 0
    assert curve.gap(0) > 0.1
    assert curve.levels[curve.start] == pytest.approx(0.549, abs=0.05)
    assert np.allclose(np.log(curve.smoothed().cost_j), np.log(curve.cost_j), atol=1e-9)


def test_every_method_finds_the_bottom_of_a_clean_bowl() -> None:
    curve = bowl(7)

    def read(i: int) -> float:
        return float(np.log(curve.cost_j[i]))

    others = [Known(curve.u, np.log(bowl(k).cost_j), np.full(11, 0.01)) for k in (6, 7, 8)]
    belief = prior(curve.u, others, float(curve.u[curve.start]))
    found = [
        methods.exhaustive(read, 11),
        methods.golden_section(read, 11),
        methods.patience_descent(read, 11, curve.start),
        methods.searched(read, belief, curve.start, 0.02, 4, job_s=3600, loss_share=0.01, loss_s=5),
    ]
    assert all(curve.gap(f.index) < 0.003 for f in found)
    assert found[-1].probes <= 4
    assert found[-1].visited[0] == curve.start


def test_the_tally_of_ours_counts_gaps_probes_and_what_a_job_pays() -> None:
    curves = [bowl(k) for k in (6, 7, 8)]
    row = evaluation.ours(curves, 4, 4, PriorSettings()).row(11)
    assert (row["curves"], row["trials"]) == (3, 12)
    assert 0 <= row["mean_gap"] <= row["worst_curve_mean_gap"] < 0.05
    assert row["most_probes"] <= 4 < row["mean_readings"]
    assert row["job_over_start_worst"] >= row["job_over_start_mean"]


def test_the_curves_own_job_is_left_out_of_its_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[MeasuredCurve] = []
    real = evaluation._remembered
    monkeypatch.setattr(evaluation, "_remembered", lambda c, rng: seen.append(c) or real(c, rng))
    curves = [bowl(k) for k in (6, 7, 8)]
    evaluation.ours(curves[:2], 1, 0, PriorSettings())
    assert [c.job for c in seen] == ["job-7", "job-6"]


def test_settings_are_fixed_on_another_board_than_the_one_they_are_reported_on() -> None:
    for source in evaluation.SOURCES:
        assert source.tuned_on != source.name


def test_on_the_measured_nano_the_search_beats_the_start_and_the_noisy_sweep() -> None:
    path = needs("loudva/jetson_nano.csv")
    curves = evaluation.loudva(path)
    assert {len(c.levels) for c in curves} == {11}
    ours = evaluation.ours(curves, 10, 4, PriorSettings()).row(11)
    other = {name: tally.row(11) for name, tally in evaluation._others(curves, 10).items()}
    assert ours["mean_gap"] < other["noisy exhaustive"]["mean_gap"] < other["start alone"]["mean_gap"]
    assert ours["mean_gap"] < 0.006
    assert ours["worst_curve_mean_gap"] < 0.02


def test_zeus_curves_are_read_by_job_with_all_their_power_limits() -> None:
    curves = evaluation.zeus(needs("zeus/summary_power_v100.csv"))
    assert {len(c.levels) for c in curves} == {7}
    assert len({c.job for c in curves}) == 6


def test_the_command_prints_a_row_for_each_board_or_says_that_its_data_is_absent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = evaluation.evaluate_search(1, tmp_path)
    monkeypatch.setattr("traingov_sim.evaluate.commands.search.evaluate_search", lambda trials: rows)
    done = CliRunner().invoke(command, ["--json"])
    assert json.loads(done.output) == rows
    assert "rtx6000" in CliRunner().invoke(command, []).output
