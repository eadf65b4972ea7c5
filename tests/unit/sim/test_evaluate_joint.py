from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.select import select
from traingov_sim.board.boardspec import load_board
from traingov_sim.cli import main
from traingov_sim.evaluate import convergence, joint, published_table, regret, training
from traingov_sim.evaluate.boards import Exact, relation_of
from traingov_sim.evaluate.statistics import distribution, quantile_of
from traingov_sim.surface import peak_power_w, step_time_s
from traingov_sim.surfaces import NANO_TICKED_HZ, load
from traingov_sim.surfaces.family import FAMILIES, hash_of, load_family
from traingov_sim.surfaces.published import BATCHES, CAPS_W, ROWS, calibration_row, row

RESNET = BATCHES["resnet18"]
SVHN = row("nano", "resnet18", "SVHN")
CINIC = row("nano", "resnet18", "CINIC")


@pytest.mark.parametrize(("board", "workload"), FAMILIES)
def test_every_member_of_a_family_meets_every_published_cell_and_safe_clock_within_tolerance(
    board: str, workload: str
) -> None:
    family = load_family(board, workload)
    assert len(family) >= 100
    batches, r = BATCHES[workload], calibration_row(board, workload)
    for m in range(0, len(family), 7):
        surface = family.surface(m)
        for b, cells in ((batches.baseline1, r.baseline1), (batches.baseline2, r.baseline2)):
            seconds = np.array([step_time_s(surface, b, hz) / b for hz in family.baseline_hz[m]])
            n = np.array([c for c in cells if c is not None]) / seconds
            assert n.max() / n.min() < 1.09  # one N serves the three cells: each off by 2 % at most, or its spread
        for hz, cap in zip(family.baseline_hz[m][:2], (4.5, 7.0), strict=True):
            for b in batches.sizes:
                assert peak_power_w(surface, b, hz) < cap + 0.1


def test_a_family_s_hash_covers_its_members() -> None:
    data = {"names": ["a"], "members": [[1.0]], "baseline_hz": [[1, 2, 3]]}
    assert hash_of(data) != hash_of({**data, "members": [[1.000001]]})
    assert hash_of(data) != hash_of({**data, "baseline_hz": [[1, 2, 4]]})


def test_members_disagree_about_the_joint_cells_more_than_about_the_fitted_ones() -> None:
    result = published_table.evaluate_row(SVHN, "six")
    spread = {what: float(np.std(np.log(v[:, 1]))) for what, v in result.seconds.items()}
    assert spread["joint"] > 3 * spread["baseline1"]


@given(seed=st.integers(0, 10_000), low=st.floats(1.0, 3.0))
@settings(max_examples=30, deadline=None)
def test_sampled_n_keeps_the_known_ones_and_its_bounds_and_the_proxy_prefers_baseline_2(seed: int, low: float) -> None:
    draws = 20
    n1, n2 = np.full(draws, 5.0), np.full(draws, low)
    drawn = convergence.draw(RESNET, n1, n2, np.random.default_rng(seed))
    first, second = RESNET.sizes.index(RESNET.baseline1), RESNET.sizes.index(RESNET.baseline2)
    np.testing.assert_allclose(drawn.samples[:, first], n1)
    np.testing.assert_allclose(drawn.samples[:, second], n2)
    assert (drawn.samples >= convergence.SLACK * n2[:, None] * (1 - 1e-12)).all()
    assert (drawn.proxy.argmin(axis=1) == second).all()


def test_figure_2_pins_n_of_batch_32() -> None:
    n = np.full(200, 10.0)
    drawn = convergence.draw(RESNET, 1.6 * n, n, np.random.default_rng(1), figure2=True)
    third = drawn.samples[:, RESNET.sizes.index(32)]
    assert third.mean() == pytest.approx(15.0, rel=0.02)
    assert third.std() < 1.0


