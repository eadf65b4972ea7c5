"""One pass over a line of tegrastats, for every board and release from JetPack 2 to JetPack 7.

A line is a list of tokens between blanks. Each token is looked at once, and what a token alone says (a
temperature, the name of an engine) is remembered, because the same few hundred tokens come back a hundred times
a second. There is no regular expression over the line, so nothing can backtrack.

A line may be cut off anywhere: tegrastats is killed, a pipe fills, two programs write into one log. A number is
trusted only where something behind it shows that all of it is there: a unit (``mW``, ``MB``, ``%``, ``C``), a
closing bracket, a slash, or a following token. ``VDD_IN 136`` at the end of a line is therefore not a reading,
and ``GR3D_FREQ 0%@13`` is a load without a clock. What stands before ``RAM`` can hold a time stamp only.

Known and not read (absent from ``unknown``): SWAP, IRAM, ``(lfb …)``, ``(cached …)``, MTS, ``EDP limit``, GR3D2,
and the engines (NVENC, NVDEC, NVJPG, VIC, OFA, NVDLA, PVA, APE, MSENC, AVP, ISP, …) with or without ``_FREQ`` or
``_LOAD``. GR3D2 is the second cluster's clock on Orin R35; GR3D is the one that R36 prints first too.
"""

from __future__ import annotations

import re
from typing import Final

from .reading import Cpu, Reading, share, whole_number

__all__ = ["Cpu", "NotTegrastats", "Reading", "parse_line"]

_GATED_CELSIUS: Final = -256.0
_CACHE_LIMIT: Final = 2048  # tokens; a temperature zone shows some dozens of values in an hour
_TOKEN_LIMIT: Final = 64  # characters; a longer token is read, but not kept
_MEGABYTE: Final = 1 << 20

# What a token is, by itself.
_NAME: Final = 0  # could be the name of a rail
_SKIP: Final = 1  # known, not read, nothing follows
_ENGINE: Final = 2  # known, not read, a value may follow
_GPU: Final = 3
_EMC: Final = 4
_CPU: Final = 5
_BRACKET: Final = 6  # "(lfb" or "(cached": one token more, up to ")"
_JUNK: Final = 7
_CLOCKED: Final = (_GPU, _EMC)

_FIXED: Final[dict[str, int]] = {
    "GR3D_FREQ": _GPU,
    "GR3D": _GPU,
    "EMC_FREQ": _EMC,
    "EMC": _EMC,
    "CPU": _CPU,
    "cpu": _CPU,
    "MTS": _SKIP,
    "EDP": _SKIP,
    "(lfb": _BRACKET,
    "(cached": _BRACKET,
    **dict.fromkeys(("fg", "bg", "limit", "SWAP", "IRAM", "GR3D2", "APE", "AVP", "MSENC"), _ENGINE),
}
_ENGINES: Final = (
    "NVENC",
    "NVDEC",
    "NVJPG",
    "VIC",
    "OFA",
    "NVDLA",
    "PVA",
    "MSENC",
    "AVP",
    "APE",
    "ISP",
    "VI",
    "NVCSI",
    "SE",
)
# Releases before JetPack 5 print rails without a unit; these name them all. With mW behind it any name is a rail.
_UNITLESS_RAILS: Final = frozenset(("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V", "NC"))
_UNITLESS_PREFIXES: Final = ("VDD", "VIN", "POM_")

_RAIL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,63}")
_TEMPERATURE: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,63})@(-?[0-9]{1,5}(?:\.[0-9]{1,6})?)C(?:/.{0,40})?")
_TIMESTAMP: Final = re.compile(
    r"[\[(]?("
    r"[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}"  # tegrastats since JetPack 5
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[0-9]{10}(?:\.[0-9]{1,9})?"  # seconds since the epoch, put there by logging scripts
    r")[\])]?"
)

_tokens: dict[str, int | tuple[str, float | None]] = dict(_FIXED)
_heads: dict[str, tuple[str | None, tuple[str, ...]]] = {"": (None, ())}
_clocks: dict[str, tuple[float | None, int | None]] = {}


