"""Which source of telemetry this machine has: chosen by capability, with the reason (DESIGN 5.5).

``survey`` looks at all of them and says for each whether it can be used and why (``traingov doctor`` prints it);
``choose`` takes the configured one, or for "auto" the first usable in the order of ``SOURCES``. Looking touches no
sensor: it asks for programs, labels, sockets and packages.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec

from traingov_policies.settings import Settings

from ..device.board import identify
from ..device.discovery import find_gpu
from ..device.files import SystemFiles
from .interface import Meter, OnReading, OnState, Source
from .jtop import SOCKET, JtopMeter
from .monitors import find_channels
from .nvml import NvmlMeter
from .polled import PolledSource
from .source import TegrastatsSource
from .supplement import WithUtilization
from .sysfs import SysfsMeter

SOURCES = ("tegrastats", "sysfs", "jtop", "nvml")
"""In the order of preference: the most of the board at the highest rate first."""

LEAST_INTERVAL_S = {
    "tegrastats": 0.001, "sysfs": SysfsMeter.least_interval_s,
    "jtop": JtopMeter.least_interval_s, "nvml": NvmlMeter.least_interval_s,
}  # fmt: skip
_STALE_INTERVALS = 4  # so many readings in a row may be missed before telemetry counts as stale


@dataclass(frozen=True)
class Candidate:
    """A source and whether it can be used here; ``why`` is one line, with what to do where it cannot."""

    name: str
    usable: bool
    why: str


def survey(root: str, tegrastats: Sequence[str]) -> tuple[Candidate, ...]:
    """Every source, in the order of preference. ``root`` and ``tegrastats`` as configured. Never raises."""
    looks = _looks(root, tegrastats)
    return tuple(looks[name]() for name in SOURCES)


def choose(wanted: str, root: str, tegrastats: Sequence[str]) -> Candidate:
    """The source to use. A name other than "auto" is taken as it is, usable or not: it may be so later.

    With "auto" and nothing usable it is tegrastats, which is tried again and again.
    """
    looks = _looks(root, tegrastats)
    if wanted != "auto":
        found = looks[wanted]()
        return Candidate(wanted, found.usable, f"configured; {found.why}")
    passed: list[Candidate] = []
    for name in SOURCES:
        candidate = looks[name]()
        if candidate.usable:
            why = "; ".join([candidate.why, *(f"not {other.name}: {other.why}" for other in passed)])
            return Candidate(name, True, why)
        passed.append(candidate)
    first, *others = passed
    return Candidate(first.name, False, "; ".join([first.why, *(f"{other.name}: {other.why}" for other in others)]))


def open_source(name: str, root: str, tegrastats: Sequence[str], on_reading: OnReading, on_state: OnState) -> Source:
    """The source of that name, not yet started. Where the board shows no GPU load and NVML does, with that."""
    files = SystemFiles(root)

    def open_one(one: str, reading: OnReading, state: OnState) -> Source:
        if one == "tegrastats":
            return TegrastatsSource(list(tegrastats), reading, state)
        meters: dict[str, Callable[[], Meter]] = {
            "sysfs": lambda: SysfsMeter(files),
            "jtop": JtopMeter,
            "nvml": lambda: NvmlMeter(on_jetson=is_jetson(files)),
        }
        return PolledSource(meters[one], reading, state)

    if name in ("tegrastats", "sysfs") and shows_no_load(files) and _nvml(root).usable:
        return WithUtilization(
            lambda reading, state: open_one(name, reading, state),
            lambda reading, state: open_one("nvml", reading, state),
            on_reading,
            on_state,
        )
    return open_one(name, on_reading, on_state)


def shows_no_load(files: SystemFiles) -> bool:
    """Whether the board has a GPU clock and no file with the GPU's load (Thor)."""
    gpu = find_gpu(files)
    return gpu is not None and gpu.load_path is None


def at_pace_of(name: str, settings: Settings) -> Settings:
    """The settings with the waits that a slow source needs: no reading is late that could not have come sooner."""
    least_s = LEAST_INTERVAL_S[name]
    return replace(
        settings,
        sampling_interval_s=max(settings.sampling_interval_s, least_s),
        idle_interval_s=None if settings.idle_interval_s is None else max(settings.idle_interval_s, least_s),
        stale_after_s=max(settings.stale_after_s, _STALE_INTERVALS * least_s),
    )


def is_jetson(files: SystemFiles) -> bool:
    """Whether the device tree names a Tegra."""
    return any("tegra" in name for name in identify(files).compatible)


def _looks(root: str, tegrastats: Sequence[str]) -> dict[str, Callable[[], Candidate]]:
    return {
        "tegrastats": lambda: _tegrastats(tegrastats),
        "sysfs": lambda: _sysfs(root),
        "jtop": lambda: _jtop(root),
        "nvml": lambda: _nvml(root),
    }


def _tegrastats(command: Sequence[str]) -> Candidate:
    path = shutil.which(command[0])
    if path is None:
        return Candidate("tegrastats", False, f"there is no program {command[0]}")
    return Candidate("tegrastats", True, f"{path} is there")


def _sysfs(root: str) -> Candidate:
    channels = find_channels(SystemFiles(root))
    if not channels:
        return Candidate("sysfs", False, "no INA3221 or INA238 power monitor below /sys that this user may see")
    return Candidate("sysfs", True, f"rails {', '.join(channel.rail for channel in channels)}")


def _elsewhere(root: str, name: str) -> Candidate | None:
    if os.path.abspath(root) == "/":
        return None
    return Candidate(name, False, f"it would show this machine, not the board below {root}")


def _jtop(root: str) -> Candidate:
    other = _elsewhere(root, "jtop")
    if other is not None:
        return other
    if find_spec("jtop") is None:
        return Candidate("jtop", False, "the package jetson-stats is not installed")
    if not os.path.exists(SOCKET):
        return Candidate("jtop", False, f"its service does not run: no {SOCKET}")
    if not os.access(SOCKET, os.R_OK | os.W_OK):
        return Candidate("jtop", False, f"{SOCKET} is closed to this user: add it to group jtop and log in again")
    return Candidate("jtop", True, f"{SOCKET} is there")


def _nvml(root: str) -> Candidate:
    other = _elsewhere(root, "nvml")
    if other is not None:
        return other
    if find_spec("pynvml") is None:
        return Candidate("nvml", False, "the package nvidia-ml-py is not installed")
    nvml = import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Candidate("nvml", False, f"NVML cannot be used: {error}")
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        return Candidate("nvml", False, f"NVML shows no GPU: {error}")
    finally:
        nvml.nvmlShutdown()
    if not count:
        return Candidate("nvml", False, "NVML shows no GPU")
    return Candidate("nvml", True, f"NVML shows {count} GPU{'s' if count > 1 else ''}")
