"""The configuration's cap sources: the examples that ship, what overlays what, and errors with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from traingov.config import Config, ConfigError, load_config
from traingov.telemetry.rails import RailTable
from traingov.telemetry.samples import Sampler
from traingov_policies.cap_file import CapFile
from traingov_policies.caps import BatteryRule
from traingov_policies.following import FollowSettings
from traingov_policies.values import Cap

ETC = Path(__file__).parents[3] / "etc"
EXAMPLES = sorted((ETC / "examples").glob("*.yaml"))


def load(folder: Path, *texts: str) -> Config:
    files = []
    for number, text in enumerate(texts):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(text)
    return load_config(files)


def test_there_is_an_example_of_each_source() -> None:
    assert {path.stem for path in EXAMPLES} >= {"cap-fixed", "cap-schedule", "cap-file", "cap-battery"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_right_configuration_and_asks_for_something_else_than_the_defaults(path: Path) -> None:
    assert load_config([path]).values != load_config([]).values


def test_the_examples_say_what_their_comments_promise() -> None:
    config = load_config(EXAMPLES)
    sources = config.cap_sources
    assert config.cap == Cap(14, 1, 18)
    night = sources.schedule.at(3600)
    assert night is not None
    assert (night.cap, night.source) == (Cap(6), "schedule 22:00")
    assert sources.schedule.at(12 * 3600) is None
    assert sources.file == CapFile("/run/traingov-cap/watts", 10, 60, Cap(5))
    assert sources.rules == (BatteryRule(Cap(10), "discharging"), BatteryRule(Cap(5), "discharging", 30))


def test_without_a_word_there_is_no_source_and_the_defaults_of_following_are_those_of_the_policies() -> None:
    config = load_config([])
    sources = config.cap_sources
    assert (config.cap, sources.schedule.entries, sources.file, sources.rules) == (None, (), None, ())
    rule = Sampler(RailTable.load(ETC / "boards"), "unknown", lambda rule, unknown: None).rule
    assert config.settings(rule).following == FollowSettings()


def test_a_schedule_and_a_cap_in_it_are_taken_over_whole_from_a_later_file(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        'cap_sources: {schedule: {"07:00": {power_w: 5, burst_w: 6}}, file: {path: /run/cap}}\n',
        'cap_sources: {schedule: {"08:00": {power_w: 7}}}\n',
    )
    assert config.cap_sources.schedule.entries == (("08:00", 28_800, Cap(7)),)
    assert config.cap_sources.file == CapFile("/run/cap")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (
            "cap_sources:\n  schedule:\n    22:00: {power_w: 5}\n",
            3,
            "the key 22:00 is no text to YAML: put it into quo",
        ),
        ('cap_sources:\n  schedule:\n    "25:00": {power_w: 5}\n', 3, '"25:00" is no time of day'),
        ('cap_sources:\n  schedule:\n    "07:00": null\n    "7:00": null\n', 4, "stands there twice"),
        ('cap_sources:\n  schedule:\n    "07:00": {power_w: 5, burst_w: 4}\n', 3, "burst_w 4 must not be below"),
        ('cap_sources:\n  schedule:\n    "07:00": {power_w: -5}\n', 3, "-5 is less than or equal to the minimum of 0"),
        ("cap_sources:\n  file:\n    path: cap\n", 3, "does not match"),
        ("cap_sources:\n  file: {fallback: {power_w: 5, burst_w: 1}}\n", 2, "burst_w 1 must not be below"),
        (
            "cap_sources:\n  battery:\n    rules:\n      - {cap: {power_w: 5}, when: unplugged}\n",
            4,
            "'unplugged' is not",
        ),
        ("cap_sources:\n  battery:\n    rules:\n      - {when: charging}\n", 4, "'cap' is a required property"),
        ("cap_sources: {batteries: []}\n", 1, "unknown key"),
        ("following: {hold_s: -1}\n", 1, "less than the minimum"),
    ],
)
def test_a_wrong_source_is_one_line_with_file_line_and_key(tmp_path: Path, text: str, line: int, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    said = str(error.value)
    assert said.startswith(f"{tmp_path}/0.yaml:{line}: ")
    assert why in said
    assert "\n" not in said


def test_waits_that_contradict_each_other_are_a_wrong_configuration(tmp_path: Path) -> None:
    rule = Sampler(RailTable.load(ETC / "boards"), "unknown", lambda rule, unknown: None).rule
    config = load(tmp_path, "following: {hold_s: 10, hold_most_s: 5}\n")
    with pytest.raises(ConfigError, match=r"following\.hold_most_s 5 must not be below hold_s 10"):
        config.settings(rule)
