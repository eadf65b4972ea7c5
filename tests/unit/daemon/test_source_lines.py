"""Splitting bytes into lines, whatever pieces they come in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from traingov.telemetry.lines import LineSplitter


@given(st.lists(st.binary(max_size=40), max_size=20), st.lists(st.integers(1, 30), max_size=40))
def test_lines_do_not_depend_on_the_pieces_they_come_in(parts: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(parts) + b"\n"
    splitter, lines, at = LineSplitter(), [], 0
    for length in [*cuts, len(data)]:
        piece = data[at : at + length]
        at += length
        if piece:
            lines += splitter.feed(piece, 1000)
    whole = [line.decode("ascii", "replace") for line in data.split(b"\n")[:-1]]
    assert [line.removesuffix("\n") for line in lines] == whole


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=30))
def test_what_is_kept_of_an_unfinished_line_is_bounded(parts: list[bytes]) -> None:
    splitter = LineSplitter(limit=32)
    for part in parts:
        for line in splitter.feed(part, 1000) if part else []:
            assert len(line.removesuffix("\n")) <= 32
        assert len(splitter._rest) <= 32


def test_a_line_that_is_too_long_is_dropped_and_counted_once() -> None:
    splitter = LineSplitter(limit=10)
    assert splitter.feed(b"x" * 8, 9) == []
    assert splitter.feed(b"x" * 8, 9) == []
    assert splitter.feed(b"x" * 8, 9) == []
    assert splitter.oversized == 1
    assert splitter.feed(b"x\nnext\n", 9) == ["next"]
    assert splitter.oversized == 1
    assert splitter.feed(b"y" * 11 + b"\nok\n", 9) == ["ok"]
    assert splitter.oversized == 2


def test_of_too_many_lines_the_newest_are_kept() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"1\n2\n3\n4\n", 2) == ["3", "4"]
    assert splitter.skipped == 2


def test_half_a_line_is_forgotten_with_its_writer() -> None:
    splitter = LineSplitter()
    splitter.feed(b"VDD_IN 13", 9)
    splitter.reset()
    assert splitter.feed(b"RAM 1/2MB\n", 9) == ["RAM 1/2MB\n"]
