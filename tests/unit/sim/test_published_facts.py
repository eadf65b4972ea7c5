"""Every published fact that a shipped surface was calibrated on, held against the surface that ships."""

from __future__ import annotations

import math

import pytest

from traingov_sim import surfaces
from traingov_sim.surface import mean_power_w, peak_power_w, step_time_s
from traingov_sim.surfaces import CLOCKS_HZ, NANO_TICKED_HZ, misfit
from traingov_sim.surfaces.facts import CALIBRATION, CHOICE, Case
from traingov_sim.surfaces.predictions import joint_cells, pass_seconds, samples_to_accuracy
from traingov_sim.surfaces.published import (
    BASELINE_HZ,
    BATCHES,
    calibration_row,
    held_out_rows,
    nano_case,
    tx2_case,
)
from traingov_sim.surfaces.published_orin import WORKLOADS, orin_case
from traingov_sim.surfaces.store import read

F307, F460, F614, F768, F921 = NANO_TICKED_HZ[1:]
TOLERANCE_W = 0.1


def _case(board: str, workload: str) -> Case:
    if board == "nano":
        return nano_case(workload)
    if board == "agx-orin":
        return orin_case(workload)
    data = read(board, workload)
    low, middle, high = data["assumed_clocks_hz"]
    return tx2_case({int(b): n for b, n in data["known_samples"].items()}, (low, middle, high))


CASES = [_case("nano", w) for w in BATCHES] + [_case("tx2-nx", "resnet18")]
CASES += [_case("agx-orin", w.name) for w in WORKLOADS]
FACTS = [
    pytest.param(case, k, id=f"{case.board} {case.workload}: {fact.name}")
    for case in CASES
    for k, fact in enumerate(case.facts)
]


def _tables(case: Case) -> misfit.Tables:
    surface = surfaces.load(case.board, case.workload)
    irregular = {misfit.irregularity_name(hz): v for hz, v in surface.irregularities.items()}
    return misfit.tables(case, {**surface.parameters, **irregular}, surface.max_frequency_hz)


@pytest.mark.parametrize(("case", "k"), FACTS)
def test_the_shipped_surface_meets_the_fact_within_its_tolerance(case: Case, k: int) -> None:
    fact = case.facts[k]
    assert fact.kind in (CALIBRATION, CHOICE)
    residual = float(misfit.residual(_tables(case), fact)[0])
    assert abs(residual) <= 1.0, f"{fact.name}: {residual:.2f} tolerances of {fact.tolerance} off"


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.board} {c.workload}")
def test_measuring_the_misfit_again_gives_the_recorded_one(case: Case) -> None:
    recorded = read(case.board, case.workload)["calibration"]
    t = _tables(case)
    assert float(misfit.misfit(t)[0]) == pytest.approx(recorded["misfit"], abs=2e-6)
    assert [f["name"] for f in recorded["facts"]] == [f.name for f in case.facts]
    again = misfit.residuals(t)[:, 0]
    assert [f["residual"] for f in recorded["facts"]] == pytest.approx(list(again), abs=1e-4)


@pytest.mark.parametrize("workload", BATCHES)
def test_a_worse_surface_has_a_larger_misfit(workload: str) -> None:
    case = nano_case(workload)
    surface = surfaces.load("nano", workload)
    shipped = float(misfit.misfit(_tables(case))[0])
    for change in ({"dynamic_w": 1.3}, {"compute_s": 1.5}, {"idle_w": 1.2}, {"memory_s": 2.0}):
        worse = {n: v * change.get(n, 1.0) for n, v in surface.parameters.items()}
        assert misfit.misfit(misfit.tables(case, worse, surface.max_frequency_hz))[0] > shipped + 1


# From here on the facts are measured with the board's own functions, not with the calibration's.


@pytest.mark.parametrize("workload", BATCHES)
@pytest.mark.parametrize(("hz", "cap"), [(F307, 4.5), (F614, 7.0)])
def test_the_safe_clock_is_safe_for_every_batch_size(workload: str, hz: int, cap: float) -> None:
    surface = surfaces.load("nano", workload)
    assert max(peak_power_w(surface, b, hz) for b in BATCHES[workload].sizes) < cap


