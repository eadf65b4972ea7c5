"""The command line as other programs read it: pinned outputs, one-line errors, exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import traingov as run

LUT: dict[str, Any] = {
    "schema": "traingov.lut/1", "board": "nano", "workload": "w", "samples": 64,
    "batch_sizes": [8, 16], "gpu_frequencies_hz": [100, 200],
    "time_s": [[40.0, 20.0], [30.0, None]], "peak_power_w": [[2.0, 3.0], [3.0, 4.5]],
    "mean_power_w": [[1.5, 2.5], [2.5, None]],
    "conditions": {}, "measured_at": "2026-01-01T00:00:00Z",
}  # fmt: skip


def file(tmp_path: Path, content: object, name: str = "f.json") -> str:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_select_prints_the_pinned_object(tmp_path: Path) -> None:
    relation = {
        "schema": "traingov.relation/1",
        "workload": "w",
        "batch_sizes": [8, 16],
        "relative_samples": [1.0, 0.5],
    }
    result = run("select", "--lut", file(tmp_path, LUT), "--relation", file(tmp_path, relation, "r.json"),
                 "--cap", "3.5", "--json")  # fmt: skip
    answer = json.loads(result.stdout)
    assert list(answer) == [
        "batch_size", "gpu_frequency_hz", "time_s", "peak_power_w", "energy_j", "feasible", "candidates",
    ]  # fmt: skip
    assert (answer["batch_size"], answer["gpu_frequency_hz"], answer["time_s"], answer["energy_j"]) == (
        16,
        100,
        15.0,
        37.5,
    )
    assert answer["feasible"] is True
    assert [c["batch_size"] for c in answer["candidates"]] == [16, 8]


def test_select_says_when_nothing_is_feasible(tmp_path: Path) -> None:
    result = run("select", "--lut", file(tmp_path, LUT), "--cap", "1", "--json")
    answer = json.loads(result.stdout)
    assert answer["feasible"] is False
    assert (answer["batch_size"], answer["gpu_frequency_hz"]) == (8, 100)


@pytest.mark.parametrize("objective", ["time", "energy", "edp"])
def test_select_without_json_reads_well(tmp_path: Path, objective: str) -> None:
    result = run("select", "--lut", file(tmp_path, LUT), "--objective", objective)
    assert result.exit_code == 0
    assert "← chosen" in result.stdout
    assert "no relation vector" in result.stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", ":1: is not JSON"),
        ("[]", "must be a JSON object"),
        ({**LUT, "schema": "x"}, "schema is 'x'"),
        ({**LUT, "time_s": [[1.0]]}, "time_s must be 2 rows"),
        ({**LUT, "batch_sizes": [16, 8]}, "batch_sizes must be ascending"),
        ({k: v for k, v in LUT.items() if k != "samples"}, "samples is missing"),
        ({**LUT, "peak_power_w": [[2.0, "three"], [1.0, 1.0]]}, "peak_power_w[0][1]"),
        (
            {**LUT, "time_s": [[None, None], [None, None]], "peak_power_w": [[None, None], [None, None]]},
            "profile first",
        ),
    ],
)
def test_a_wrong_table_gives_one_line_and_status_2(tmp_path: Path, content: object, complaint: str) -> None:
    result = run("select", "--lut", file(tmp_path, content))
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_missing_file_and_a_wrong_cap_give_status_2(tmp_path: Path) -> None:
    assert run("select", "--lut", str(tmp_path / "absent")).exit_code == 2
    result = run("select", "--lut", file(tmp_path, LUT), "--cap", "nan")
    assert (result.exit_code, "--cap" in result.stderr) == (2, True)


def test_tree_apply_prints_clock_and_path() -> None:
    arguments = ["--layers", "12", "--seq-len-avg", "60", "--gpu-utilization", "90", "--json"]
    answer = json.loads(run("tree", "apply", "--tree", "algorithm-1", *arguments).stdout)
    assert answer == {
        "gpu_frequency_hz": 816_000_000,
        "path": ["gpu_utilization 90 > 22", "layers 12 > 7", "seq_len_avg 60 > 53"],
    }
    assert "510 MHz" in run("tree", "show", "algorithm-1").stdout
    assert run("tree", "show", "nosuch.json").exit_code == 2


def test_check_tells_right_files_from_wrong_ones(tmp_path: Path) -> None:
    etc = Path(__file__).parents[3] / "etc"
    shipped = [str(p) for folder in ("trees", "relations") for p in (etc / folder).glob("*.json")]
    result = run("check", str(etc / "traingov.yaml"), *shipped, file(tmp_path, LUT))
    assert result.exit_code == 0, result.output
    assert result.stdout.count(", right") == len(shipped) + 2
    wrong = file(tmp_path, {**LUT, "colour": "red"}, "wrong.json")
    result = run("check", file(tmp_path, LUT), wrong, file(tmp_path, {"schema": "what"}, "odd.json"))
    assert result.exit_code == 2
    assert "colour" in result.stderr
    assert "schema is 'what'" in result.stderr


def test_relation_show_names_what_there_is() -> None:
    assert json.loads(run("relation", "show", "digits-mlp", "--json").stdout)["batch_sizes"][0] == 4
    result = run("relation", "show", "nosuch")
    assert (result.exit_code, "digits-mlp" in result.stderr) == (2, True)


def test_without_a_service_the_commands_say_what_to_do(tmp_path: Path) -> None:
    for command in (["status"], ["jobs"], ["cap", "get"], ["policy", "get"], ["explain"]):
        result = run(*command, "--socket", str(tmp_path / "none.sock"))
        assert result.exit_code == 1
        assert "start traingovd" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-3"], "POWER_W: must be a positive number of watts, 10000 at most, not -3"),
        (["7W"], "POWER_W: must be a positive number of watts, 10000 at most, not 7W"),
        (["nan"], "POWER_W: must be a positive number of watts, 10000 at most, not nan"),
        (["7", "--ttl", "-1"], "--ttl: must be a positive number of seconds, 31536000 at most, not -1"),
        (["7", "--window", "0"], "--window: must be a positive number of seconds, 3600 at most, not 0"),
        (["7", "--burst", "x"], "--burst: must be a positive number of watts, 10000 at most, not x"),
    ],
)
def test_a_cap_that_is_no_positive_number_is_one_line_that_names_what_is_wrong(arguments: list[str], said: str) -> None:
    result = run("cap", "set", *arguments, "--socket", "/nowhere")
    assert (result.exit_code, result.stderr) == (2, f"traingov: {said}\n")


def test_a_misspelt_option_of_cap_set_is_still_called_one() -> None:
    result = run("cap", "set", "7", "--tll", "3")
    assert (result.exit_code, "--tll" in result.stderr) == (2, True)


def test_help_lists_every_command_and_each_has_help() -> None:
    listing = run("--help").stdout
    for name in (
        "cap",
        "check",
        "explain",
        "jobs",
        "policy",
        "relation",
        "replay",
        "restore",
        "select",
        "status",
        "tree",
    ):
        assert name in listing
        assert run(name, "--help").exit_code == 0


def test_the_service_loads_neither_the_command_lines_libraries_nor_scikit_learn() -> None:
    heavy = ("click", "rich", "sklearn", "matplotlib")
    code = f"import sys, traingov.service; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
