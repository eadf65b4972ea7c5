"""A cap in a file: what a text means, half-written ones, and what holds while the file cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.cap_file import CapFile, FileLook, FileWatch, parse_cap
from traingov_policies.values import Cap


@pytest.mark.parametrize(
    ("text", "cap"),
    [
        ("7\n", Cap(7.0)),
        (" 7.5 ", Cap(7.5)),
        ("null\n", None),
        ('{"power_w": 7}', Cap(7.0)),
        ('{"power_w": 7, "window_s": 2, "burst_w": 9}', Cap(7.0, 2.0, 9.0)),
        ('{"power_w": 7, "burst_w": null}', Cap(7.0)),
        ('{"power_w": null, "source": "no source"}', None),
        ('{"power_w": 7, "window_s": 1.0, "burst_w": null, "source": "command", "uid": 0, "set_at": "x", '
         '"sources": [], "battery": null, "problems": {}}', Cap(7.0)),
    ],
)  # fmt: skip
def test_watts_or_an_object_as_cap_get_prints_it_are_a_cap(text: str, cap: Cap | None) -> None:
    assert parse_cap(text.encode()) == cap


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"7 W\n", "neither a number of watts nor JSON"),
        (b"7,5\n", "neither a number of watts nor JSON"),
        (b"-3\n", "must be a positive number of watts, not -3"),
        (b"0\n", "must be a positive number of watts"),
        (b"1e300\n", "must be a positive number of watts"),
        (b"1e999\n", "must be a finite number"),
        (b"NaN\n", "must be a finite number"),
        (b"9" * 400 + b"\n", "must be a finite number"),
        (b"true\n", "must be a finite number"),
        (b'"7"\n', "must be a finite number"),
        (b"[7]\n", "must be a finite number"),
        (b'{"power_w": 7', "neither a number of watts nor JSON"),
        (b"{}", "has no member power_w"),
        (b'{"power_w": "7"}', "power_w must be a finite number"),
        (b'{"power_w": 7, "burst_W": 9}', "unknown member 'burst_W'"),
        (b'{"power_w": 7, "burst_w": 6}', "burst_w 6.0 must not be below power_w 7.0"),
        (b'{"power_w": 7, "window_s": 0}', "window_s must lie between"),
        (b"\xff\xfe7\n", "is not UTF-8 text"),
        (b"7" * 5000, "is longer than 4096 bytes"),
        (b"[" * 4000, "neither a number of watts nor JSON"),
    ],
)
def test_anything_else_is_refused_and_the_text_says_why(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=".") as error:
        parse_cap(content)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=60))
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    try:
        cap = parse_cap(content)
    except ValueError:
        return
    assert cap is None or cap.power_w > 0


FILE = CapFile("/run/cap", stale_after_s=10.0, fallback=Cap(4.0))


def look(text: str, stamp: int = 1) -> FileLook:
    return FileLook(text.encode(), (stamp,))


GONE = FileLook(None, error="is not there")


def asked(watch: FileWatch, now_s: float) -> tuple[float | None, str | None]:
    claim = watch.claim(now_s)
    return (None, None) if claim is None else (claim.cap.power_w, claim.source)


def test_before_the_first_look_and_after_a_bad_first_one_the_fallback_holds() -> None:
    watch = FileWatch(FILE, 0.0)
    assert asked(watch, 0.0) == (4.0, "file /run/cap, fallback")
    assert watch.problem(0.0) is None, "the first look is on its way"
    watch.see(0.5, GONE)
    assert asked(watch, 0.5) == (4.0, "file /run/cap, fallback")
    assert watch.problem(0.5) == "/run/cap is not there: the fallback of 4 W holds"


def test_what_was_read_last_holds_while_the_file_is_bad_and_then_the_fallback() -> None:
    watch = FileWatch(FILE, 0.0)
    watch.see(1.0, look("7\n"))
    assert asked(watch, 1.0) == (7.0, "file /run/cap")
    watch.see(2.0, look("oops\n"))
    assert asked(watch, 10.9) == (7.0, "file /run/cap")
    assert "neither a number of watts nor JSON: what it said last holds for 10 s" in (watch.problem(10.9) or "")
    assert asked(watch, 11.1) == (4.0, "file /run/cap, fallback")
    assert "the fallback of 4 W holds" in (watch.problem(11.1) or "")
    watch.see(12.0, look("6\n"))
    assert asked(watch, 12.0) == (6.0, "file /run/cap")
    assert watch.problem(12.0) is None


def test_without_a_fallback_a_lost_file_asks_for_nothing_in_the_end() -> None:
    watch = FileWatch(CapFile("/run/cap"), 0.0)
    watch.see(1.0, look("7\n"))
    watch.see(2.0, GONE)
    assert asked(watch, 9.0)[0] == 7.0
    assert asked(watch, 12.0) == (None, None)
    assert watch.problem(12.0) == "/run/cap is not there: it asks for nothing (no fallback is configured)"


def test_a_number_without_an_end_of_line_counts_when_two_looks_saw_the_same() -> None:
    watch = FileWatch(FILE, 0.0)
    watch.see(1.0, look("15\n"))
    watch.see(1.4, look("1"))  # the beginning of 12.5
    assert asked(watch, 1.4)[0] == 15.0
    watch.see(1.8, look("12.5"))
    assert asked(watch, 1.8)[0] == 15.0
    watch.see(2.2, look("12.5"))
    assert asked(watch, 2.2)[0] == 12.5


def test_a_file_that_is_not_written_anew_in_time_counts_no_more() -> None:
    watch = FileWatch(CapFile("/run/cap", 10.0, 30.0, Cap(4.0)), 0.0)
    for t in range(1, 60):
        watch.see(float(t), look("7\n", stamp=1 if t < 20 else 2))  # written anew once, at 20 s
    assert asked(watch, 49.0)[0] == 7.0
    assert asked(watch, 51.0)[0] == 4.0
    assert watch.problem(51.0) == "/run/cap was not written for more than 30 s: the fallback of 4 W holds"


def test_a_file_system_that_does_not_answer_is_a_lost_file() -> None:
    watch = FileWatch(FILE, 0.0)
    watch.see(1.0, look("7\n"))
    assert asked(watch, 12.0)[0] == 4.0
    assert watch.problem(12.0) == "/run/cap cannot be read, no answer: the fallback of 4 W holds"
    never = FileWatch(FILE, 0.0)
    assert "no answer" in (never.problem(10.5) or "")