def test_the_next_clock_is_unsafe_for_some_workload() -> None:
    for hz, cap in ((F460, 4.5), (F768, 7.0)):
        peaks = [peak_power_w(surfaces.load("nano", w), b, hz) for w in BATCHES for b in BATCHES[w].sizes]
        assert max(peaks) >= cap


def test_under_5_w_batch_128_reaches_307_mhz_and_batch_64_reaches_460_mhz() -> None:
    surface = surfaces.load("nano", "resnet18")
    for b, hz, above in ((128, F307, F460), (64, F460, F614)):
        assert peak_power_w(surface, b, hz) < 5.0
        assert peak_power_w(surface, b, above) >= 5.0


def test_batch_64_at_460_mhz_is_31_9_percent_faster_than_batch_128_at_307_mhz() -> None:
    surface = surfaces.load("nano", "resnet18")
    ratio = pass_seconds(surface, 4096, 128, F307) / pass_seconds(surface, 4096, 64, F460)
    assert ratio == pytest.approx(1.319, rel=0.01)


@pytest.mark.parametrize(("cap", "winner"), [(4.5, 8), (5.0, 8), (7.0, 32)])
def test_figure_2_holds(cap: float, winner: int) -> None:
    surface = surfaces.load("nano", "resnet18")
    clock = {b: max(hz for hz in NANO_TICKED_HZ if peak_power_w(surface, b, hz) < cap) for b in (8, 32)}
    seconds = {b: pass_seconds(surface, 4096, b, clock[b]) for b in (8, 32)}
    to_accuracy = {8: 10 * seconds[8], 32: 15 * seconds[32]}
    assert clock[8] > clock[32]
    assert seconds[32] < seconds[8]
    assert min(to_accuracy, key=lambda b: to_accuracy[b]) == winner


@pytest.mark.parametrize("workload", BATCHES)
def test_one_n_per_batch_size_explains_the_baseline_cells(workload: str) -> None:
    surface, r, batches = surfaces.load("nano", workload), calibration_row("nano", workload), BATCHES[workload]
    samples = samples_to_accuracy(surface, r, batches)
    for b, cells in ((batches.baseline1, r.baseline1), (batches.baseline2, r.baseline2)):
        for hz, seconds in zip(BASELINE_HZ, cells, strict=True):
            assert pass_seconds(surface, batches.pass_samples, b, hz) * samples[b] == pytest.approx(seconds, rel=0.015)


def test_resnet18_at_batch_128_is_linear_in_the_reciprocal_clock_over_the_published_clocks() -> None:
    surface = surfaces.load("nano", "resnet18")
    slow, middle, fast = (pass_seconds(surface, 1, 128, hz) for hz in BASELINE_HZ)
    slope = (slow - fast) / (1 / F307 - 1 / F921)
    assert fast + slope * (1 / F614 - 1 / F921) == pytest.approx(middle, rel=0.015)
    # Near a third of the step at full clock does not scale with the GPU clock.
    assert 0.25 < 1 - slope / F921 / fast < 0.42


@pytest.mark.parametrize(
    ("workload", "b", "hz", "cap"),
    [
        *(("resnet18", 8, F460, 4.5), ("resnet18", 32, F768, 7.0)),
        *(("mobilenetv2", 32, F460, 4.5), ("mobilenetv2", 32, F921, 7.0)),
        *(("efficientvit", 16, F460, 4.5), ("efficientvit", 64, F768, 7.0)),
        *(("transformer", 8, F460, 4.5), ("transformer", 128, F768, 7.0)),
    ],
)
def test_the_clock_of_the_joint_choice_is_the_highest_feasible_one(workload: str, b: int, hz: int, cap: float) -> None:
    surface = surfaces.load("nano", workload)
    assert max(f for f in NANO_TICKED_HZ if peak_power_w(surface, b, f) < cap + TOLERANCE_W) >= hz
    assert max(f for f in NANO_TICKED_HZ if peak_power_w(surface, b, f) < cap) == hz


