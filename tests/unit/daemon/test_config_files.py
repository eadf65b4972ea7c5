"""Configuration errors name file, line and key path; layers add up; the shipped defaults are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from traingov.config import ConfigError, load_config, load_tree
from traingov.telemetry.rails import RailRule
from traingov_policies.values import Cap, PolicyName

RULE = RailRule("nano", "Jetson Nano", ("POM_5V_IN",), (), settle_s=1.7, dead_time_s=0.65)


def written(tmp_path: Path, text: str, name: str = "c.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_defaults_are_right_and_take_the_boards_own_times() -> None:
    config = load_config([])
    settings = config.settings(RULE)
    assert settings.policy is PolicyName.JOINT
    assert settings.profile.settle_s == 1.7
    assert settings.guard.dead_time_s == 0.65
    assert settings.sampling_interval_s == 0.01
    assert settings.tree is not None
    assert config.cap is None


def test_later_files_win_key_by_key_but_a_cap_is_one_value(tmp_path: Path) -> None:
    first = written(tmp_path, "cap: {power_w: 7, window_s: 2, burst_w: 9}\nprofile: {samples: 512}\n", "a.yaml")
    second = written(tmp_path, "cap: {power_w: 4.5}\nprofile: {min_steps: 9}\n", "b.yaml")
    config = load_config([first, second])
    assert config.cap == Cap(4.5)
    assert (config.values["profile"]["samples"], config.values["profile"]["min_steps"]) == (512, 9)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("policy: joint\nprofile:\n  samples: many\n", 3, "profile.samples"),
        ("policy: fastest\n", 1, "policy"),
        ("\n\ncap:\n  power_w: -3\n", 4, "cap.power_w"),
        ("guard:\n  dead_time_s: 1\n  colour: red\n", 3, "guard.colour: unknown key"),
        ("- a\n- b\n", 1, "document"),
        ("policy: [joint\nx", 2, "is not YAML"),
        ("tegrastats: ['']\n", 1, "tegrastats.0"),
    ],
)
def test_a_wrong_file_is_told_in_one_line_with_its_place(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert what in message
    assert "\n" not in message


def test_a_burst_below_the_cap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="burst_w"):
        load_config([written(tmp_path, "cap: {power_w: 5, burst_w: 4}\n")])


def test_a_missing_file_and_binary_rubbish_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config([tmp_path / "absent.yaml"])
    path = tmp_path / "b.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config([path])


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load_config([written(tmp_path, "# nothing\n")]).values == load_config([]).values


def test_trees_are_found_by_name_or_path_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert load_tree("algorithm-1").name == "algorithm-1"
    damaged = written(tmp_path, "{", "t.json")
    with pytest.raises(ConfigError, match="t.json"):
        load_tree(str(damaged))
    with pytest.raises(ConfigError, match="nosuch"):
        load_tree("nosuch")
