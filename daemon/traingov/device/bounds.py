"""The two bounds of a devfreq node: reading them, and the order in which to write them (DESIGN 5.2).

Standard library only. Kernels differ: 4.9 (JetPack 4) refuses min > max with EINVAL; kernels with dev_pm_qos
(drivers/devfreq/devfreq.c, 5.4 and later) take it and show a clamped value. Both are served by never asking for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .files import Files, errno_name, read_line
from .journal_format import KINDS

_ADVICE = {
    "EACCES": "add the user to group devfreq (usermod -aG devfreq USER), then log in again or restart the service",
    "EPERM": "add the user to group devfreq (usermod -aG devfreq USER), then log in again or restart the service",
    "EROFS": "the node is mounted read-only: name its folder in the unit's ReadWritePaths= or the container's mounts",
    "EINVAL": "the kernel takes no such value now: compare it with available_frequencies and the other bound",
    "EBUSY": "another program holds the clock (jetson_clocks, nvpmodel, a profiler): end it and try again",
    "EIO": "the driver did not answer: look for GPU messages in dmesg",
    "ENOENT": "the GPU's node is gone: its driver was unloaded; it will be looked for again",
    "ENODEV": "the GPU's node is gone: its driver was unloaded; it will be looked for again",
}


@dataclass(frozen=True)
class Bounds:
    """What a node shows: bounds and clock in Hz, governor. None where it could not be read (DESIGN 5.5).

    ``max_hz`` 0 is the kernel's "no limit" (4.9), ``min_hz`` 0 its "none".
    """

    min_hz: int | None
    max_hz: int | None
    cur_hz: int | None = None
    governor: str | None = None


def knob_path(node: str, kind: str) -> str:
    """The file of a node's "min", "max" or "governor"."""
    return f"{node}/{KINDS[kind]}"


def read_hz(files: Files, path: str) -> int | None:
    """A frequency in Hz, None where it is missing or no number."""
    text = read_line(files, path)
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def read_bounds(files: Files, node: str) -> Bounds:
    """All that a node shows of itself now."""
    return Bounds(
        min_hz=read_hz(files, knob_path(node, "min")),
        max_hz=read_hz(files, knob_path(node, "max")),
        cur_hz=read_hz(files, f"{node}/cur_freq"),
        governor=read_line(files, knob_path(node, "governor")),
    )


def ceiling(max_hz: int) -> float:
    """The upper bound as a number to compare with: 0 is no limit."""
    return max_hz if max_hz > 0 else math.inf


def write_order(present_max_hz: int, target_max_hz: int) -> tuple[str, str]:
    """Which bound to write first so that min never exceeds max on the way, whatever moves.

    Raising the maximum: max first (present min <= present max < target max). Otherwise: min first
    (target min <= target max <= present max). Both hold for any two valid pairs, so no other case is left.
    """
    return ("max", "min") if ceiling(target_max_hz) > ceiling(present_max_hz) else ("min", "max")


def refusal(path: str, value: str, error: OSError) -> str:
    """A refused write in one line: what, where, and what to do."""
    name = errno_name(error)
    advice = _ADVICE.get(name, "see errno(3) and dmesg")
    return f"{path}: writing {value} failed with {name}: {advice}"
