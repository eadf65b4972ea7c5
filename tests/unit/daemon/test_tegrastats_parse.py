"""Every form that broke other tools, and lines that are cut, joined, mixed or not lines at all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traingov.telemetry import tegrastats as module
from traingov.telemetry import tokens
from traingov.telemetry.tegrastats import NotTegrastats, Reading, parse_line

MHZ = 1_000_000
GOLDEN = Path(__file__).resolve().parents[2] / "golden/tegrastats"
LINES = [json.loads(t)["line"] for p in sorted(GOLDEN.glob("*.jsonl")) for t in p.read_text("utf-8").splitlines()]


def read(rest: str) -> Reading:
    return parse_line(f"RAM 1/2MB {rest}")


@pytest.mark.parametrize(
    ("text", "utilization", "mhz"),
    [
        ("GR3D_FREQ 7% x@1C", 0.07, None),
        ("GR3D_FREQ 7%@998 x@1C", 0.07, 998),
        ("GR3D_FREQ 7%@[621] x@1C", 0.07, 621),
        ("GR3D_FREQ 7%@[305,306] x@1C", 0.07, 306),
        ("GR3D_FREQ @[314,1574,314] x@1C", None, 1574),
        ("GR3D_FREQ @998 x@1C", None, 998),
        ("GR3D 7%@998 x@1C", 0.07, 998),
        ("x@1C", None, None),
        ("GR3D_FREQ 7%@[305,30 x@1C", 0.07, None),
        ("GR3D_FREQ 7%@[] x@1C", 0.07, None),
        ("GR3D_FREQ 7%@[305,junk] x@1C", 0.07, None),
        ("GR3D_FREQ 101%@998 x@1C", None, None),
        ("GR3D_FREQ -1%@998 x@1C", None, None),
        ("GR3D_FREQ 7@998 x@1C", None, None),
        ("GR3D_FREQ nan% x@1C", None, None),
        ("GR3D_FREQ 5%@998 GR3D2_FREQ 90%@1300 x@1C", 0.05, 998),
    ],
)
def test_the_gpu_field_in_each_of_its_forms(text: str, utilization: float | None, mhz: int | None) -> None:
    reading = read(text)
    assert reading.gpu_utilization == utilization
    assert reading.gpu_frequency_hz == (None if mhz is None else mhz * MHZ)
    assert reading.temperatures_celsius == {"x": 1.0}


@pytest.mark.parametrize(
    ("text", "rails"),
    [
        ("VDD_IN 136/140", {"VDD_IN": 0.136}),
        ("VDD_IN 136mW/140mW", {"VDD_IN": 0.136}),
        ("VDD_IN 136mW/140mW/150mW", {"VDD_IN": 0.136}),
        ("VDD_IN 136mW/140", {"VDD_IN": 0.136}),
        ("VDD_IN 136mW", {"VDD_IN": 0.136}),
        ("VDD_GPU -392mW/-392mW", {"VDD_GPU": -0.392}),
        ("NC 0mW/0mW VDDQ 5mW/5mW NC 1mW/1mW", {"NC": 0.0, "VDDQ": 0.005, "NC_2": 0.001}),
        ("BRAND_NEW 5mW/5mW", {"BRAND_NEW": 0.005}),
        ("VDD_IN 136", {}),
        ("VDD_IN 136m", {}),
        ("VDD_IN 1_3mW/5mW", {}),
        ("VDD_IN +5mW/5mW", {}),
        ("VDD_IN ٣mW/5mW", {}),
        ("VDD_IN nanmW/5mW", {}),
        ("VDD_IN --5mW/5mW", {}),
        ("VDD_IN " + "9" * 4000 + "mW/1mW", {}),
        ("epoch 3/10", {}),
        ("VDD_IN 3/10MB", {}),
        ("CPUs 3/4", {}),
    ],
)
def test_a_rail_in_each_of_its_forms(text: str, rails: dict[str, float]) -> None:
    assert read(text).rails_w == rails


def test_a_token_that_nothing_understands_is_kept() -> None:
    assert read("WARNING: bus error VDD_IN 5/5 FOO").unknown == ("WARNING:", "bus", "error", "FOO")


def test_a_rail_and_a_zone_of_one_name_do_not_clash() -> None:
    reading = read("GPU@46C CPU@45.5C GPU 622mW/1730mW CPU 466mW/800mW CPU [1%@5]")
    assert reading.rails_w == {"GPU": 0.622, "CPU": 0.466}
    assert reading.temperatures_celsius == {"GPU": 46.0, "CPU": 45.5}
    assert len(reading.cpus) == 1


def test_what_stands_twice_counts_as_it_stood_first() -> None:
    """A cut line must not show another value than the whole one, so the first has to win."""
    reading = read("GR3D_FREQ 1%@5 GR3D_FREQ 2%@6 EMC_FREQ 3%@7 EMC_FREQ 4%@8 CPU [5%@9] CPU [6%@1,off] x@1C x@2C")
    assert (reading.gpu_utilization, reading.gpu_frequency_hz) == (0.01, 5 * MHZ)
    assert (reading.emc_utilization, reading.emc_frequency_hz) == (0.03, 7 * MHZ)
    assert len(reading.cpus) == 1
    assert reading.temperatures_celsius == {"x": 1.0}


def test_a_gated_zone_has_no_temperature() -> None:
    assert read("CV0@-256C gpu@-256C/-256C ao@-12.5C").temperatures_celsius == {"ao": -12.5}


@pytest.mark.parametrize("bad", ["x@nanC", "x@infC", "x@1e5C", "x@C", "@5C", "x@5.C", "x@5F", "x@1234567C"])
def test_what_only_looks_like_a_temperature_is_none(bad: str) -> None:
    reading = read(f"{bad} y@1C")
    assert reading.temperatures_celsius == {"y": 1.0}
    assert bad in reading.unknown


def test_an_unreadable_core_keeps_its_place() -> None:
    cpus = read("CPU [1%@5,junk,off,7%] x@1C").cpus
    assert [cpu.online for cpu in cpus] == [True, None, False, True]
    assert [cpu.frequency_hz for cpu in cpus] == [5 * MHZ, None, None, None]


@pytest.mark.parametrize(
    ("head", "timestamp", "unknown"),
    [
        ("01-02-2025 03:04:05 ", "01-02-2025 03:04:05", ()),
        ("1739645853.5189943---", "1739645853.5189943", ()),
        ("1739645853 ", "1739645853", ()),
        ("2025-01-02T03:04:05.123Z ", "2025-01-02T03:04:05.123Z", ()),
        ("[2025-01-02 03:04:05] ", "2025-01-02 03:04:05", ()),
        ("2025-01-02 03:04:05,123: ", "2025-01-02 03:04:05,123", ()),
        ("noise 01-02-2025 03:04:05 ", "01-02-2025 03:04:05", ("noise",)),
        ("1-02-2025 03:04:05 ", None, ("1-02-2025", "03:04:05")),
        ("hello ", None, ("hello",)),
        ("0 1739645853.25---", "1739645853.25", ("0",)),
        ("", None, ()),
    ],
)
def test_what_stands_before_ram(head: str, timestamp: str | None, unknown: tuple[str, ...]) -> None:
    reading = parse_line(f"{head}RAM 5/6MB VDD_IN 1/2")
    assert (reading.timestamp, reading.unknown) == (timestamp, unknown)
    assert reading.rails_w == {"VDD_IN": 0.001}


def test_of_two_lines_in_one_the_last_counts() -> None:
    reading = parse_line("RAM 1/9MB VDD_IN 1/1 VDD_SOC 13601-02-2025 03:04:05 RAM 2/9MB VDD_IN 7/7")
    assert reading.rails_w == {"VDD_IN": 0.007}
    assert reading.ram_used_bytes == 2 << 20


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "hello",
        "IRAM 0/252kB(lfb 252kB)",
        "RAM",
        "RAM ",
        "RAM 5",
        "RAM x/yMB",
        "RAM 0/252kB(lfb 2",
        "SRAM 1/2MB",
    ],
)
def test_other_text_is_not_tegrastats(text: str) -> None:
    with pytest.raises(NotTegrastats, match="no tegrastats line"):
        parse_line(text)


def test_a_hostile_line_takes_time_in_proportion_to_its_length() -> None:
    """Counted, not timed: what a long line of repeated names leaves behind is bounded."""
    reading = read("NC 0mW/0mW " * 700)
    assert set(reading.rails_w) == {"NC", "NC_2"}
    assert reading.unknown == ("NC",) * 698


def test_no_cache_grows_without_bound() -> None:
    for number in range(3 * tokens.CACHE_LIMIT):
        rest = f"a{number}@5C GR3D_FREQ 1%@{number} x{number} 5mW/5mW E{'x' * 70}_FREQ 1%"
        parse_line(f"{number:010} RAM {number}/{number}MB {rest}")
    assert len(tokens.kinds) <= tokens.CACHE_LIMIT

    assert len(module._heads) <= 64
    assert len(module._memories) <= 64
    assert max(map(len, tokens.kinds)) <= 64
    assert parse_line(LINES[0]).unknown == ()


def values(reading: Reading) -> dict[str, object]:
    """Every value of a reading, one by one, under a name."""
    flat: dict[str, object] = {
        name: value
        for name, value in reading.to_json().items()
        if name not in ("rails_w", "temperatures_celsius", "cpus", "unknown") and value is not None
    }
    flat.update({f"rail {name}": value for name, value in reading.rails_w.items()})
    flat.update({f"zone {name}": value for name, value in reading.temperatures_celsius.items()})
    for number, cpu in enumerate(reading.cpus):
        flat[f"cpu {number} online"] = cpu.online
        flat.update({f"cpu {number} utilization": cpu.utilization} if cpu.utilization is not None else {})
        flat.update({f"cpu {number} clock": cpu.frequency_hz} if cpu.frequency_hz is not None else {})
    return flat


@pytest.mark.parametrize("line", LINES)
def test_a_line_cut_anywhere_at_its_end_never_gives_another_value(line: str) -> None:
    whole = values(parse_line(line)).items()
    for end in range(len(line)):
        try:
            part = values(parse_line(line[:end]))
        except NotTegrastats:
            continue
        assert part.items() <= whole, line[:end]


@given(st.sampled_from(LINES), st.integers(0, 700), st.integers(0, 700))
def test_any_piece_of_a_line_gives_no_other_value(line: str, begin: int, end: int) -> None:
    try:
        part = values(parse_line(line[begin:end]))
    except NotTegrastats:
        return
    assert part.items() <= values(parse_line(line)).items()


@given(st.sampled_from(LINES), st.integers(0, 700), st.sampled_from(LINES))
def test_a_cut_line_that_runs_into_the_next_gives_the_next(line: str, end: int, following: str) -> None:
    joined, alone = values(parse_line(line[:end] + " " + following)), values(parse_line(following))
    joined.pop("timestamp", None)  # what is left of the cut line may be its time stamp, and then it is read as one
    alone.pop("timestamp", None)
    assert joined == alone


TOKENS = st.sampled_from(sorted({token for line in LINES for token in line.split()}))


@given(st.lists(st.one_of(TOKENS, st.text(max_size=8)), max_size=30).map(" ".join))
@example("RAM 5/6MB @")
@example("RAM 5/6MB ( CPU [")
@example("RAM 5/6MB CPU ]@5")
def test_no_text_breaks_the_parser_or_gives_a_value_that_is_no_number(text: str) -> None:
    try:
        reading = parse_line("RAM 5/6MB " + text)
    except NotTegrastats:
        return
    json.dumps(reading.to_json(), allow_nan=False)
    assert all(math.isfinite(power) for power in reading.rails_w.values())
    for share in (reading.gpu_utilization, reading.emc_utilization, *(cpu.utilization for cpu in reading.cpus)):
        assert share is None or 0 <= share <= 1


@given(st.lists(st.lists(TOKENS, max_size=12), min_size=2, max_size=6))
def test_what_was_read_before_does_not_change_what_is_read(lines: list[list[str]]) -> None:
    texts = ["RAM 5/6MB " + " ".join(line) for line in lines]

    def outcome(text: str) -> object:
        try:
            return parse_line(text)
        except NotTegrastats as error:
            return str(error)

    together = [outcome(text) for text in texts]
    for text, known in zip(texts, together, strict=True):
        tokens.kinds.clear()
        tokens.kinds.update(tokens._FIXED)
        module._heads.clear()
        module._memories.clear()
        assert outcome(text) == known


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    for text in (data.decode("ascii", "replace"), "RAM 1/2MB " + data.decode("latin-1")):
        try:
            json.dumps(parse_line(text).to_json(), allow_nan=False)
        except NotTegrastats:
            continue
