"""The search itself: it finds what is there, repeats itself, and rejects facts that contradict each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from traingov_sim.surfaces import calibrate, fitting, published_orin
from traingov_sim.surfaces.facts import CALIBRATION, Fact, TimeRatio
from traingov_sim.surfaces.published import nano_case, row
from traingov_sim.surfaces.search import evolve, walk
from traingov_sim.surfaces.space import BOARD_RANGES, Space, workload_ranges


def _bowl(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((((points - 0.3) / 0.05) ** 2).sum(axis=1))


def test_evolution_finds_the_bottom_of_a_bowl_and_repeats_itself() -> None:
    first = evolve(_bowl, 5, seed=1, population=40, generations=150)
    second = evolve(_bowl, 5, seed=1, population=40, generations=150)
    assert first[1] < 1e-3
    assert np.array_equal(first[0], second[0])


def test_a_walk_samples_the_bowl_at_its_own_width() -> None:
    points, values = walk(_bowl, np.full(3, 0.3), seed=2, steps=2500, walkers=60)
    assert values.mean() == pytest.approx(3.0, abs=1.2)  # Σ of three squared standard normals
    assert np.std(points) == pytest.approx(0.05, abs=0.015)


def test_every_range_is_kept_by_decoding() -> None:
    ranges = {**BOARD_RANGES["nano"], **workload_ranges("nano", 0.03)}
    space = Space(ranges)
    for corner in (0.0, 1.0):
        values = space.decode(np.full((1, len(space.names)), corner))
        for name, (low, high) in ranges.items():
            assert values[name][0] == pytest.approx(high if corner else low)


def test_the_search_meets_the_facts_of_resnet18_from_one_seed() -> None:
    case = nano_case("resnet18")
    ranges = {**BOARD_RANGES["nano"], **workload_ranges("nano", 0.03)}
    value, parameters = fitting.search(case, ranges, {}, seed=7)
    assert value <= fitting.ACCEPT
    assert value == fitting.search(case, ranges, {}, seed=7)[0]
    assert set(parameters) == set(ranges)


def test_facts_that_contradict_each_other_are_reported_not_fitted() -> None:
    case = nano_case("resnet18")
    impossible = TimeRatio((128, case.clocks_hz[1]), (64, case.clocks_hz[2]), 0.2)
    case = replace(case, facts=(*case.facts, Fact("impossible", CALIBRATION, impossible, 0.01, "none")))
    with pytest.raises(RuntimeError, match="no seed met the facts"):
        fitting.fit(case, {**BOARD_RANGES["nano"], **workload_ranges("nano", 0.03)}, {}, seeds=1)


def test_without_measured_power_the_shape_is_left_out_and_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = nano_case("resnet18")
    assert calibrate.with_shape(case, tmp_path) == case
    assert "is absent" in capsys.readouterr().err


def test_a_written_surface_is_read_back_as_it_was_fitted(tmp_path: Path) -> None:
    case = published_orin.orin_case("bert-base/qqp")
    ranges = {**BOARD_RANGES["agx-orin"], **workload_ranges("agx-orin", 0.005)}
    fitted = fitting.fit(case, ranges, {}, seeds=1)
    data = json.loads(json.dumps(fitting.document(fitted, case, (1, 2))))
    surface = fitting.surface_of(case, fitted.members[0], (1, 2))
    assert data["parameters"] == dict(surface.parameters)
    assert len(data["calibration"]["facts"]) == len(case.facts)


def test_a_row_that_the_paper_lacks_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="no row for mobilenetv2"):
        row("tx2-nx", "mobilenetv2", "SVHN")
    with pytest.raises(KeyError, match="known: bert-base/qqp"):
        published_orin.workload("gpt/qqp")
