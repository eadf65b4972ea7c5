"""Input and compute power of every board, and boards that nobody has seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traingov import data
from traingov.data import data_dir
from traingov.telemetry.rails import RailTable, RailTableError
from traingov.telemetry.tegrastats import parse_line

GOLDEN = Path(__file__).resolve().parents[2] / "golden/tegrastats"
TABLE = RailTable.load(data_dir() / "boards")


def rails_of(board: str, number: int = 0) -> dict[str, float]:
    text = (GOLDEN / f"{board}.jsonl").read_text(encoding="utf-8").splitlines()[number]
    return dict(parse_line(json.loads(text)["line"]).rails_w)


@pytest.mark.parametrize(
    ("golden", "board", "input_w", "compute_w"),
    [
        ("nano", "nano", 7.412, 3.311 + 1.204),
        ("tx2", "tx2", 13.066, 6.188 + 1.604),
        ("tx2-nx", "tx2-nx", 10.240, 4.015 + 2.007),
        ("agx-xavier-r32", "agx-xavier", 15.211 + 2.755 + 4.431 + 0 + 1.684 + 3.978, 15.211 + 2.755),
        ("agx-xavier-r35", "agx-xavier", 6.044 + 0.932 + 2.795 + 0 + 0.776 + 2.885, 6.044 + 0.932),
        ("agx-orin-r35", "agx-orin", 18.733 + 3.187 + 6.451, 18.733 + 3.187),
        ("agx-orin-r36", "agx-orin", 9.604 + 1.601 + 5.643, 9.604 + 1.601),
        ("agx-orin-r39", "agx-orin", 14.79 + 1.598 + 6.044, 14.79 + 1.598),
        ("thor-r38", "thor", 71.21, 38.144 + 13.32),
    ],
)
def test_a_board_is_found_by_its_rails_alone(golden: str, board: str, input_w: float, compute_w: float) -> None:
    rails = rails_of(golden)
    rule = TABLE.rule_for(rails)
    assert rule.board == board
    assert rule.input_power_w(rails) == pytest.approx(input_w)
    assert rule.compute_power_w(rails) == pytest.approx(compute_w)
    assert rule.unknown(rails) == ()


@pytest.mark.parametrize(
    ("golden", "model", "board"),
    [
        ("xavier-nx-r35", "NVIDIA Jetson Xavier NX Developer Kit", "xavier-nx"),
        ("orin-nano", "NVIDIA Jetson Orin Nano Developer Kit", "orin-nano"),
        ("orin-nano", "nvidia,p3767-0005", "orin-nano"),
        ("orin-nx", "NVIDIA Jetson Orin NX", "orin-nx"),
        ("orin-nx", "orin-nx", "orin-nx"),
    ],
)
def test_boards_with_the_same_rails_are_told_apart_by_name(golden: str, model: str, board: str) -> None:
    rails = rails_of(golden)
    rule = TABLE.rule_for(rails, model)
    assert rule.board == board
    assert rule.input_power_w(rails) == rails["VDD_IN"]
    assert rule.compute_power_w(rails) == rails["VDD_CPU_GPU_CV"]


def test_rails_outweigh_a_name() -> None:
    rails = rails_of("nano")
    assert TABLE.rule_for(rails, "NVIDIA Jetson AGX Orin").board == "nano"


def test_an_older_release_with_other_rail_names_is_understood() -> None:
    rails = rails_of("tx2", 1)
    rule = TABLE.rule_for(rails, "quill")
    assert rule.board == "tx2"
    assert rule.compute_power_w(rails) == pytest.approx(0.229 + 0.152)


def test_without_a_name_the_longest_dead_time_of_equals_is_taken() -> None:
    rails = rails_of("orin-nano")
    chosen = TABLE.rule_for(rails)
    same = [rule for rule in TABLE.rules if rule.input_rails == ("VDD_IN",) and "VDD_CPU_GPU_CV" in rule.compute_rails]
    assert len(same) >= 3
    assert chosen.dead_time_s == max(rule.dead_time_s for rule in same)


@pytest.mark.parametrize("rail", ["VDD_IN", "VIN", "POM_5V_IN"])
def test_an_unknown_board_with_an_input_rail_gets_input_power(rail: str) -> None:
    rails = {rail: 12.5, "VDD_SOMETHING_NEW": 3.0}
    rule = TABLE.rule_for(rails, "NVIDIA Jetson Of Tomorrow")
    assert rule.board == "unknown"
    assert rule.input_power_w(rails) == 12.5
    assert rule.compute_power_w(rails) is None
    assert rule.unknown(rails) == ("VDD_SOMETHING_NEW",)


def test_a_total_with_a_missing_rail_is_missing_and_not_smaller() -> None:
    rails = rails_of("agx-orin-r36")
    rule = TABLE.rule_for(rails)
    for name in ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"):
        fewer = {other: power for other, power in rails.items() if other != name}
        assert rule.input_power_w(fewer) is None
    alone = {"VIN_SYS_5V0": 5.6}
    assert TABLE.rule_for(alone, "AGX Orin").input_power_w(alone) is None
    assert TABLE.rule_for(alone).input_power_w(alone) is None


def test_a_named_board_without_rails_keeps_its_dead_time_and_measures_nothing() -> None:
    rule = TABLE.rule_for((), "NVIDIA Jetson Nano Developer Kit")
    assert (rule.board, rule.dead_time_s) == ("nano", 0.65)
    assert rule.input_power_w({}) is None
    nothing = TABLE.rule_for(())
    assert nothing.input_power_w({}) is None
    assert "not measured" in nothing.describe()


def test_an_extra_rail_is_reported_and_in_no_sum() -> None:
    rails = {**rails_of("agx-orin-r35"), "VDD_EXTRA": 9.0}
    rule = TABLE.rule_for(rails)
    assert rule.unknown(rails) == ("VDD_EXTRA",)
    assert rule.input_power_w(rails) == pytest.approx(18.733 + 3.187 + 6.451)


def test_a_description_names_the_rails_and_the_times() -> None:
    text = TABLE.rule_for(rails_of("agx-xavier-r35")).describe()
    assert "GPU + CPU + SOC + CV + VDDRQ + SYS5V" in text
    assert "dead time 0.56 s" in text


GOOD = "schema: traingov.board/1\nname: A\nmatch: [a]\nrails:\n  - input: [X]\n    compute: [Y]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "must be a mapping"),
        (GOOD.replace("board/1", "board/9"), "schema: must be traingov.board/1"),
        (GOOD.replace("name: A", "name: 3"), "name: must be a text"),
        (GOOD.replace("[a]", "a"), "match: must be a list"),
        (GOOD.replace("[X]", "[]"), "rails[0].input: must name"),
        (GOOD.replace("[X]", "[X, X]"), "rails[0].input: names a rail twice"),
        (GOOD.replace("compute", "computer"), "rails[0].computer: unknown key"),
        (GOOD + "dead_time_s: fast\n", "dead_time_s: must be a number"),
        (GOOD + "dead_time_s: .nan\n", "dead_time_s: must be a number"),
        (GOOD + "settle_s: -1\n", "settle_s: must be a number"),
        (GOOD + "surprise: 1\n", "surprise: unknown key"),
        ("rails: [\n", "cannot be read"),
        ("!!python/object/apply:os.getcwd []\n", "cannot be read"),
    ],
)
def test_a_wrong_board_file_is_named_with_its_key(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "b.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RailTableError) as caught:
        RailTable.load(tmp_path)
    assert "b.yaml" in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_new_board_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(GOOD + "dead_time_s: 0.1\n", encoding="utf-8")
    rule = RailTable.load(tmp_path).rule_for(("X", "Y"))
    assert (rule.board, rule.dead_time_s, rule.input_power_w({"X": 1.5})) == ("b", 0.1, 1.5)


def test_a_folder_without_board_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RailTableError, match="no board file"):
        RailTable.load(tmp_path)


def test_the_data_files_are_found_beside_the_package_or_in_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "daemon/traingov"
    monkeypatch.setattr(data, "_PACKAGE", package)
    with pytest.raises(FileNotFoundError, match="reinstall"):
        data_dir()
    (tmp_path / "etc/boards").mkdir(parents=True)
    assert data_dir() == tmp_path / "etc"
    (package / "etc/boards").mkdir(parents=True)
    assert data_dir() == package / "etc"
