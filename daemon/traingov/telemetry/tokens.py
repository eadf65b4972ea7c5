"""What one token of a tegrastats line is, by itself.

The answer to "what is this token" is kept, in a cache of bounded size: the same few hundred tokens come back a
hundred times a second. The regular expressions here look at one short token once; none of them can backtrack
beyond a character, and none sees a whole line.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .reading import share, whole_number

# Names, that a value may follow. Below ENGINE: one that stays without its value is worth reporting.
RAIL: Final = 1  # could be the name of a rail, where the value has a unit
UNITLESS_RAIL: Final = 2  # the name of a rail that releases before JetPack 5 print without a unit
CPU: Final = 3  # the list of cores, and the name of a rail on AGX Xavier
GPU: Final = 4
EMC: Final = 5
ENGINE: Final = 6  # known and not read
BRACKET: Final = 7  # "(lfb", "(cached", or a value that ends with one: one token more, up to ")"
# What is no name.
VALUE: Final = 8  # of an engine
CLOSE: Final = 9  # the end of a bracket
SKIP: Final = 10  # known, not read, nothing follows
JUNK: Final = 11


class Clock(NamedTuple):
    """Load (0..1) and clock (Hz, the largest of several) of an engine; None for what is not printed."""

    utilization: float | None
    frequency_hz: int | None


class Zone(NamedTuple):
    """A thermal zone and its temperature, None where the zone is gated."""

    name: str
    celsius: float | None


NO_CLOCK: Final = Clock(None, None)

Kind = int | Zone | Clock

CACHE_LIMIT: Final = 4096  # tokens; a zone in use shows some hundred different temperatures in an hour
TOKEN_LIMIT: Final = 64  # characters; a longer token is read, but not kept

_ENGINES: Final = frozenset(
    ("NVENC", "NVDEC", "NVJPG", "VIC", "OFA", "NVDLA", "PVA", "MSENC", "AVP", "APE", "ISP", "VI", "NVCSI", "SE")
)
_FIXED: Final[dict[str, Kind]] = {
    "CPU": CPU,
    "cpu": CPU,
    "GR3D_FREQ": GPU,
    "GR3D": GPU,
    "EMC_FREQ": EMC,
    "EMC": EMC,
    **dict.fromkeys(("fg", "bg", "limit", "SWAP", "IRAM", "GR3D2"), ENGINE),
    "(lfb": BRACKET,
    "(cached": BRACKET,
    "off": VALUE,
    "MTS": SKIP,
    "EDP": SKIP,
}
_UNITLESS_RAILS: Final = frozenset(("GPU", "SOC", "CV", "VDDRQ", "SYS5V", "NC"))
_UNITLESS_PREFIXES: Final = ("VDD", "VIN", "POM_")
_GATED_CELSIUS: Final = -256.0  # what JetPack 5 and later print for a zone without power

_TEMPERATURE: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,63})@(-?[0-9]{1,5}(?:\.[0-9]{1,6})?)C(?:/.{0,40})?")
_RAIL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,63}")
_VALUE: Final = re.compile(r"[0-9][0-9./]{0,30}(?:[kMG]?B|MHz)?")
_OPEN: Final = re.compile(r"[0-9][0-9./]{0,30}[kMG]?B\(lfb")
_CLOSE: Final = re.compile(r"[0-9][0-9x]{0,30}[kMG]?B\)")

kinds: dict[str, Kind] = dict(_FIXED)


def classify(token: str) -> Kind:
    """What ``token``, which is not in ``kinds``, is; remembered there where it is likely to come again."""
    kind = _classify(token)
    # "5/6" stays out: behind an engine it is nothing, behind a rail it is power, and hardly any comes twice.
    if kind != JUNK and len(token) <= TOKEN_LIMIT and not (kind == VALUE and "/" in token and token[-1].isdigit()):
        if len(kinds) >= CACHE_LIMIT:
            kinds.clear()
            kinds.update(_FIXED)
        kinds[token] = kind
    return kind


def _classify(token: str) -> Kind:
    temperature = _TEMPERATURE.fullmatch(token)
    if temperature:
        celsius = float(temperature[2])
        return Zone(temperature[1], None if celsius <= _GATED_CELSIUS else celsius)
    kind = JUNK
    if token.endswith(("_FREQ", "_LOAD")) or token.rstrip("0123456789") in _ENGINES:
        kind = ENGINE
    elif token in _UNITLESS_RAILS or (token.startswith(_UNITLESS_PREFIXES) and _RAIL_NAME.fullmatch(token)):
        kind = UNITLESS_RAIL
    elif _RAIL_NAME.fullmatch(token):
        kind = RAIL
    elif _VALUE.fullmatch(token):
        kind = VALUE
    elif _OPEN.fullmatch(token):
        kind = BRACKET
    elif _CLOSE.fullmatch(token):
        kind = CLOSE
    else:
        clock = _read_clock(token)
        if clock is not None:
            return clock
    return kind


def _read_clock(token: str) -> Clock | None:
    """``n%``, ``n%@f``, ``n%@[f,f]``, ``@f`` or ``@[f,f,f]`` (f in MHz); None for anything else."""
    load, at, clock = token.partition("@")
    utilization = share(load) if load else None
    if (load and utilization is None) or (at and not clock):
        return None
    if not at:
        return Clock(utilization, None)
    if clock[0] == "[":
        numbers = [whole_number(part) for part in clock[1:-1].split(",")] if clock[-1] == "]" else [None]
    else:
        numbers = [whole_number(clock)]
    clocks = [number for number in numbers if number is not None and number >= 0]
    return Clock(utilization, max(clocks) * 1_000_000 if len(clocks) == len(numbers) else None)


def read_power(token: str, unitless: bool) -> float | None:
    """Watts of ``cur/avg``, ``curmW/avgmW``, ``curmW/avgmW/maxmW`` or ``curmW``; None where it is none of them.

    ``cur`` may be negative. ``cur/avg`` without a unit is taken for milliwatts only where ``unitless``. The token
    must be ASCII.
    """
    current, slash, rest = token.partition("/")
    if unitless and rest.isdigit() and current.isdigit() and len(current) <= 9:
        return int(current) / 1000
    if current[-2:] == "mW":
        current = current[:-2]
    elif not (unitless and slash) or rest.strip("-0123456789"):
        return None
    if len(current) <= 9 and (current.isdigit() or (current[:1] == "-" and current[1:].isdigit())):
        return int(current) / 1000
    return None