def test_held_out_cells_are_recorded_as_predictions_and_as_nothing_else() -> None:
    for case in CASES:
        if case.board == "agx-orin":
            continue
        data = read(case.board, case.workload)
        rows = held_out_rows(case.board, case.workload)
        joint = {s for r in (calibration_row(case.board, case.workload), *rows) for s in r.joint}
        names = {p["name"] for p in data["predictions"]}
        assert all(any(r.dataset in name for name in names) for r in rows)
        fitted = {getattr(f.measure, "seconds", None) for f in case.facts}
        baselines = {*calibration_row(case.board, case.workload).baseline1}
        baselines |= {s for s in calibration_row(case.board, case.workload).baseline2 if s is not None}
        assert not fitted & (joint - baselines)


@pytest.mark.parametrize("workload", BATCHES)
def test_recorded_predictions_are_what_the_surface_says(workload: str) -> None:
    surface = surfaces.load("nano", workload)
    recorded = {p["name"]: p for p in read("nano", workload)["predictions"]}
    for r in (calibration_row("nano", workload), *held_out_rows("nano", workload)):
        for p in joint_cells(surface, r, NANO_TICKED_HZ):
            assert recorded[p.name]["predicted"] == pytest.approx(p.predicted, abs=0.06)
            assert p.published == recorded[p.name]["published"]


def test_less_energy_for_resnet18_under_7_w_than_uncapped() -> None:
    surface = surfaces.load("nano", "resnet18")
    energy = [step_time_s(surface, 32, hz) * mean_power_w(surface, 32, hz) for hz in (F768, F921)]
    assert energy[0] < energy[1]


def _compute_j(workload: str) -> dict[int, float]:
    surface = surfaces.load("agx-orin", workload)
    return {
        hz: sum(p.duration_s * (p.gpu_power_w + p.cpu_power_w) for p in surface.phases(32, hz))
        for hz in CLOCKS_HZ["agx-orin"]
    }


@pytest.mark.parametrize(
    ("workload", "hz", "percent"),
    [
        ("bert-base/qqp", 714_000_000, 24.37),
        ("bert-base/mnli", 714_000_000, 24.50),
        ("bert-base/rte", 714_000_000, 9.38),
        ("bert-base/rte", 816_000_000, 12.37),
        ("pythia-31m/mrpc", 714_000_000, -5.0),
    ],
)
def test_the_clock_saves_what_the_energy_paper_reports(workload: str, hz: int, percent: float) -> None:
    energy = _compute_j(workload)
    assert 100 * (1 - energy[hz] / energy[CLOCKS_HZ["agx-orin"][-1]]) == pytest.approx(percent, abs=1.5)


@pytest.mark.parametrize(
    ("workload", "hz"),
    [("bert-small/mrpc", 1_020_000_000), ("pythia-70m/mrpc", 1_122_000_000), ("pythia-31m/mrpc", 612_000_000)],
)
def test_a_small_model_is_best_where_the_energy_paper_says(workload: str, hz: int) -> None:
    energy = _compute_j(workload)
    assert min(energy, key=lambda f: energy[f]) == hz


@pytest.mark.parametrize("workload", ["bert-base/qqp", "bert-base/mnli"])
def test_a_larger_model_is_best_between_510_and_816_mhz(workload: str) -> None:
    energy = _compute_j(workload)
    assert 510_000_000 <= min(energy, key=lambda f: energy[f]) <= 816_000_000


def test_the_tables_used_for_searching_agree_with_the_boards_own_functions() -> None:
    for case in CASES:
        surface, t = surfaces.load(case.board, case.workload), _tables(case)
        for i, b in enumerate(case.batch_sizes):
            for j, hz in enumerate(case.clocks_hz):
                assert math.isclose(t.sample_s[0, i, j] * b, step_time_s(surface, b, hz), rel_tol=1e-9)
                assert math.isclose(t.peak_w[0, i, j], peak_power_w(surface, b, hz), rel_tol=1e-9)
