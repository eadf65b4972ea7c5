"""Finding the GPU's devfreq node by what it is, not by a list of boards (DESIGN 5.5).

A node is a folder with min_freq and max_freq. It is the GPU's when something about it says so: the device tree
(of_node/name, of_node/compatible), the driver, the node's own name, or that it lies below an alias such as
/sys/devices/gpu.0. Any of these may be missing: Thor has no of_node/name, recorded trees have no driver link.
Kernel: Documentation/ABI/testing/sysfs-class-devfreq.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .bounds import read_hz
from .files import Files, list_or_empty, read_or_none

# "gpu", or a Tegra graphics chip's name (gk20a, gm20b, gp10b, gv11b, ga10b, gb10b, and those to come).
_GPU_WORD = re.compile(r"gpu|(?<![a-z0-9])g[a-z][0-9]{2}[a-z](?![a-z0-9])", re.IGNORECASE)
# Newer boards have a node for each clock domain, "gpu-gpc-0" and "gpu-nvd-0": only GPC is the graphics clock.
_DOMAIN = re.compile(r"gpu-([a-z]+)-[0-9]+$")
_CLASS = "/sys/class/devfreq"
_ALIASES = ("/sys/devices", "/sys/devices/platform")


@dataclass(frozen=True)
class DevfreqNode:
    """The GPU's node: its folder with links resolved, its name, and what it showed when it was found.

    ``available_frequencies_hz`` is ascending, empty where the node shows no table (``note`` then says so).
    ``load_path`` is the file with the GPU's load in per mille, None on boards without one (Thor).
    ``evidence`` says why this is the GPU.
    """

    path: str
    name: str
    available_frequencies_hz: tuple[int, ...] = ()
    available_governors: tuple[str, ...] = ()
    load_path: str | None = None
    evidence: tuple[str, ...] = ()
    note: str | None = None


def find_gpu(files: Files) -> DevfreqNode | None:
    """The GPU's node, None where there is none now. Cheap: call it again later, drivers load late."""
    nodes = gpu_nodes(files)
    return nodes[0] if nodes else None


def gpu_nodes(files: Files) -> tuple[DevfreqNode, ...]:
    """Every node that may be the GPU's graphics clock, the likeliest first (for `find_gpu` and the doctor)."""
    seen: dict[str, list[str]] = {}
    for path, alias in _nodes(files):
        try:
            real = files.real_path(path)
        except OSError:
            continue
        reasons = seen.setdefault(real, [])
        if alias is not None:
            reasons.append(f"below {alias}")
    found = []
    for real, reasons in seen.items():
        name = real.rsplit("/", 1)[1]
        domain = _DOMAIN.match(name)
        if domain is not None and domain.group(1) != "gpc":
            continue
        evidence = tuple(dict.fromkeys([*reasons, *_evidence(files, real, name)]))
        if evidence:
            found.append(_describe(files, real, name, evidence))
    return tuple(sorted(found, key=lambda node: (-len(node.evidence), node.name)))


def gpu_load(files: Files, node: DevfreqNode) -> float | None:
    """The share of time the GPU was busy, 0..1; None where the board shows none."""
    per_mille = read_hz(files, node.load_path) if node.load_path else None
    return per_mille / 1000 if per_mille is not None and per_mille <= 1000 else None


def _nodes(files: Files) -> Iterator[tuple[str, str | None]]:
    """Folders that are devfreq nodes, with the GPU alias that they were reached by, if any."""
    for name in list_or_empty(files, _CLASS):
        path = f"{_CLASS}/{name}"
        if _is_node(files, path):
            yield path, None
    for folder in _ALIASES:
        for device in list_or_empty(files, folder):
            if _GPU_WORD.search(device):
                parent = f"{folder}/{device}/devfreq"
                for name in list_or_empty(files, parent):
                    if _is_node(files, f"{parent}/{name}"):
                        yield f"{parent}/{name}", f"{folder}/{device}"


def _is_node(files: Files, path: str) -> bool:
    return files.exists(f"{path}/min_freq") and files.exists(f"{path}/max_freq")


def _evidence(files: Files, path: str, name: str) -> list[str]:
    reasons = []
    if _GPU_WORD.search(name):
        reasons.append(f"named {name}")
    for fact in ("name", "compatible"):
        text = read_or_none(files, f"{path}/device/of_node/{fact}")
        if text and _GPU_WORD.search(text.replace("\0", " ")):
            reasons.append(f"of_node/{fact} {text.split(chr(0), 1)[0]}")
    if files.exists(f"{path}/device/driver"):
        try:
            driver = files.real_path(f"{path}/device/driver").rsplit("/", 1)[1]
        except OSError:
            driver = ""
        if _GPU_WORD.search(driver):
            reasons.append(f"driver {driver}")
    return reasons


def _describe(files: Files, path: str, name: str, evidence: tuple[str, ...]) -> DevfreqNode:
    text = read_or_none(files, f"{path}/available_frequencies")
    table = tuple(sorted({int(word) for word in (text or "").split() if word.isascii() and word.isdigit()} - {0}))
    governors = read_or_none(files, f"{path}/available_governors") or ""
    above = path.rsplit("/", 2)[0]  # …/17000000.gpu/devfreq/17000000.gpu lies in the device's own folder
    loads = [f"{path}/device/load", f"{above}/load", *(f"{folder}/gpu.0/load" for folder in _ALIASES)]
    return DevfreqNode(
        path=path,
        name=name,
        available_frequencies_hz=table,
        available_governors=tuple(governors.split()),
        load_path=next((load for load in loads if read_hz(files, load) is not None), None),
        evidence=evidence,
        note=None
        if table
        else f"{path}/available_frequencies shows no clock table: only the bounds "
        f"{read_hz(files, f'{path}/min_freq')} and {read_hz(files, f'{path}/max_freq')} Hz are known",
    )