@given(seed=st.integers(0, 1000), member=st.integers(0, 99), cap=st.sampled_from(CAPS_W))
@settings(max_examples=60, deadline=None)
def test_with_a_noiseless_table_and_true_r_the_choice_is_exactly_the_exhaustive_best(
    seed: int, member: int, cap: float | None
) -> None:
    exact = Exact.of(load_family("nano", "transformer"), NANO_TICKED_HZ)
    samples = np.random.default_rng(seed).uniform(1, 3, len(exact.batch_sizes))
    chosen = select(exact.lut(member), relation_of("transformer", exact.batch_sizes, samples), cap).chosen.point
    best = exact.best(member, samples, cap)
    assert best is not None
    assert (chosen.batch_size, chosen.gpu_frequency_hz) == best[1:]


def test_the_calibrated_cells_say_so_and_the_others_are_predictions() -> None:
    kinds = {
        (what, r.dataset, k): published_table.kind_of(r, what, k)
        for r in ROWS
        for what in published_table.WHAT
        for k in range(3)
        if r.board == "nano" and r.workload == "resnet18"
    }
    assert kinds["baseline1", "SVHN", 0] == "calibrated"
    assert kinds["baseline1", "CINIC", 0] == "predicted"
    assert kinds["baseline1", "CINIC", 2] == "calibrated"  # it sets the level of N
    assert {kinds["joint", d, k] for d in ("SVHN", "CINIC") for k in range(3)} == {"predicted"}
    tx2 = row("tx2-nx", "resnet18", "CINIC")
    assert {published_table.kind_of(tx2, "baseline2", k) for k in range(3)} == {"predicted"}


def test_the_joint_cells_take_no_part_in_what_is_predicted() -> None:
    changed = replace(CINIC, joint=(1.0, 1.0, 1.0), fastest=(1.0, 1.0, 1.0))
    as_published = published_table.evaluate_row(CINIC, "six")
    otherwise = published_table.evaluate_row(changed, "six")
    for what in published_table.WHAT:
        np.testing.assert_array_equal(as_published.seconds[what], otherwise.seconds[what])


def test_held_out_baselines_follow_from_the_calibration_within_a_few_percent() -> None:
    for r in ROWS:
        if r.dataset in ("CINIC", "Dickens"):
            result = published_table.evaluate_row(r, "six" if r.board == "nano" else "thirteen")
            for cell in published_table.cells(result):
                if "baseline" in cell["comparison"] and cell["published"] is not None:
                    assert abs(cell["error"]["median"]) < 0.03, cell


def test_more_clocks_never_make_the_fastest_slower() -> None:
    six = published_table.evaluate_row(SVHN, "six").seconds["fastest"]
    twelve = published_table.evaluate_row(SVHN, "twelve").seconds["fastest"]
    assert (twelve <= six + 1e-9)[~np.isnan(six)].all()


def test_published_speed_ups_are_those_of_the_table() -> None:
    result = published_table.overall([published_table.evaluate_row(r, "six") for r in ROWS if r.board == "nano"])
    assert result["published"]["peak"] == pytest.approx(10381 / 4454, abs=0.001)
    assert 1.0 < result["mean"]["p5"] <= result["mean"]["median"] <= result["mean"]["p95"]
    assert result["peak"]["median"] > result["mean"]["median"]


def test_a_choice_above_the_cap_counts_with_the_clock_that_the_guard_leaves_it() -> None:
    surface, spec = load("nano", "resnet18"), load_board("nano")
    sizes = RESNET.sizes
    truth = regret.Truth.of(surface, spec, sizes, np.ones(len(sizes)))
    hot = (128, NANO_TICKED_HZ[-1])
    held = truth.held_back(hot, 4.5)
    assert held[0] == 128
    assert truth.at(held)[1] < 4.5 <= truth.at((128, truth.clocks_hz[truth.clocks_hz.index(held[1]) + 1]))[1]
    assert truth.held_back(hot, None) == hot


def test_a_board_that_has_warmed_up_draws_more_than_its_surface_says_and_a_cool_one_less() -> None:
    surface, spec = load("nano", "resnet18"), load_board("nano")
    cool = replace(spec, thermal=replace(spec.thermal, ambient_celsius=-20.0))
    point = (32, NANO_TICKED_HZ[3])
    assert regret.settled_peak_w(surface, cool, *point) < peak_power_w(surface, *point)
    assert regret.settled_peak_w(surface, spec, *point) > regret.settled_peak_w(surface, cool, *point)
    flat = replace(spec, power=replace(spec.power, leakage_per_kelvin=0.0))
    assert regret.settled_peak_w(surface, flat, *point) == pytest.approx(peak_power_w(surface, *point))


