"""Feeds a recording's events to a fresh governor; the actions must come out the same (DESIGN 3)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from traingov_policies.codec import decode_event, decode_header, encode_action
from traingov_policies.governor import Governor
from traingov_policies.invariants import violations


@dataclass(frozen=True)
class Replay:
    """``difference`` describes the first action that came out otherwise, None when all are the same."""

    events: int
    actions: int
    duration_s: float
    difference: str | None
    violations: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether the actions are the same and every invariant holds."""
        return self.difference is None and not self.violations


def read(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The entries of a recording. Raises ValueError naming the line; a half last line (a crash) is left out."""
    pending: tuple[int, str] | None = None
    for number, line in enumerate(lines, 1):
        if pending is not None:
            yield _entry(*pending)
        pending = (number, line)
    if pending is not None and pending[1].endswith("\n"):
        yield _entry(*pending)


def replay(entries: Iterable[dict[str, Any]], tolerance: float = 0.0) -> Replay:
    """Replay a recording. Raises ValueError when it is none.

    ``tolerance``: relative difference that numbers may have. 0 for a recording of this build; linear algebra of
    another NumPy or another processor differs in its last digits.
    """
    held = list(entries)
    if not held:
        raise ValueError("recording: empty")
    governor = Governor(*decode_header(held[0]))
    expected: list[dict[str, Any]] = []
    produced: list[dict[str, Any]] = []
    difference: str | None = None
    events = actions = 0
    first_s = last_s = None
    for number, entry in enumerate(held[1:], 2):
        if "event" in entry:
            if difference is None:
                difference = _compare(expected, produced, last_s, tolerance)
            try:
                event = decode_event(entry)
                first_s = event.t_s if first_s is None else first_s
                last_s = event.t_s
                produced = [encode_action(action) for action in governor.handle(event)]
            except Exception as error:  # values that no service wrote may do anything to a governor
                raise ValueError(f"recording: line {number}: {_told(error)}") from error
            expected = []
            events += 1
        elif "action" in entry:
            expected.append(entry)
            actions += 1
    difference = difference or _compare(expected, produced, last_s, tolerance)
    duration = 0.0 if first_s is None or last_s is None else last_s - first_s
    try:
        broken = tuple(violations(held))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"recording: an entry is not as traingov writes it: {_told(error)}") from error
    return Replay(events, actions, duration, difference, broken)


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    return text if type(error) is ValueError else f"{type(error).__name__} {text}"


def _entry(number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"recording: line {number} is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
        raise ValueError(f"recording: line {number} is no JSON that can be read here") from None
    if not isinstance(value, dict):
        raise ValueError(f"recording: line {number} is not an object")
    return value


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key], tolerance) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _compare(
    expected: list[dict[str, Any]], produced: list[dict[str, Any]], t_s: float | None, tolerance: float
) -> str | None:
    normal = json.loads(json.dumps(produced))
    if normal == expected or (tolerance > 0 and _same(normal, expected, tolerance)):
        return None
    for want, got in zip([*expected, None], [*normal, None], strict=False):
        if want != got:
            return f"at t={t_s} s: recorded {json.dumps(want)}, now {json.dumps(got)}"
    return f"at t={t_s} s: recorded {len(expected)} actions, now {len(normal)}"
