"""What a board may rely on in every surface, and what makes the surfaces more than a host + device / f law."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_sim import surfaces
from traingov_sim.surface import Surface, mean_power_w, peak_power_w, step_time_s
from traingov_sim.surfaces import CLOCKS_HZ, NANO_TICKED_HZ, USABLE_MEMORY_BYTES
from traingov_sim.surfaces.clocks import CALIBRATED
from traingov_sim.surfaces.generator import StepArrays, relative_voltage
from traingov_sim.surfaces.report import updated

ROOT = Path(__file__).resolve().parents[3]
LOUDVA = ROOT.parent / "shared" / "data" / "loudva" / "jetson_nano.csv"
ALL = [(board, name) for board in CLOCKS_HZ for name in surfaces.names(board)]
NANO = ("resnet18", "mobilenetv2", "efficientvit", "transformer")


def test_every_promised_surface_ships() -> None:
    assert set(surfaces.names("nano")) == {*NANO, "digits-mlp"}
    assert set(surfaces.names("tx2-nx")) == {"resnet18", "digits-mlp"}
    assert {"bert-base/qqp", "bert-base/mnli", "bert-base/rte", "bert-small/mrpc"} <= set(surfaces.names("agx-orin"))
    assert {"pythia-31m/mrpc", "pythia-70m/mrpc", "text-classifier"} <= set(surfaces.names("agx-orin"))


def test_a_predicted_boards_surface_is_a_calibrated_boards_scaled_and_says_so() -> None:
    thor, orin = surfaces.load("thor", "text-classifier"), surfaces.load("agx-orin", "text-classifier")
    data = surfaces.store.read("thor", "text-classifier")
    assert "predicted, not calibrated" in data["note"]
    assert thor.parameters["compute_s"] == pytest.approx(orin.parameters["compute_s"] * data["time_scale"])
    assert thor.parameters["dynamic_w"] == pytest.approx(orin.parameters["dynamic_w"] * data["power_scale"])
    assert thor.parameters["voltage_floor"] == orin.parameters["voltage_floor"]
    assert thor.max_frequency_hz == CLOCKS_HZ["thor"][-1]


def test_a_board_whose_name_begins_anothers_gets_its_own_surfaces_only() -> None:
    assert set(surfaces.names("tx2")) == {"resnet18", "digits-mlp", "text-classifier"}
    with pytest.raises(KeyError, match="no surface of 'nx-resnet18' on tx2"):
        surfaces.load("tx2", "nx-resnet18")


def test_an_unknown_workload_is_a_key_error_that_names_the_known_ones() -> None:
    for workload in ("vgg", "../nano-resnet18", ""):
        with pytest.raises(KeyError, match=r"resnet18.*transformer"):
            surfaces.load("nano", workload)


def test_an_unknown_board_is_a_key_error_that_names_the_known_ones() -> None:
    for call in (lambda: surfaces.names("vega"), lambda: surfaces.load("vega", "resnet18")):
        with pytest.raises(KeyError, match=r"agx-orin, .*nano, .*tx2-nx"):
            call()


def test_a_step_that_cannot_be_is_a_value_error() -> None:
    surface = surfaces.load("nano", "resnet18")
    for b, hz in ((0, 921_600_000), (8, 0)):
        with pytest.raises(ValueError, match="no step of batch"):
            surface.phases(b, hz)


@pytest.mark.parametrize(("board", "name"), ALL)
@settings(max_examples=40, deadline=None)
@given(b=st.integers(1, 256), data=st.data())
def test_any_batch_size_gives_phases_a_board_can_play(board: str, name: str, b: int, data: st.DataObject) -> None:
    surface: Surface = surfaces.load(board, name)
    assert (surface.board, surface.workload) == (board, name)
    hz = data.draw(st.sampled_from(CLOCKS_HZ[board]))
    phases = surface.phases(b, hz)
    assert len(phases) == 3
    assert [p.gpu_busy for p in phases] == [False, True, True]
    for p in phases:
        assert 0 < p.duration_s < 120
        assert p.gpu_power_w > 0
        assert p.cpu_power_w > 0
        assert p.gpu_power_w + p.cpu_power_w < p.input_power_w < 100
    assert surface.phases(b, hz) is phases  # kept: the board asks at every step


@pytest.mark.parametrize(("board", "name"), ALL)
def test_a_higher_clock_shortens_the_step_but_for_irregular_clocks(board: str, name: str) -> None:
    surface = surfaces.load(board, name)
    for b in (1, 7, 32, 128):
        times = [step_time_s(surface, b, hz) for hz in CLOCKS_HZ[board] if surface.irregularities.get(hz, 1.0) == 1.0]
        assert all(slow > fast for slow, fast in itertools.pairwise(times))


@pytest.mark.parametrize(("board", "name"), ALL)
def test_a_larger_batch_takes_longer_per_step(board: str, name: str) -> None:
    surface = surfaces.load(board, name)
    times = [step_time_s(surface, b, CLOCKS_HZ[board][-1]) for b in range(1, 257)]
    assert all(small < large for small, large in itertools.pairwise(times))


def test_batch_sizes_the_paper_ran_fit_into_memory_and_those_it_could_not_do_not() -> None:
    for name, largest in (("resnet18", 128), ("transformer", 128), ("mobilenetv2", 64), ("efficientvit", 64)):
        surface, usable = surfaces.load("nano", name), USABLE_MEMORY_BYTES["nano"]
        assert surface.memory_bytes(largest) < usable
        if largest == 64:
            assert surface.memory_bytes(128) > usable


def _falls(power: Callable[[Surface, int, int], float], surface: Surface) -> list[float]:
    """By how many watts power falls when a sample is added to the batch, wherever it does."""
    found = []
    for hz in NANO_TICKED_HZ:
        watts = [power(surface, b, hz) for b in range(1, 129)]
        found += [low - high for low, high in itertools.pairwise(watts) if high < low]
    return found


@pytest.mark.parametrize("name", NANO)
def test_power_is_not_monotone_in_the_batch_size(name: str) -> None:
    surface = surfaces.load("nano", name)
    assert max(_falls(peak_power_w, surface), default=0.0) > 0.005
    assert max(_falls(mean_power_w, surface), default=0.0) > 0.001


def test_time_per_sample_has_the_steps_of_whole_waves() -> None:
    surface = surfaces.load("nano", "mobilenetv2")
    steps = np.diff([step_time_s(surface, b, 307_200_000) for b in range(1, 65)])
    assert steps.max() > 1.3 * np.median(steps)


@pytest.mark.parametrize("name", NANO)
def test_host_plus_device_over_f_does_not_represent_the_table(name: str) -> None:
    surface = surfaces.load("nano", name)
    clocks = np.array(CLOCKS_HZ["nano"], dtype=float)
    worst = 0.0
    for b in (8, 32, 64):
        times = np.array([step_time_s(surface, b, int(hz)) for hz in clocks])
        law = np.stack([np.ones_like(clocks), clocks[-1] / clocks], axis=1) / times[:, None]
        # Least squares on relative errors, the form's best chance.
        coefficients = np.linalg.lstsq(law, np.ones_like(times), rcond=None)[0]
        worst = max(worst, float(np.abs(law @ coefficients - 1).max()))
    assert worst > 0.01


@pytest.mark.parametrize("name", NANO)
def test_memory_sets_a_plateau_that_the_gpu_clock_does_not_move(name: str) -> None:
    surface = surfaces.load("nano", name)
    b = 64
    gpu = {hz: surface.phases(b, hz)[1].duration_s for hz in CLOCKS_HZ["nano"]}
    low, high = CLOCKS_HZ["nano"][0], CLOCKS_HZ["nano"][-1]
    memory = b * surface.parameters["memory_s"] + surface.parameters["memory_step_s"]
    assert all(duration > memory for duration in gpu.values())
    assert gpu[low] / gpu[high] < 0.99 * high / low  # twelve times the clock is not twelve times the speed


@pytest.mark.parametrize(("board", "name"), ALL)
def test_voltage_is_a_staircase_with_a_floor(board: str, name: str) -> None:
    p = surfaces.load(board, name).parameters
    volts = [float(relative_voltage(p, hz / CLOCKS_HZ[board][-1])) for hz in CLOCKS_HZ[board]]
    assert volts == sorted(volts)
    assert volts[-1] == pytest.approx(1.0)
    assert volts[0] == volts[1] or board not in CALIBRATED  # a predicted board's lowest clock may lie above the knee
    assert all(round(v / 0.02, 6) == round(v / 0.02) for v in volts)


def test_one_power_model_serves_every_workload_of_the_nano() -> None:
    shared = ("idle_w", "dynamic_w", "leakage_w", "voltage_floor", "voltage_knee", "memory_w", "cpu_host_w")
    values = {tuple(surfaces.load("nano", name).parameters[n] for n in shared) for name in (*NANO, "digits-mlp")}
    assert len(values) == 1


@pytest.mark.skipif(not LOUDVA.is_file(), reason=f"measured Nano power is absent: {LOUDVA}")
def test_power_over_the_clock_has_the_shape_measured_on_a_real_nano() -> None:
    watts: dict[int, list[float]] = {}
    with LOUDVA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            watts.setdefault(int(row["gpu_hz"]), []).append(float(row["mean_power_w"]))

    def scaled(values: list[float]) -> np.ndarray:
        return (np.array(values) - values[0]) / (values[-1] - values[0])

    measured = scaled([float(np.mean(watts[hz])) for hz in NANO_TICKED_HZ])
    for b in (32, 64, 128):
        surface = surfaces.load("nano", "resnet18")
        simulated = scaled([mean_power_w(surface, b, hz) for hz in NANO_TICKED_HZ])
        assert np.abs(simulated - measured).max() < 0.08, b


def test_a_fine_tuning_workload_has_features_and_its_utilization_is_the_surfaces_own() -> None:
    for name in surfaces.names("agx-orin"):
        features = surfaces.features("agx-orin", name)
        assert set(features) == {"model_type", "layers", "hidden_size", "seq_len_avg", "gpu_utilization"}
        phases = surfaces.load("agx-orin", name).phases(32, CLOCKS_HZ["agx-orin"][-1])
        busy = sum(p.duration_s for p in phases if p.gpu_busy) / sum(p.duration_s for p in phases)
        assert features["gpu_utilization"] == pytest.approx(100 * busy, abs=0.06)
    with pytest.raises(KeyError, match="no features"):
        surfaces.features("nano", "resnet18")


@pytest.mark.parametrize(
    ("board", "name", "point", "seconds", "base"),
    [
        ("nano", "digits-mlp", (128, 307_200_000), 0.26, "resnet18"),
        ("tx2-nx", "digits-mlp", (128, 318_750_000), 0.26, "resnet18"),
        ("agx-orin", "text-classifier", (32, 1_300_500_000), 0.04, "bert-base/qqp"),
    ],
)
def test_a_scaled_surface_is_its_base_with_every_time_divided(
    board: str, name: str, point: tuple[int, int], seconds: float, base: str
) -> None:
    scaled, original = surfaces.load(board, name), surfaces.load(board, base)
    assert step_time_s(scaled, *point) == pytest.approx(seconds, rel=1e-6)
    factor = step_time_s(scaled, *point) / step_time_s(original, *point)
    for b, hz in itertools.product((4, 33, 128), CLOCKS_HZ[board]):
        for one, other in zip(scaled.phases(b, hz), original.phases(b, hz), strict=True):
            assert one.duration_s == pytest.approx(factor * other.duration_s, rel=1e-9)
            assert one.input_power_w == pytest.approx(other.input_power_w, rel=1e-9)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 3.0), st.floats(0.5, 20.0)), min_size=3, max_size=3),
    st.floats(0.05, 5.0),
)
def test_the_array_peak_is_never_below_the_mean_of_any_window(rows: list[tuple[float, float]], window: float) -> None:
    durations, watts = zip(*rows, strict=True)
    steps = StepArrays(durations, watts, watts, watts)
    peak = float(steps.peak_input_w(window))
    assert peak <= max(watts) + 1e-9
    # A dense scan of the repeating signal, as a slow witness.
    period = sum(durations)
    edges = np.concatenate([[0.0], np.cumsum(durations)])
    energy = np.concatenate([[0.0], np.cumsum(np.array(durations) * np.array(watts))])

    def until(t: np.ndarray) -> np.ndarray:
        return np.floor(t / period) * energy[-1] + np.interp(t % period, edges, energy)

    starts = np.linspace(0, period, 400)
    means = (until(starts + window) - until(starts)) / window
    assert means.max() <= peak + 1e-6
    assert peak <= means.max() + max(watts) * period / 400 / window + 1e-6


def test_the_array_peak_of_the_shipped_surfaces_is_the_contracts_peak() -> None:
    surface = surfaces.load("nano", "digits-mlp")
    for b, hz in itertools.product((4, 16, 128), NANO_TICKED_HZ):
        phases = surface.phases(b, hz)
        d, w = tuple(p.duration_s for p in phases), tuple(p.input_power_w for p in phases)
        arrays = StepArrays((d[0], d[1], d[2]), (w[0], w[1], w[2]), (0, 0, 0), (0, 0, 0))
        assert float(arrays.peak_input_w()) == pytest.approx(peak_power_w(surface, b, hz), rel=1e-9)


def test_the_tables_in_the_calibration_document_are_current() -> None:
    document = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    assert updated(document) == document, "run python -m traingov_sim.surfaces.report docs/calibration.md"


def test_every_file_says_that_it_is_simulated() -> None:
    for path in (ROOT / "sim" / "traingov_sim" / "data" / "surfaces").glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["note"].startswith("simulated")
