"""A board's kernel files as a value: taken from a real board, kept as one JSON file, read again as `Files`.

Only files named here are taken: those that traingov reads, and their neighbours that say what a reading means.
None of them holds a serial number, an address or a name of the machine; the boot id is replaced, and of nvpmodel's
configuration (NVIDIA's text) only the facts are kept: modes and their GPU limits.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .files import BOOT_ID, Files, list_or_empty, read_or_none

SCHEMA = "traingov.boardtree/1"
_BOOT = "00000000-0000-0000-0000-000000000000"
_CLASS = "/sys/class/devfreq"
_NODE = (
    *("name", "governor", "available_governors", "available_frequencies", "min_freq", "max_freq", "cur_freq"),
    *("device/of_node/name", "device/of_node/compatible", "device/load"),
)
_SINGLE = (
    *("/proc/device-tree/model", "/proc/device-tree/compatible", "/etc/nv_tegra_release", "/var/lib/nvpmodel/status"),
    *("/sys/devices/gpu.0/load", "/sys/devices/platform/gpu.0/load", "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"),
    *("/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/online"),
)
_FOLDERS = {  # folder: the names of its files that are taken
    "/sys/kernel/debug/bpmp/debug/clk/emc": r"(min_|max_)?rate|mrq_rate_locked|state",
    "/sys/kernel/debug/emc": r"(min|max)_rate",
    "/sys/kernel/debug/clk/emc": r"clk_rate",
    "/sys/kernel/debug/clk/override.emc": r"clk_rate|clk_state",
    "/sys/kernel/debug/tegra_bwmgr": r"emc_(max_|min_)?rate",
    "/sys/devices/system/cpu/cpu0/cpufreq": r"scaling_(governor|available_frequencies|(min|max)_freq)",
}
_MONITOR = re.compile(
    r"name|in\d_(label|input)|curr\d_(input|max|crit)|power\d_input|rail_name_\d|in_(power|voltage|current)\d_input|"
    r"oc\d_(event_cnt|throt_en)"
)
_HEAT = re.compile(r"type|temp|trip_point_\d+_(temp|type)|cur_state|max_state")
_CHIP = re.compile(r"ina\d\w+")


@dataclass
class BoardTree:
    """``files``: path → text; ``links``: path → the path it leads to; ``errors``: path → errno name of a read.

    Paths are absolute, as on the board; those of files and errors have their links resolved.
    """

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values, sorted."""
        parts = {"files": self.files, "links": self.links, "errors": self.errors}
        return {"schema": SCHEMA, **{name: dict(sorted(part.items())) for name, part in parts.items()}}

    @classmethod
    def from_json(cls, data: object) -> BoardTree:
        """Raises ValueError saying what is wrong."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else data
            raise ValueError(f"schema: must be {SCHEMA}, not {found!r}")
        parts = []
        for name in ("files", "links", "errors"):
            part = data.get(name, {})
            if not isinstance(part, dict) or not all(
                isinstance(key, str) and key.startswith("/") and isinstance(value, str) for key, value in part.items()
            ):
                raise ValueError(f"{name}: must map absolute paths to texts")
            parts.append(dict(part))
        return cls(*parts)


def record(files: Files) -> BoardTree:
    """Take the files of the board. Nothing is written to it; what cannot be read is noted with its error."""
    taker = _Taker(files)
    taker.take(_SINGLE)
    for name in list_or_empty(files, _CLASS):
        taker.take(f"{_CLASS}/{name}/{part}" for part in _NODE)
    for folder, wanted in _FOLDERS.items():
        taker.take_folder(folder, re.compile(wanted))
    for driver in list_or_empty(files, "/sys/bus/i2c/drivers"):
        if _CHIP.fullmatch(driver):
            for device in list_or_empty(files, f"/sys/bus/i2c/drivers/{driver}"):
                taker.take_device(f"/sys/bus/i2c/drivers/{driver}/{device}")
    for device in list_or_empty(files, "/sys/bus/i2c/devices"):
        if _CHIP.match(read_or_none(files, f"/sys/bus/i2c/devices/{device}/name") or ""):
            taker.take_device(f"/sys/bus/i2c/devices/{device}")
    for folder in ("/sys/class/hwmon", "/sys/bus/iio/devices"):
        for device in list_or_empty(files, folder):
            taker.take_folder(f"{folder}/{device}", _MONITOR)
    for folder in ("/sys/class/thermal", "/sys/devices/virtual/thermal"):
        for device in list_or_empty(files, folder):
            taker.take_folder(f"{folder}/{device}", _HEAT)
    tree = taker.tree
    tree.files[BOOT_ID] = f"{_BOOT}\n"
    modes = power_mode_facts(read_or_none(files, "/etc/nvpmodel.conf") or "")
    if modes:
        tree.files["/etc/nvpmodel.conf"] = modes
    return tree


def power_mode_facts(text: str) -> str:
    """Of an nvpmodel configuration the modes' numbers and names, and their GPU limits, and nothing else."""
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        mode = re.match(r"<\s*POWER_MODEL\s+ID=(\d+)\s+NAME=(\S+?)\s*>", line)
        limit = re.match(r"GPU\s+MAX_FREQ\s+(-?\d+)\b", line)
        if mode is not None:
            lines.append(f"< POWER_MODEL ID={mode.group(1)} NAME={mode.group(2)} >")
        elif limit is not None and lines:
            lines.append(f"GPU MAX_FREQ {limit.group(1)}")
    return "".join(f"{line}\n" for line in lines)


