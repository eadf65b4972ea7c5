"""The virtual board's tegrastats lines against real ones, token by token."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from traingov_sim.board.boardspec import board_names, load_board
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.board.sensor import Reading
from traingov_sim.board.tegrastats_text import TegrastatsText

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "tegrastats" / "lines.jsonl"


def shape(line: str) -> list[str]:
    """Tokens with every number replaced: names, order, units and separators stay."""
    text = re.sub(r"\[([^]@]+@\d+,?|off,?)+\]", "[CORES]", line)
    text = text.replace("@-256C", "@0C")  # a zone whose part is off now
    return re.sub(r"\d+(\.\d+)?", "N", text).split()


def real_lines(*wanted: str) -> list[str]:
    if not REAL.exists():
        pytest.skip(f"{REAL} is absent: the real lines are not part of the project")
    rows = [json.loads(text) for text in REAL.read_text(encoding="utf-8").splitlines()]
    lines = [row["line"] for row in rows if all(part in row["line"] for part in wanted)]
    assert lines, f"no real line holds {wanted}"
    return lines


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("nano", ("POM_5V_IN", "IRAM", "GR3D_FREQ 0%@76", "SWAP", "APE 25")),
        ("tx2-nx", ("VDD_SYS_GPU", "3830MB", "MTS fg")),
        ("tx2", ("VDD_4V0_WIFI", "SWAP 53/3925MB", "VDD_SYS_GPU")),
        ("xavier-nx", ("6851MB", "VIC_FREQ", "VDD_CPU_GPU_CV")),
        ("agx-xavier", ("31011MB", "GPU 622mW", "SYS5V")),
        ("orin-nano", ("7620MB", "GR3D_FREQ 63%@[621]")),
        ("orin-nx", ("15388MB", "GR3D2_FREQ")),
        ("agx-orin-r35", ("30536MB", "NC 0mW/0mW")),
        ("agx-orin", ("@[305,305]", "62841MB", "VDDQ_VDD2_1V8AO")),
        ("thor", ("GR3D_FREQ @[314,314,314]", "125772MB", "VIN_SYS_5V0")),
    ],
)
def test_a_line_has_the_shape_of_the_real_boards(name: str, wanted: tuple[str, ...]) -> None:
    board = VirtualBoard(load_board(name))
    line = TegrastatsText(board.spec).line(board.sensors(1.0), "10-26-2025 05:10:55")
    real = real_lines(*wanted)
    assert shape(line) in [shape(text) for text in real], f"{line}\nlike none of\n" + "\n".join(real)


@pytest.mark.parametrize("name", board_names())
def test_the_second_figure_of_a_rail_is_its_mean_since_this_run_began(name: str) -> None:
    board = VirtualBoard(load_board(name))
    snapshot = board.sensors(1.0)
    text = TegrastatsText(board.spec)
    rail = board.spec.tegrastats.rails[0]
    at = [r.name for r in board.spec.rails].index(rail)
    pairs = []
    for milliwatts in (1000, 2000, 4001):
        readings = list(snapshot.readings)
        readings[at] = Reading(5000, 0, milliwatts)
        line = text.line(replace(snapshot, readings=tuple(readings)))
        found = re.search(rf"{rail} (\d+)(?:mW)?/(\d+)", line)
        assert found is not None
        pairs.append((int(found[1]), int(found[2])))
    assert pairs == [(1000, 1000), (2000, 1500), (4001, 2333)]


def test_a_missing_rail_and_a_core_that_is_off_show_as_the_real_tool_shows_them() -> None:
    board = VirtualBoard(load_board("nano"))
    board.set_power_mode(1, 0.5)
    board.sensor.set_fault("missing", ["POM_5V_GPU"])
    line = TegrastatsText(board.spec).line(board.sensors(1.0))
    assert "POM_5V_GPU" not in line
    assert re.search(r"POM_5V_IN \d+/\d+ POM_5V_CPU \d+/\d+$", line)
    assert re.search(r"CPU \[\d+%@\d+,\d+%@\d+,off,off\]", line)


def test_the_line_of_r39_adds_the_highest_value_so_far_to_rails_and_zones() -> None:
    board = VirtualBoard(load_board("thor-r39"))
    text = TegrastatsText(board.spec)
    snapshot = board.sensors(1.0)
    at = [r.name for r in board.spec.rails].index("VIN")
    lines = []
    for milliwatts in (20000, 30000, 10000):
        readings = list(snapshot.readings)
        readings[at] = Reading(20000, 0, milliwatts)
        lines.append(text.line(replace(snapshot, readings=tuple(readings)), "x"))
    assert "VIN 10000mW/20000mW/30000mW" in lines[-1]
    assert re.search(r"tj@[\d.]+C/[\d.]+C", lines[-1])
    assert re.search(r"CPU \[(\d+%,){13}\d+%\]@\d+ ", lines[-1])


def test_two_unconnected_rails_of_one_name_are_both_in_the_line_of_an_orin_of_r35() -> None:
    board = VirtualBoard(load_board("agx-orin-r35"))
    line = TegrastatsText(board.spec).line(board.sensors(1.0), "x")
    assert line.count("NC 0mW/0mW") == 2
    assert line.count("@-256C") == 3


def test_an_unreadable_zone_is_not_in_the_line_and_half_degrees_print_as_such() -> None:
    orin = VirtualBoard(load_board("agx-orin"))
    assert "cv0@" not in TegrastatsText(orin.spec).line(orin.sensors(1.0), "x")
    nano = VirtualBoard(load_board("nano"))
    line = TegrastatsText(nano.spec).line(nano.sensors(1.0))
    assert re.search(r"AO@\d+(\.5)?C ", line)


def test_temperatures_in_a_line_follow_the_board() -> None:
    board = VirtualBoard(load_board("nano"))
    text = TegrastatsText(board.spec)
    cold = re.search(r"GPU@([\d.]+)C", text.line(board.sensors(1.0)))
    board.thermal.board_celsius = 60.0
    warm = re.search(r"GPU@([\d.]+)C", text.line(board.sensors(2.0)))
    assert cold is not None
    assert warm is not None
    assert float(cold[1]) < 30
    assert float(warm[1]) > 55
