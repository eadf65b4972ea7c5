"""Gain and offset of a rail: applied before rails are added up, checked in the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from traingov.config import ConfigError, load_config
from traingov.data import data_dir
from traingov.telemetry.rails import Correction, RailTable
from traingov.telemetry.reading import Reading
from traingov.telemetry.samples import Sampler

TABLE = RailTable.load(data_dir() / "boards")


def sampler(**corrections: Correction) -> Sampler:
    return Sampler(TABLE, "NVIDIA Jetson Orin Nano", lambda rule, unknown: None, corrections)


def reading(**rails_w: float) -> Reading:
    return Reading(rails_w=rails_w)


def test_a_corrected_rail_is_what_the_sample_is_made_of() -> None:
    found = sampler(VDD_IN=Correction(1.02, -0.1))
    corrected = found.corrected(reading(VDD_IN=10.0, VDD_CPU_GPU_CV=4.0, VDD_SOC=1.0))
    sample = found.sample(1.0, corrected)
    assert corrected.rails_w["VDD_IN"] == pytest.approx(10.1)
    assert sample.input_power_w == pytest.approx(10.1)
    assert sample.compute_power_w == 4.0
    assert found.absent == ()


def test_without_corrections_the_reading_is_passed_on_as_it_is() -> None:
    plain = reading(VDD_IN=10.0)
    assert sampler().corrected(plain) is plain


def test_a_result_below_zero_stays_what_it_is_and_a_total_below_zero_is_no_reading() -> None:
    found = sampler(VDD_SOC=Correction(1.0, -0.5), VDD_IN=Correction(1.0, -2.0))
    corrected = found.corrected(reading(VDD_IN=1.5, VDD_CPU_GPU_CV=0.4, VDD_SOC=0.2))
    assert corrected.rails_w["VDD_SOC"] == pytest.approx(-0.3)
    assert found.sample(1.0, corrected).input_power_w is None


def test_a_rail_that_the_board_does_not_show_is_named() -> None:
    found = sampler(VDD_INN=Correction(1.02))
    found.sample(1.0, found.corrected(reading(VDD_IN=10.0, VDD_CPU_GPU_CV=4.0)))
    assert found.absent == ("VDD_INN",)
    found.correct({"VDD_IN": Correction(2.0)})
    found.sample(1.1, found.corrected(reading(VDD_IN=10.0, VDD_CPU_GPU_CV=4.0)))
    assert found.absent == ()
    assert "corrected: VDD_IN times 2" in found.describe()


def config(tmp_path: Path, text: str):
    file = tmp_path / "t.yaml"
    file.write_text(text)
    return load_config([file])


def test_the_configuration_gives_gain_and_offset_by_rail(tmp_path: Path) -> None:
    loaded = config(tmp_path, "rails:\n  VDD_IN: {gain: 1.02, offset_w: -0.1}\n  VDD_SOC: {offset_w: 0.2}\n")
    assert loaded.corrections == {"VDD_IN": Correction(1.02, -0.1), "VDD_SOC": Correction(1.0, 0.2)}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("rails:\n  VDD_IN: {gain: 0}\n", 2, "rails.VDD_IN.gain"),
        ("rails:\n  VDD_IN:\n    gian: 1.02\n", 3, "rails.VDD_IN.gian: unknown key"),
        ("rails: [VDD_IN]\n", 1, "rails"),
        ("guard:\n  temperature_ceiling_celsius: 400\n", 2, "guard.temperature_ceiling_celsius"),
        ("guard:\n  zone_ceilings_celsius: {gpu-thermal: hot}\n", 2, "guard.zone_ceilings_celsius.gpu-thermal"),
        ("guard:\n  avoid_over_current: sometimes\n", 2, "guard.avoid_over_current"),
    ],
)
def test_a_wrong_value_is_one_line_with_place_and_key(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        config(tmp_path, text)
    assert f"t.yaml:{line}: {message}" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_guards_settings_come_from_the_configuration(tmp_path: Path) -> None:
    loaded = config(
        tmp_path,
        "guard:\n  temperature_ceiling_celsius: 80\n  zone_ceilings_celsius: {gpu-thermal: 75}\n"
        "  avoid_over_current: false\n",
    )
    guard = loaded.guard(TABLE.rule_for((), "NVIDIA Jetson Nano"))
    assert guard.temperature_ceiling_celsius == 80
    assert guard.zone_ceilings_celsius == (("gpu-thermal", 75.0),)
    assert guard.avoid_over_current is False
    assert guard.dead_time_s == 0.65