class NotTegrastats(ValueError):  # noqa: N818 - a kind of text, named for what it is
    """The text is not a line of tegrastats; the message says what is missing."""


def parse_line(text: str) -> Reading:  # noqa: PLR0915 - one pass in one place; a call per token costs
    """Read one line. Raises NotTegrastats where there is no ``RAM used/totalMB``; anything else is kept or None."""
    at = text.rfind("RAM ")
    # IRAM is not RAM. Of two lines that ran into one, the last one is the newest and has its beginning.
    while at > 0 and text[at - 1].isalpha():
        at = text.rfind("RAM ", 0, at)
    if at < 0:
        raise NotTegrastats("no tegrastats line: it has no 'RAM used/totalMB'")
    head = text[:at]
    known_head = _heads.get(head)
    timestamp, foreign = _read_head(head) if known_head is None else known_head
    tokens = text[at + 4 :].split()
    used, slash, total = tokens[0].partition("/") if tokens else ("", "", "")
    ram_used = whole_number(used)
    if "(" in total:  # some releases print no blank before "(lfb"
        total = total.partition("(")[0]
    ram_total = whole_number(total[:-2]) if total[-2:] == "MB" else None
    if ram_used is None or not slash or (ram_total is None and len(tokens) > 1):
        raise NotTegrastats("no tegrastats line: 'RAM' is not followed by used/totalMB")

    rails: dict[str, float] = {}
    temperatures: dict[str, float] = {}
    unknown: list[str] = list(foreign)
    cpu_list: str | None = None
    gpu: tuple[float | None, int | None] | None = None
    emc: tuple[float | None, int | None] | None = None
    classify, last = _tokens.get, len(tokens) - 1
    i = 0
    while i < last:
        i += 1
        token = tokens[i]
        kind = classify(token)
        if kind is None:
            kind = _classify(token)
        if kind.__class__ is tuple:
            zone, celsius = kind  # a test of the class is quicker than isinstance
            if celsius is not None and zone not in temperatures:
                temperatures[zone] = celsius
            continue
        if kind == _SKIP:
            continue
        if kind == _BRACKET:
            if i < last and tokens[i + 1][-1] == ")":
                i += 1
            continue
        if kind == _JUNK or i == last:
            if kind != _ENGINE:  # the name of an engine, cut off before its value, is known all the same
                unknown.append(token)
            continue
        value = tokens[i + 1]
        if kind == _ENGINE:
            if _is_engine_value(value):
                i += 1
                if i < last and value.endswith("(lfb"):  # IRAM 0/252kB(lfb 252kB)
                    i += 1
        elif kind in _CLOCKED:
            pair = _clocks.get(value)
            if pair is None or i + 1 == last:
                pair = _read_clock(value, i + 1 == last)
            if pair is _NOTHING:
                unknown.append(token)
                continue
            i += 1
            if kind == _EMC:
                emc = emc or pair
            else:
                gpu = gpu or pair
        elif kind == _CPU and value[0] == "[":
            i += 1
            if cpu_list is None:
                cpu_list = _whole_cpu_list(value, i == last)
        else:
            watts = _read_power(token, value)
            if watts is None:
                unknown.append(token)
                continue
            i += 1
            if token not in rails:
                rails[token] = watts
            elif f"{token}_2" not in rails:
                rails[f"{token}_2"] = watts
            else:
                unknown.append(token)

    gpu = gpu or _NOTHING
    emc = emc or _NOTHING
    return Reading(
        timestamp,
        rails,
        gpu[0],
        gpu[1],
        emc[0],
        emc[1],
        ram_used * _MEGABYTE,
        None if ram_total is None else ram_total * _MEGABYTE,
        cpu_list or "",
        temperatures,
        tuple(unknown),
    )


_NOTHING: Final[tuple[float | None, int | None]] = (None, None)


