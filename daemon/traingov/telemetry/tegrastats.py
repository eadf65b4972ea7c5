"""One pass over a line of tegrastats, for every board and release from JetPack 2 to JetPack 7.

A line is a list of tokens between blanks, and each is looked at once: names wait for their value, values go to
the name that waits (tokens.py says what a token is). There is no regular expression over the line, so nothing
can backtrack.

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

from . import tokens as tk
from .reading import Cpu, Reading, whole_number

__all__ = ["Cpu", "NotTegrastats", "Reading", "parse_line"]

_MEGABYTE: Final = 1 << 20
_REMEMBERED: Final = 64  # time stamps and amounts of memory; they change about once a second
_TIMESTAMP: Final = re.compile(
    r"[\[(]?("
    r"[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}"  # tegrastats since JetPack 5
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[0-9]{10}(?:\.[0-9]{1,9})?"  # seconds since the epoch, put there by logging scripts
    r")[\])]?"
)

_heads: dict[str, tuple[str | None, tuple[str, ...]]] = {}
_memories: dict[str, tuple[int, int]] = {}

# Local names: looking one up in a module costs as much as using it.
_CPU, _GPU, _EMC, _ENGINE, _BRACKET = tk.CPU, tk.GPU, tk.EMC, tk.ENGINE, tk.BRACKET
_RAIL, _VALUE, _CLOSE, _SKIP = tk.RAIL, tk.VALUE, tk.CLOSE, tk.SKIP
_Clock, _Zone, _classify, _read_power = tk.Clock, tk.Zone, tk.classify, tk.read_power


class NotTegrastats(ValueError):  # noqa: N818 - a kind of text, named for what it is
    """The text is not a line of tegrastats; the message says what is missing."""


def parse_line(text: str) -> Reading:  # noqa: PLR0915 - one pass in one place; a call per token costs
    """Read one line. Raises NotTegrastats where there is no ``RAM used/totalMB``; anything else is kept or None."""
    if not text.isascii():
        text = text.encode("ascii", "replace").decode("ascii")
    at = text.rfind("RAM ")
    while at > 0 and text[at - 1].isalpha():  # IRAM is not RAM. Of two lines in one the last is whole and newest.
        at = text.rfind("RAM ", 0, at)
    if at < 0:
        raise NotTegrastats("no tegrastats line: it has no 'RAM used/totalMB'")
    head = text[:at]
    known_head = _heads.get(head)
    timestamp, foreign = _read_head(head) if known_head is None else known_head
    words = text[at + 4 :].split()
    ram_used, ram_total = (words and _memories.get(words[0])) or _read_memory(words)

    rails: dict[str, float] = {}
    temperatures: dict[str, float] = {}
    unknown: list[str] = list(foreign)
    cpu_list = ""
    gpu: tk.Clock | None = None
    emc: tk.Clock | None = None
    final = words[-1]
    get = tk.kinds.get
    want, name = 0, ""  # the kind of name that waits for its value, and the name
    for token in words[1:]:
        kind = get(token)
        if kind is None:
            if want == _CPU and token[0] == "[":
                cpu_list = cpu_list or _whole_cpu_list(token, token is final)
                want = 0
                continue
            if 0 < want <= _CPU:
                watts = _read_power(token, want != _RAIL)
                if watts is not None:
                    want = 0
                    if name not in rails:
                        rails[name] = watts
                    elif f"{name}_2" not in rails:
                        rails[f"{name}_2"] = watts
                    else:
                        unknown.append(name)
                    continue
            kind = _classify(token)
        if kind.__class__ is _Zone:  # a test of the class is quicker than isinstance
            if want:
                if want < _ENGINE:
                    unknown.append(name)
                want = 0
            zone, celsius = kind
            if celsius is not None and zone not in temperatures:
                temperatures[zone] = celsius
        elif kind.__class__ is _Clock and want >= _GPU:
            if token is final and token[-1] != "]":  # its last digits may be missing
                kind = _Clock(kind[0], None)
            if want == _GPU:
                gpu = gpu or kind
            elif want == _EMC:
                emc = emc or kind
            want = 0
        elif kind.__class__ is int and kind <= _BRACKET:
            if 0 < want < _ENGINE:
                unknown.append(name)
            want, name = kind, token
        elif kind == _VALUE and want == _ENGINE:
            want = 0
        else:
            if 0 < want < _ENGINE:
                unknown.append(name)
            if kind != _SKIP and not (kind == _CLOSE and want == _BRACKET):
                unknown.append(token)
            want = 0
    if 0 < want < _ENGINE:
        unknown.append(name)
    gpu = gpu or tk.NO_CLOCK
    emc = emc or tk.NO_CLOCK
    return Reading(
        timestamp,
        rails,
        gpu[0],
        gpu[1],
        emc[0],
        emc[1],
        ram_used,
        ram_total,
        cpu_list,
        temperatures,
        tuple(unknown),
    )


def _read_memory(words: list[str]) -> tuple[int, int | None]:
    """Bytes of ``used/totalMB``; the total is None where the line ends within it."""
    used, slash, total = words[0].partition("/") if words else ("", "", "")
    if "(" in total:  # some releases print no blank before "(lfb"
        total = total.partition("(")[0]
    megabytes = whole_number(used)
    of = whole_number(total[:-2]) if total[-2:] == "MB" else None
    if megabytes is None or not slash or (of is None and len(words) > 1):
        raise NotTegrastats("no tegrastats line: 'RAM' is not followed by used/totalMB")
    if of is None:
        return megabytes * _MEGABYTE, None
    if len(_memories) >= _REMEMBERED:
        _memories.clear()
    answer = _memories[words[0]] = (megabytes * _MEGABYTE, of * _MEGABYTE)
    return answer


def _read_head(head: str) -> tuple[str | None, tuple[str, ...]]:
    """Time stamp and foreign tokens of what stands before RAM."""
    words = head.split()
    answer: tuple[str | None, tuple[str, ...]] = (None, tuple(words))
    for count in (2, 1):
        stamp = _TIMESTAMP.fullmatch(" ".join(words[-count:]).rstrip("-:,;"))
        if stamp:
            answer = (stamp[1], tuple(words[:-count]))
            break
    if len(head) <= tk.TOKEN_LIMIT:
        if len(_heads) >= _REMEMBERED:
            _heads.clear()
        _heads[head] = answer
    return answer


def _whole_cpu_list(value: str, at_end: bool) -> str:
    """The list as it stands, without a shared clock that may be cut off; empty where the list itself is."""
    if value[-1] == "]":
        return value
    body, closed, tail = value.partition("]")
    if not closed:
        return ""
    return body + "]" if at_end or whole_number(tail[1:]) is None else value
