"""A cap that another program writes to a file: what a text means, and what holds while it cannot be read. Pure.

The file holds a number of watts, or a JSON object with ``power_w`` and optionally ``window_s`` and ``burst_w``, as
``traingov cap get --json`` prints it; ``null`` asks for nothing. What was read last holds for ``stale_after_s`` after
the last good look; then, and until there was one, the fallback does, where one is configured.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from .caps import Claim
from .values import Cap

MAX_BYTES = 4096
_KNOWN = ("power_w", "window_s", "burst_w")
_IGNORED = {"source", "uid", "set_at", "override", "expires_in_s", "sources", "battery", "problems"}


@dataclass(frozen=True)
class CapFile:
    """Which file, and how it is trusted. ``max_age_s``: it counts only if it was written anew within so long."""

    path: str
    stale_after_s: float = 10.0
    max_age_s: float | None = None
    fallback: Cap | None = None


@dataclass(frozen=True)
class FileLook:
    """One look at the file: its content, or why there is none. ``stamp`` is another one after each writing."""

    content: bytes | None
    stamp: tuple[int, ...] | None = None
    error: str | None = None


def parse_cap(content: bytes) -> Cap | None:
    """The cap that a text asks for, None for ``null``. Raises ValueError saying what is wrong with it."""
    if len(content) > MAX_BYTES:
        raise ValueError(f"is longer than {MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    if not text:
        raise ValueError("is empty")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is neither a number of watts nor JSON") from None
    if value is None:
        return None
    if not isinstance(value, dict):
        return Cap(_number("power_w", value))
    unknown = sorted(set(value) - {*_KNOWN, *_IGNORED})
    if unknown:
        raise ValueError(f"has an unknown member {unknown[0][:40]!a} (known: {', '.join(_KNOWN)})")
    if "power_w" not in value:
        raise ValueError("has no member power_w")
    if value["power_w"] is None:
        return None
    return Cap(**{name: _number(name, value[name]) for name in _KNOWN if value.get(name) is not None})


def _number(name: str, value: Any) -> float:
    try:
        number = float("nan") if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, not {str(value)[:40]!a}")
    return number


class FileWatch:
    """Turns looks at the file, from ``begun_s`` on, into what it asks for. Times are CLOCK_MONOTONIC seconds."""

    def __init__(self, file: CapFile, begun_s: float) -> None:
        self.file = file
        self._cap: Cap | None = None
        self._begun_s = begun_s
        self._good_s: float | None = None
        self._renewed_s = begun_s
        self._stamp: tuple[int, ...] | None = None
        self._before: bytes | None = None
        self._error: str | None = None

    def see(self, now_s: float, look: FileLook) -> None:
        """Take a look. A text without an end of line may be half of one: it counts when two looks saw the same."""
        before, self._before = self._before, look.content
        if look.content is None:
            self._error = look.error or "cannot be read"
            return
        try:
            cap = parse_cap(look.content)
        except ValueError as error:
            self._error = str(error).removeprefix("cap: ")
            return
        if not look.content.endswith((b"\n", b"}")) and look.content != before:
            return
        self._cap, self._good_s, self._error = cap, now_s, None
        if look.stamp != self._stamp:
            self._stamp, self._renewed_s = look.stamp, now_s

    def claim(self, now_s: float) -> Claim | None:
        """What the file asks for now; None for nothing."""
        if self._trusted(now_s):
            return None if self._cap is None else Claim(f"file {self.file.path}", self._cap)
        fallback = self.file.fallback
        return None if fallback is None else Claim(f"file {self.file.path}, fallback", fallback)

    def problem(self, now_s: float) -> str | None:
        """What is wrong with the file and what holds meanwhile, in one line; None while all is well."""
        trouble = self._trouble(now_s)
        if trouble is None:
            return None
        if self._trusted(now_s):
            holds = f"what it said last holds for {self.file.stale_after_s:g} s"
        elif self.file.fallback is not None:
            holds = f"the fallback of {self.file.fallback.power_w:g} W holds"
        else:
            holds = "it asks for nothing (no fallback is configured)"
        return f"{self.file.path} {trouble}: {holds}"

    def _trouble(self, now_s: float) -> str | None:
        if self._error is not None:
            return self._error
        if now_s - (self._begun_s if self._good_s is None else self._good_s) > self.file.stale_after_s:
            return "cannot be read, no answer"
        return f"was not written for more than {self.file.max_age_s:g} s" if self._aged(now_s) else None

    def _trusted(self, now_s: float) -> bool:
        """Whether what was read last holds, be there trouble or not."""
        fresh = self._good_s is not None and now_s - self._good_s <= self.file.stale_after_s
        return fresh and not self._aged(now_s)

    def _aged(self, now_s: float) -> bool:
        return self.file.max_age_s is not None and now_s - self._renewed_s > self.file.max_age_s