def test_one_profiling_run_in_the_twin_is_judged_against_the_true_surface() -> None:
    family = load_family("nano", "mobilenetv2")
    sizes = BATCHES["mobilenetv2"].sizes
    case = regret.run_case(*(load_board("nano"), family.surface(0), sizes, np.linspace(2, 1, len(sizes)), None), seed=1)
    assert case is not None
    assert case.points >= 1
    assert case.loss >= 0  # without a cap nothing is faster than the best
    assert case.loss_all_clocks >= case.loss - 1e-12
    found = regret.summary([case], "one")
    assert found["loss"]["n"] == 1
    assert found["truly_above_the_cap"] is None


def test_real_training_is_held_against_both_baselines_and_the_exhaustive_best() -> None:
    rows = training.against_the_baselines(1)
    assert [c["cap_w"] for c in rows] == [4.5, 7.0, None]
    for c in rows:
        assert c["kind"] == "measured-data"
        assert len(c["seconds_by_seed"]["joint"]) == 5
        assert c["loss_against_fastest"] >= -1e-9
        assert c["speed_up_over_baseline1"] == pytest.approx(
            c["seconds"]["baseline1"] / c["seconds"]["joint"], abs=1e-3
        )


def test_switches_are_compared_with_what_r_predicts_for_the_same_seed() -> None:
    rows = training.mid_run_switches()
    assert {(c["first"], c["second"]) for c in rows} >= {(128, 16), (16, 128)}
    assert all(c["standard_error"] > 0 and c["runs"] >= 5 for c in rows)
    assert all(-0.6 < c["excess"] < 0.6 for c in rows)


def test_a_distribution_and_a_quantile_say_what_they_should() -> None:
    d = distribution([1, 2, 3, 4, 5])
    assert (d["median"], d["mean"], d["least"], d["largest"], d["n"]) == (3, 3, 1, 5, 5)
    assert quantile_of(3, [1, 2, 3, 4, 5]) == 0.5
    assert quantile_of(0, [1, 2]) == 0
    assert quantile_of(9, [1, 2]) == 1
    with pytest.raises(ValueError, match="no values"):
        distribution([])


def test_the_command_prints_every_comparison_as_json_with_its_kind() -> None:
    result = CliRunner().invoke(
        main, ["evaluate", "joint", "--part", "table", "--part", "training", "--quick", "--json"]
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.output.splitlines()[-1])  # older clicks mix what goes to stderr in
    assert {f["workload"] for f in data["families"]} == {w for _, w in FAMILIES}
    kinds = {c["kind"] for c in data["comparisons"]}
    assert kinds == {"calibrated", "predicted", "measured-data"}
    exact = [c for c in data["comparisons"] if c["comparison"].startswith("noise-free")]
    assert exact
    assert all(c["share"] == 1.0 for c in exact)
    cells = [c for c in data["comparisons"] if c["comparison"] == "seconds of joint" and c["clocks"] != "twelve"]
    assert len([c for c in cells if c["variant"] == "sampled"]) == 30


def test_the_command_prints_tables_for_people() -> None:
    result = CliRunner().invoke(main, ["evaluate", "joint", "--part", "training", "--quick"])
    assert result.exit_code == 0, result.output
    assert "real training" in result.output
    assert "against r" in result.output


def test_an_unknown_part_is_wrong_input() -> None:
    result = CliRunner().invoke(main, ["evaluate", "joint", "--part", "nothing"])
    assert result.exit_code == 2
    with pytest.raises(ValueError, match="no part nothing"):
        joint.evaluate_joint(("nothing",))


def test_a_subcommand_is_a_file() -> None:
    listed = CliRunner().invoke(main, ["evaluate", "--help"]).output
    assert "joint" in listed
    assert CliRunner().invoke(main, ["evaluate", "nothing"]).exit_code == 2