def _classify(token: str) -> int | tuple[str, float | None]:
    """What an unseen token is. The answer is kept, in a cache that cannot grow without bound."""
    kind: int | tuple[str, float | None]
    temperature = _TEMPERATURE.fullmatch(token)
    if temperature:
        celsius = float(temperature[2])
        # Gated zones of JetPack 5 and later; nothing on a board is that cold.
        kind = (temperature[1], None if celsius <= _GATED_CELSIUS else celsius)
    elif token.endswith(("_FREQ", "_LOAD")) or token.rstrip("0123456789") in _ENGINES:
        kind = _ENGINE
    elif _RAIL_NAME.fullmatch(token):
        kind = _NAME
    else:
        return _JUNK  # not kept: rail values and garbage would push out what recurs
    if len(token) > _TOKEN_LIMIT:
        return kind
    if len(_tokens) >= _CACHE_LIMIT:
        _tokens.clear()
        _tokens.update(_FIXED)
    _tokens[token] = kind
    return kind


def _read_head(head: str) -> tuple[str | None, tuple[str, ...]]:
    """Time stamp and foreign tokens of what stands before RAM."""
    words = head.split()
    answer: tuple[str | None, tuple[str, ...]] = (None, tuple(words))
    for count in (2, 1):
        stamp = _TIMESTAMP.fullmatch(" ".join(words[-count:]).rstrip("-:,;"))
        if stamp:
            answer = (stamp[1], tuple(words[:-count]))
            break
    if len(head) > _TOKEN_LIMIT:
        return answer
    if len(_heads) >= 64:
        _heads.clear()
    _heads[head] = answer
    return answer


def _is_engine_value(value: str) -> bool:
    """Whether ``value`` belongs to the engine before it: off, 115, 3%, @314, 3%@0, @[314,314], 0/252kB(lfb."""
    return value == "off" or value[0] in "0123456789@"


def _read_clock(value: str, at_end: bool) -> tuple[float | None, int | None]:
    """``n%``, ``n%@f``, ``n%@[f,f]``, ``@f``, ``@[f,f,f]`` (f in MHz) as (share or None, largest f in Hz or None).

    ``at_end``: nothing follows on the line, so that a bare number could be the first half of one.
    """
    load, at, clock = value.partition("@")
    utilization = share(load) if load else None
    if load and utilization is None:
        return _NOTHING
    if not at:
        return (utilization, None)
    if clock[:1] == "[":
        numbers = [whole_number(part) for part in clock[1:-1].split(",")] if clock[-1:] == "]" else [None]
    else:
        numbers = [None if at_end else whole_number(clock)]
    clocks = [number for number in numbers if number is not None and number >= 0]
    hertz = max(clocks) * 1_000_000 if len(clocks) == len(numbers) else None
    pair = (utilization, hertz)
    if pair == _NOTHING:
        return _NOTHING
    if not at_end and len(value) <= _TOKEN_LIMIT:
        if len(_clocks) >= _CACHE_LIMIT:
            _clocks.clear()
        _clocks[value] = pair
    return pair


def _whole_cpu_list(value: str, at_end: bool) -> str | None:
    """The list as it stands, without a shared clock that may be cut off; None where the list itself is."""
    if value[-1] == "]":
        return value
    body, closed, tail = value.partition("]")
    if not closed:
        return None
    return body + "]" if at_end or whole_number(tail[1:]) is None else value


def _read_power(name: str, value: str) -> float | None:
    """Watts of ``cur/avg``, ``curmW/avgmW``, ``curmW/avgmW/maxmW`` or ``curmW``; None where it is none of them.

    ``cur`` may be negative. Without a unit (before JetPack 5) the slash must be there and the name be a rail's.
    """
    current, slash, rest = value.partition("/")
    if current[-2:] == "mW":
        current = current[:-2]
    elif not slash or not (name in _UNITLESS_RAILS or name.startswith(_UNITLESS_PREFIXES)) or rest.strip("-0123456789"):
        return None
    if len(current) > 9 or not current.isascii():
        return None
    if current.isdigit() or (current[:1] == "-" and current[1:].isdigit()):
        return int(current) / 1000
    return None
