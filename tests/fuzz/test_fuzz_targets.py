"""Every fuzz target on its seeds, on what once broke it, and on seeds damaged a little, always in the same ways.

The search for new inputs, guided by coverage, is run.py's.
"""

from __future__ import annotations

import json
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from run import NAMES
from targets import TARGETS, seeds

DAMAGED = 25
_TOKENS = (b"null", b"[]", b"{}", b'""', b"-1", b"1e999", b"NaN", b"9" * 400, b"\x00", b"\xff\xfe", b"\n", b"[" * 3000)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """``data`` cut off, with bytes changed, with a token put in, or with a part repeated."""
    out = bytearray(data)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(out) + 1)
        kind = dice.randrange(4)
        if kind == 0:
            del out[at:]
        elif kind == 1 and at < len(out):
            out[at] = dice.randrange(256)
        elif kind == 2:
            out[at : at + dice.randrange(12)] = dice.choice(_TOKENS)
        else:
            out[at:at] = out[at : at + dice.randrange(200)]
    return bytes(out)


def test_the_runner_knows_every_target() -> None:
    assert set(NAMES) == set(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_a_target_holds_on_real_inputs_and_on_those_that_once_broke_it(name: str) -> None:
    known = seeds(name)
    assert known
    for data in (b"", *known):
        TARGETS[name](data)


@pytest.mark.parametrize("name", NAMES)
def test_a_target_holds_on_inputs_damaged_a_little(name: str) -> None:
    dice, known = random.Random(zlib.crc32(name.encode())), seeds(name)
    for _ in range(DAMAGED):
        TARGETS[name](damaged(dice.choice(known), dice))


DEEP = b"[" * 100_000
LONG = b"9" * 10_000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [DEEP, LONG, b'{"schema":' + DEEP, b"a: " + LONG], ids=["deep", "long", "in", "yaml"])
def test_nesting_and_numbers_without_end_are_refused_as_any_wrong_input(name: str, data: bytes) -> None:
    TARGETS[name](data)
    TARGETS[name](data + b"\n")


@pytest.mark.parametrize("name", ["kept-caps", "restore-journal", "tables", "relations", "curves", "sweeps", "tree"])
def test_a_file_cut_off_at_any_byte_is_set_aside_or_passed_over(name: str) -> None:
    for data in seeds(name):
        step = 1 if len(data) < 1000 else len(data) // 500
        for cut in range(0, len(data), step):
            TARGETS[name](data[:cut])


def test_a_history_cut_off_anywhere_is_set_aside_and_begun_anew() -> None:
    data = seeds("history")[-1]
    for cut in range(0, len(data), 1009):
        TARGETS["history"](data[:cut])


ODD = (None, [], {}, "", "x", -1, 0, True, 1e308, 10**400, float("inf"), float("nan"), [[]], {"a": 1})


def altered(value: Any) -> Iterator[Any]:
    """``value`` with one part of it, at any depth, replaced by something odd or left out."""
    yield from ODD
    if isinstance(value, dict):
        for key, item in value.items():
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, key: other} for other in altered(item))
    elif isinstance(value, list):
        for at, item in enumerate(value[:4]):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in altered(item))


@pytest.mark.parametrize(
    "name", ["kept-caps", "restore-journal", "tables", "relations", "curves", "tree", "cap-file", "check-json"]
)
def test_an_odd_value_anywhere_in_a_document_is_refused_or_does_no_harm(name: str) -> None:
    for data in seeds(name):
        try:
            whole = json.loads(data)
        except ValueError:
            continue
        for other in altered(whole):
            TARGETS[name](json.dumps(other).encode())
