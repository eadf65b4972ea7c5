"""Which board this is, read from files and never from a list of versions (DESIGN 5.5).

Standard library only. `nvpmodel -q` is never run: polling it hung other daemons, and it needs root.
Unset or unreadable is "unknown", never fatal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .files import Files, read_or_none

UNKNOWN = "unknown"
STATUS_FILE = "/var/lib/nvpmodel/status"  # nvpmodel writes it when it sets a mode
_RELEASE = re.compile(r"#\s*R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)")
_STATUS = re.compile(r"\bpmode:(\d{1,9})\b")
_MODEL = re.compile(r"<\s*POWER_MODEL\s+ID=(\d{1,9})\s+NAME=(\S+?)\s*>")
_GPU_MAX = re.compile(r"GPU\s+MAX_FREQ\s+(-?\d{1,18})\b")


@dataclass(frozen=True)
class PowerMode:
    """The power mode that nvpmodel last set.

    ``name`` is its name ("MAXN"), "mode N" where only the number is known, or "unknown".
    ``gpu_max_known``: the mode's GPU limit was read; ``gpu_max_hz`` is then the limit, None for no limit.
    """

    name: str = UNKNOWN
    gpu_max_known: bool = False
    gpu_max_hz: int | None = None


@dataclass(frozen=True)
class BoardIdentity:
    """A board as it names itself: model, L4T release ("R36.4.3"), power mode, device-tree compatibles."""

    name: str
    release: str
    power_mode: str
    compatible: tuple[str, ...]


def identify(files: Files) -> BoardIdentity:
    """Read who this board is. Never raises."""
    compatible = read_or_none(files, "/proc/device-tree/compatible") or ""
    return BoardIdentity(
        name=_first_string(read_or_none(files, "/proc/device-tree/model")) or UNKNOWN,
        release=_release(read_or_none(files, "/etc/nv_tegra_release")),
        power_mode=power_mode(files).name,
        compatible=tuple(part.strip() for part in compatible.split("\0") if part.strip()),
    )


def power_mode(files: Files) -> PowerMode:
    """The power mode of now, from nvpmodel's own files. Never raises."""
    status = _STATUS.search(read_or_none(files, STATUS_FILE) or "")
    if status is None:
        return PowerMode()
    ident = int(status.group(1))
    name, found, known, limit = f"mode {ident}", False, False, None
    inside = False
    for raw in (read_or_none(files, "/etc/nvpmodel.conf") or "").splitlines():
        line = raw.strip()
        if line.startswith("#"):
            continue
        if line.startswith("<"):
            model = _MODEL.match(line)
            inside = model is not None and int(model.group(1)) == ident and not found
            if inside and model is not None:
                name, found = model.group(2), True
        elif inside:
            clock = _GPU_MAX.match(line)
            if clock is not None:
                # -1 is nvpmodel's word for "no limit".
                known, limit = True, int(clock.group(1)) if int(clock.group(1)) > 0 else None
    return PowerMode(name, known, limit)


def _first_string(text: str | None) -> str:
    return (text or "").split("\0", 1)[0].strip()


def _release(text: str | None) -> str:
    match = _RELEASE.search(text or "")
    return f"R{match.group(1)}.{match.group(2).strip('.')}" if match else UNKNOWN
