"""`traingov tegrastats parse` as a program would use it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from traingov.cli.tegrastats import group

LINE = "01-02-2025 03:04:05 RAM 5/6MB CPU [7%@729,off] GR3D_FREQ 40%@[305,306] GPU@-256C CPU@45.5C NEW VDD_IN 5mW/6mW"
KEYS = {
    "timestamp",
    "rails_w",
    "gpu_utilization",
    "gpu_frequency_hz",
    "emc_utilization",
    "emc_frequency_hz",
    "ram_used_bytes",
    "ram_total_bytes",
    "cpus",
    "temperatures_celsius",
    "unknown",
}


def test_each_line_gives_one_object_and_a_foreign_line_an_error() -> None:
    result = CliRunner().invoke(group, ["parse", "--json"], input=f"{LINE}\nhello\n\n{LINE}\n")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [set(item) for item in objects] == [KEYS, {"error"}, {"error"}, KEYS]
    assert objects[0] == {
        "timestamp": "01-02-2025 03:04:05",
        "rails_w": {"VDD_IN": 0.005},
        "gpu_utilization": 0.4,
        "gpu_frequency_hz": 306_000_000,
        "emc_utilization": None,
        "emc_frequency_hz": None,
        "ram_used_bytes": 5 << 20,
        "ram_total_bytes": 6 << 20,
        "cpus": [
            {"online": True, "utilization": 0.07, "frequency_hz": 729_000_000},
            {"online": False, "utilization": None, "frequency_hz": None},
        ],
        "temperatures_celsius": {"CPU": 45.5},
        "unknown": ["NEW"],
    }


def test_a_file_is_read_as_standard_input_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(LINE.encode() + b"\r\n\xff\xfe\n")
    from_file = CliRunner().invoke(group, ["parse", str(log), "--json"])
    from_stdin = CliRunner().invoke(group, ["parse", "-", "--json"], input=log.read_bytes())
    assert from_file.stdout == from_stdin.stdout
    assert len(from_file.stdout.splitlines()) == 2


def test_people_get_one_line_without_what_is_not_there() -> None:
    result = CliRunner().invoke(group, ["parse"], input=f"{LINE}\nhello\n")
    first, second = result.stdout.splitlines()
    assert "GPU 40% 306 MHz" in first
    assert "VDD_IN 0.005 W" in first
    assert "1 of 2 online" in first
    assert "not understood: NEW" in first
    assert "EMC" not in first
    assert second.startswith("error: no tegrastats line")


def test_a_missing_file_is_wrong_input(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["parse", str(tmp_path / "none"), "--json"])
    assert result.exit_code == 2
    assert "No such file" in result.output
    assert len(result.output.splitlines()) == 1