class _Taker:
    """Collects files, and every link on the way to them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.tree = BoardTree()

    def take(self, paths: Iterable[str]) -> None:
        for path in paths:
            if not self._files.exists(path):
                continue
            real = self._reach(path)
            try:
                self.tree.files[real] = self._files.read_text(path)
            except OSError as error:
                self.tree.errors[real] = errno.errorcode.get(error.errno or 0, "EIO")

    def take_folder(self, folder: str, wanted: re.Pattern[str]) -> None:
        self.take(f"{folder}/{name}" for name in list_or_empty(self._files, folder) if wanted.fullmatch(name))

    def take_device(self, device: str) -> None:
        """A monitor's device on its bus: its name, and its folders of either kind."""
        if not list_or_empty(self._files, device):
            return  # a driver's control file, not a device
        self.take((f"{device}/name",))
        for name in list_or_empty(self._files, device):
            if name.startswith("iio:device"):
                self.take_folder(f"{device}/{name}", _MONITOR)
        for number in list_or_empty(self._files, f"{device}/hwmon"):
            self.take_folder(f"{device}/hwmon/{number}", _MONITOR)

    def _reach(self, path: str) -> str:
        """The real path; the links that lead there are noted."""
        real = ""
        for part in path.strip("/").split("/"):
            here = f"{real}/{part}"
            leads = self._files.real_path(here)
            if leads != here:
                self.tree.links[here] = leads
            real = leads
        return real


class RecordedFiles:
    """A board tree as `Files`: reads as the board did, errors included. Nothing can be written to a recording."""

    def __init__(self, tree: BoardTree) -> None:
        self._tree = tree
        self._folders: dict[str, set[str]] = {}
        for path in (*tree.files, *tree.links, *tree.errors, *tree.links.values()):
            while path.count("/") >= 1 and path != "/":
                above, _, name = path.rpartition("/")
                self._folders.setdefault(above or "/", set()).add(name)
                path = above or "/"  # noqa: PLW2901  (walks up)

    def read_text(self, path: str) -> str:
        """The text. Raises the OSError that the board gave, or ENOENT."""
        real = self.real_path(path)
        name = self._tree.errors.get(real)
        if name is not None:
            number = getattr(errno, name, errno.EIO)
            raise OSError(number, os.strerror(number), path)
        if real not in self._tree.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._tree.files[real]

    def write_text(self, path: str, text: str) -> None:
        """Raises OSError (EROFS)."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def exists(self, path: str) -> bool:
        """Whether the recording has it."""
        real = self.real_path(path)
        return real in self._tree.files or real in self._tree.errors or real in self._folders

    def list(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted. Raises FileNotFoundError."""
        real = self.real_path(path)
        if real not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return tuple(sorted(self._folders[real]))

    def real_path(self, path: str) -> str:
        """The path with every link resolved; links of a recording lead to real paths."""
        real = ""
        for part in path.split("/"):
            if part in {"", "."}:
                continue
            if part == "..":
                real = real.rpartition("/")[0]
                continue
            here = f"{real}/{part}"
            real = self._tree.links.get(here, here)
        return real or "/"
