"""Lines of every board against values that were written beside them by hand, and real lines where they are at hand."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from traingov.telemetry.tegrastats import parse_line

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = sorted((ROOT / "tests/golden/tegrastats").glob("*.jsonl"))
RECORDED = ROOT.parent / "shared/data/tegrastats/lines.jsonl"


def cases() -> list[Any]:
    return [
        pytest.param(json.loads(text), id=f"{path.stem}-{number}")
        for path in GOLDEN
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]


def recorded() -> list[dict[str, str]]:
    if not RECORDED.exists():
        pytest.skip(f"recorded lines are not here: {RECORDED}")
    return [json.loads(text) for text in RECORDED.read_text(encoding="utf-8").splitlines()]


def test_every_kind_of_board_has_golden_lines() -> None:
    assert {path.stem for path in GOLDEN} == {
        "nano",
        "tx1-jetpack2",
        "tx2",
        "tx2-nx",
        "xavier-nx-r32",
        "xavier-nx-r35",
        "agx-xavier-r32",
        "agx-xavier-r35",
        "orin-nano",
        "orin-nx",
        "agx-orin-r35",
        "agx-orin-r36",
        "agx-orin-r39",
        "thor-r38",
        "thor-r39",
    }


@pytest.mark.parametrize("case", cases())
def test_a_golden_line_reads_as_written_beside_it(case: dict[str, Any]) -> None:
    assert parse_line(case["line"]).to_json() == case["expect"]


@pytest.mark.parametrize("case", cases())
def test_a_second_look_at_the_same_line_gives_the_same(case: dict[str, Any]) -> None:
    assert parse_line(case["line"]) == parse_line(case["line"] + "\n")


def test_every_recorded_line_is_read_and_fully_understood() -> None:
    for row in recorded():
        reading = parse_line(row["line"])
        assert reading.unknown == (), row["line"]
        assert reading.ram_used_bytes
        assert reading.ram_total_bytes
        assert len(reading.cpus) >= 1 or "CPU [" not in row["line"]


def test_recorded_lines_hold_as_many_values_as_their_text_shows() -> None:
    """Counted in the text by other means than the parser's: signs that only one kind of token has."""
    for row in recorded():
        line = row["line"]
        reading = parse_line(line)
        words = line.split()
        zones = [word for word in words if "@" in word and word.endswith("C") and "@-256C" not in word]
        # A zone may repeat a name only in different case, and then counts apart.
        assert len(reading.temperatures_celsius) == len(zones), line
        powers = (
            [w for w in words if "mW" in w]
            if "mW" in line
            else [
                w
                for before, w in itertools.pairwise(words)
                if "/" in w and w.replace("/", "").isdigit() and before not in ("RAM", "SWAP")
            ]
        )
        assert len(reading.rails_w) == len(powers), line


@pytest.mark.parametrize(
    ("board", "number", "expected"),
    [
        ("Nano", 0, {"POM_5V_IN": 0.933, "POM_5V_GPU": 0.0, "POM_5V_CPU": 0.084}),
        ("AGX Thor", 2, {"VDD_GPU": -0.392, "VDD_CPU_SOC_MSS": 3.924, "VIN_SYS_5V0": 5.064, "VIN": 15.004}),
        ("AGX Xavier 32GB", 1, {"GPU": 0.622, "CPU": 0.466, "SOC": 2.333, "CV": 0, "VDDRQ": 0.311, "SYS5V": 2.564}),
        ("Xavier NX 8GB", 0, {"VDD_IN": 13.671, "VDD_CPU_GPU_CV": 7.499, "VDD_SOC": 2.063}),
        ("TX1", 0, {}),
    ],
)
def test_recorded_rails_have_known_values(board: str, number: int, expected: dict[str, float]) -> None:
    rows = [row for row in recorded() if row["board"] == board]
    assert parse_line(rows[number]["line"]).rails_w == expected
