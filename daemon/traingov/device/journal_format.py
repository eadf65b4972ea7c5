"""What a restore journal holds, and its JSON (`traingov.journal/1`). Standard library only, no I/O.

`{"schema", "boot_id", "power_mode", "knobs": [{"path", "kind", "original", "written": [...], "pending"}],
"written_at"}`; what the fields promise is said in `journal`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

SCHEMA = "traingov.journal/1"
KINDS = {"min": "min_freq", "max": "max_freq", "governor": "governor"}
SIZE_LIMIT_BYTES = 1 << 20
VALUES = {
    "min": re.compile(r"[0-9]{1,18}"),
    "max": re.compile(r"[0-9]{1,18}"),
    "governor": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}


class JournalError(Exception):
    """The journal cannot be saved, read or held; the text says why and what to do."""


class DamagedJournalError(JournalError):
    """The file is there but is no journal."""


@dataclass(frozen=True)
class Knob:
    """One sysfs file that we write. ``written`` holds every value that may be ours, the last first."""

    path: str
    kind: str
    original: str
    written: tuple[str, ...] = ()
    pending: bool = False


@dataclass(frozen=True)
class JournalData:
    """A journal's content. ``written_at`` is for people to read: nothing is decided on wall-clock time."""

    boot_id: str
    power_mode: str
    knobs: tuple[Knob, ...]
    written_at: str = ""


@dataclass(frozen=True)
class Intent:
    """A write that is about to happen: the knob, what it holds now, and the new value (None: only keep it)."""

    path: str
    kind: str
    present: str
    value: str | None


def encode(data: JournalData) -> bytes:
    """The file's bytes."""
    knobs = [
        {
            "path": knob.path,
            "kind": knob.kind,
            "original": knob.original,
            "written": list(knob.written),
            "pending": knob.pending,
        }
        for knob in data.knobs
    ]
    content = {
        "schema": SCHEMA,
        "boot_id": data.boot_id,
        "power_mode": data.power_mode,
        "knobs": knobs,
        "written_at": data.written_at,
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def decode(raw: bytes) -> JournalData:
    """Read a journal's bytes. Raises DamagedJournalError naming what is wrong.

    Root restores from a file that the service's user wrote. So a knob is taken only where its path is a devfreq
    file below /sys and its values are such a file's values: no journal can make root write elsewhere.
    """
    if len(raw) > SIZE_LIMIT_BYTES:
        raise DamagedJournalError(f"it is longer than {SIZE_LIMIT_BYTES} bytes")
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DamagedJournalError(f"it is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise DamagedJournalError(f"its schema is not {SCHEMA}")
    texts = [content.get(key) for key in ("boot_id", "power_mode", "written_at")]
    knobs = content.get("knobs")
    if not all(isinstance(text, str) for text in texts) or not isinstance(knobs, list):
        raise DamagedJournalError("boot_id, power_mode, written_at or knobs is missing")
    return JournalData(str(texts[0]), str(texts[1]), tuple(_knob(knob) for knob in knobs), str(texts[2]))


def _knob(entry: object) -> Knob:
    if not isinstance(entry, dict):
        raise DamagedJournalError("a knob is not an object")
    path, kind, original = entry.get("path"), entry.get("kind"), entry.get("original")
    written, pending = entry.get("written"), entry.get("pending", False)
    if not isinstance(path, str) or not isinstance(kind, str) or not is_knob_path(path, kind):
        raise DamagedJournalError(f"{path!r} is no devfreq knob")
    if not isinstance(written, list) or not isinstance(pending, bool):
        raise DamagedJournalError(f"the values written to {path} are missing")
    for value in [original, *written]:
        if not isinstance(value, str) or not VALUES[kind].fullmatch(value):
            raise DamagedJournalError(f"{value!r} is no value for {path}")
    return Knob(path, kind, str(original), tuple(written), pending)


def is_knob_path(path: str, kind: str) -> bool:
    """Whether ``path`` is the devfreq file of this kind, below /sys and without any step upwards."""
    parts = path.split("/")
    return (
        kind in KINDS
        and path.startswith("/sys/")
        and not {"..", "."} & set(parts)
        and "\0" not in path
        and "devfreq" in parts[2:-2]
        and parts[-1] == KINDS[kind]
    )
