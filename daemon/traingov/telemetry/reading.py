"""What one line of tegrastats says, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

_LONGEST_KNOWN_LIST: Final = 512  # characters; the cores of a longer list (Thor's 14 take 126) are not remembered


@dataclass(frozen=True)
class Cpu:
    """One core as tegrastats prints it.

    ``online`` is False for ``off`` and None where the entry could not be read; ``utilization`` is 0..1,
    ``frequency_hz`` in Hz; both are None where the line does not say.
    """

    online: bool | None
    utilization: float | None = None
    frequency_hz: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One line of tegrastats. A missing reading is None (or absent from its mapping), never 0.

    ``timestamp`` is the wall-clock text as printed, for people only. ``rails_w`` are the instantaneous rail
    powers in watts (first value of ``current/average``); a second rail of one name (``NC`` on AGX Orin) is
    kept as ``NC_2``. ``gpu_utilization`` and ``emc_utilization`` are 0..1. ``gpu_frequency_hz`` is the largest
    that GR3D_FREQ names; 0 where the line itself says 0. ``ram_*`` are bytes (tegrastats prints MB of 2**20).
    ``temperatures_celsius`` has no entry for a gated zone, which tegrastats prints as −256 C.
    ``cpu_list`` is the text of the CPU list, read only when ``cpus`` is asked for: the loop never asks.
    ``unknown`` are the tokens that nothing here understands, in their order.
    """

    timestamp: str | None = None
    rails_w: Mapping[str, float] = field(default_factory=dict)
    gpu_utilization: float | None = None
    gpu_frequency_hz: int | None = None
    emc_utilization: float | None = None
    emc_frequency_hz: int | None = None
    ram_used_bytes: int | None = None
    ram_total_bytes: int | None = None
    cpu_list: str = ""
    temperatures_celsius: Mapping[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def cpus(self) -> tuple[Cpu, ...]:
        """The cores in their order; empty where the line has no complete CPU list."""
        return parse_cpus(self.cpu_list)

    def to_json(self) -> dict[str, object]:
        """The object that ``traingov tegrastats parse --json`` prints."""
        return {
            "timestamp": self.timestamp,
            "rails_w": dict(self.rails_w),
            "gpu_utilization": self.gpu_utilization,
            "gpu_frequency_hz": self.gpu_frequency_hz,
            "emc_utilization": self.emc_utilization,
            "emc_frequency_hz": self.emc_frequency_hz,
            "ram_used_bytes": self.ram_used_bytes,
            "ram_total_bytes": self.ram_total_bytes,
            "cpus": [
                {"online": cpu.online, "utilization": cpu.utilization, "frequency_hz": cpu.frequency_hz}
                for cpu in self.cpus
            ],
            "temperatures_celsius": dict(self.temperatures_celsius),
            "unknown": list(self.unknown),
        }


def whole_number(text: str, most_digits: int = 9) -> int | None:
    """An integer of ASCII digits, with a sign or without; None for anything else, and for absurd lengths."""
    digits = text[1:] if text[:1] == "-" else text
    if len(digits) > most_digits or not (digits.isascii() and digits.isdigit()):
        return None
    return int(text)


def share(text: str) -> float | None:
    """``"40%"`` as 0.4; None unless it is a whole number of percent from 0 to 100, with its sign."""
    if text[-1:] != "%":
        return None
    percent = whole_number(text[:-1], 3)
    return percent / 100 if percent is not None and 0 <= percent <= 100 else None


def parse_cpus(text: str) -> tuple[Cpu, ...]:
    """Cores of ``[1%@729,off,…]``, or of ``[1%,off,…]@1734`` where all online cores share a clock."""
    body, closed, tail = text.partition("]")
    if not closed or body[:1] != "[":
        return ()
    common = whole_number(tail[1:]) if tail[:1] == "@" else None
    entries = body[1:].split(",")
    read = _known_cpu if len(body) <= _LONGEST_KNOWN_LIST else _cpu
    return tuple([read(entry, common) for entry in entries])


def _cpu(entry: str, common_mhz: int | None) -> Cpu:
    if entry == "off":
        return Cpu(online=False)
    load, at, clock = entry.partition("@")
    utilization = share(load)
    if utilization is None:
        return Cpu(online=None)
    mhz = whole_number(clock) if at else common_mhz
    return Cpu(True, utilization, mhz * 1_000_000 if mhz is not None else None)


_known_cpu = lru_cache(maxsize=4096)(_cpu)
