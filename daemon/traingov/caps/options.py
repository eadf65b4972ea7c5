"""The configuration's ``cap_sources`` as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from traingov_policies.cap_file import CapFile
from traingov_policies.caps import BatteryRule, Schedule
from traingov_policies.values import Cap


class CapOptionError(ValueError):
    """A value makes no sense; ``keys`` lead to it in the document."""

    def __init__(self, keys: list[str], text: str) -> None:
        super().__init__(text)
        self.keys = keys


@dataclass(frozen=True)
class CapOptions:
    """What is configured besides the fixed cap."""

    schedule: Schedule = field(default_factory=Schedule)
    file: CapFile | None = None
    rules: tuple[BatteryRule, ...] = ()
    hysteresis_percent: float = 3.0
    battery_interval_s: float = 5.0


def cap_options(values: Mapping[str, Any]) -> CapOptions:
    """From a document that the schema has let through, whole or a part of it. Raises CapOptionError."""
    schedule, file, battery = (values.get(key) or {} for key in ("schedule", "file", "battery"))
    rules = enumerate(battery.get("rules") or ())
    return CapOptions(
        _schedule(schedule, ["cap_sources", "schedule"]),
        _file(file, ["cap_sources", "file"]),
        tuple(_rule(rule, ["cap_sources", "battery", "rules", str(number)]) for number, rule in rules),
        battery.get("hysteresis_percent", 3.0),
        battery.get("interval_s", 5.0),
    )


def _schedule(values: Mapping[str, Any], keys: list[str]) -> Schedule:
    entries: dict[str, Cap | None] = {}
    for label, cap in values.items():
        with _at([*keys, label]):
            entries[label] = None if cap is None else cap_of(cap)
            Schedule.of(entries)
    return Schedule.of(entries)


def _file(values: Mapping[str, Any], keys: list[str]) -> CapFile | None:
    path, fallback = values.get("path"), values.get("fallback")
    with _at([*keys, "fallback"]):
        kept = None if fallback is None else cap_of(fallback)
    if path is None:
        return None
    return CapFile(path, values.get("stale_after_s", 10.0), values.get("max_age_s"), kept)


def _rule(values: Mapping[str, Any], keys: list[str]) -> BatteryRule:
    with _at([*keys, "cap"]):
        return BatteryRule(cap_of(values["cap"]), values.get("when", "always"), values.get("below_percent"))


def cap_of(values: Mapping[str, Any]) -> Cap:
    """A cap as the configuration writes it. Raises ValueError."""
    return Cap(**{key: value for key, value in values.items() if value is not None})


@contextmanager
def _at(keys: list[str]) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise CapOptionError(keys, str(error)) from None
