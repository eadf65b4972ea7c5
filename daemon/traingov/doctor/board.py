"""The board: who it is, its clock's knob, its power modes, its sensors, and who else writes to it."""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat

from ..device.board import UNKNOWN, identify
from ..device.bounds import read_hz
from ..device.discovery import DevfreqNode, gpu_nodes
from ..device.files import SystemFiles, list_or_empty, read_or_none
from .finding import ATTENTION, OK, PROBLEM, UNSEEN, Finding

_MODEL = re.compile(r"<\s*POWER_MODEL\s+ID=(\d{1,9})\s+NAME=(\S+?)\s*>")
_COUNTER = re.compile(r"oc(\d)_event_cnt$")
_MEANS = {"1": "under-voltage", "2": "average over-current", "3": "instantaneous over-current"}


def look(files: SystemFiles, *, governed: bool = False) -> list[Finding]:
    """Board, release, power mode, knob, over-current counters. ``governed``: a service has jobs and sets the clock."""
    who = identify(files)
    nodes = gpu_nodes(files)
    return [
        _name(who.name, who.compatible, files),
        _release(who.release),
        *_power_mode(who.power_mode, files),
        *_knob(nodes[0] if nodes else None, files, governed=governed),
        _over_current(files),
    ]


def _name(name: str, compatible: tuple[str, ...], files: SystemFiles) -> Finding:
    if name == UNKNOWN:
        where = f"{files.root.rstrip('/')}/proc/device-tree/model is absent"
        return Finding(
            "board", ATTENTION, f"not a Jetson: {where}", "run it on the board, or give --config of a virtual board"
        )
    return Finding("board", OK, name + (f" ({compatible[0]})" if compatible else ""))


def _release(release: str) -> Finding:
    if release == UNKNOWN:
        return Finding(
            "release",
            ATTENTION,
            "L4T release not known: /etc/nv_tegra_release is absent or reads otherwise",
            'tables are kept under "unknown"; in a container, mount the file into it',
        )
    return Finding("release", OK, f"L4T {release}")


def _power_mode(mode: str, files: SystemFiles) -> list[Finding]:
    text = read_or_none(files, "/etc/nvpmodel.conf")
    if text is None:
        return [
            Finding(
                "power mode",
                UNSEEN,
                "/etc/nvpmodel.conf cannot be read",
                "tables are kept under this mode's name: install nvpmodel, or mount the file into the container",
            )
        ]
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    modes = [match.group(2) for line in lines if (match := _MODEL.search(line))]
    there = f"{len(modes)} modes: {', '.join(modes)}" if modes else "no mode in /etc/nvpmodel.conf"
    if mode == UNKNOWN:
        return [Finding("power mode", ATTENTION, f"not known ({there})", "set one: sudo nvpmodel -m 0")]
    return [Finding("power mode", OK, f"{mode} ({there})")]


def _knob(node: DevfreqNode | None, files: SystemFiles, *, governed: bool) -> list[Finding]:
    if node is None:
        return [
            Finding(
                "GPU clock",
                PROBLEM,
                "no devfreq node of a GPU under /sys: nothing can be governed",
                "load the GPU's driver (it is looked for again when a job registers)",
            )
        ]
    because = f"; known by: {', '.join(node.evidence)}"
    if node.note is not None:
        found = Finding("GPU clock", ATTENTION, node.note + because, "without a clock table traingov only observes")
    else:
        table = node.available_frequencies_hz
        found = Finding(
            "GPU clock", OK, f"{node.path}: {len(table)} clocks, {table[0] / 1e6:g} to {table[-1] / 1e6:g} MHz{because}"
        )
    return [found, _writable(node, files), _pinned(node, files, governed=governed)]


def _writable(node: DevfreqNode, files: SystemFiles) -> Finding:
    """Whether the service's user may write the bounds: it is in group devfreq, or root."""
    facts = []
    shut = False
    for name in ("min_freq", "max_freq"):
        host = os.path.join(files.root, files.real_path(f"{node.path}/{name}").lstrip("/"))
        try:
            status = os.stat(host)
        except OSError as error:
            return Finding("clock's files", UNSEEN, f"{host}: {error.strerror}")
        facts.append(f"{name} {_owner(status)}")
        shut |= not (os.access(host, os.W_OK) or (status.st_mode & stat.S_IWGRP and _group(status) == "devfreq"))
    if shut:
        return Finding(
            "clock's files",
            ATTENTION,
            f"{', '.join(facts)}: neither this user nor group devfreq may write",
            "install the udev rule (the package, or sudo traingov service install) and load it: sudo "
            "udevadm trigger --subsystem-match=devfreq --action=change",
        )
    return Finding("clock's files", OK, ", ".join(facts))


def _pinned(node: DevfreqNode, files: SystemFiles, *, governed: bool) -> Finding:
    low, high = (read_hz(files, f"{node.path}/{name}") for name in ("min_freq", "max_freq"))
    if low is None or high is None:
        return Finding("clock's bounds", UNSEEN, f"{node.path}/min_freq or max_freq cannot be read")
    if low == high and governed:
        return Finding("clock's bounds", OK, f"pinned to {low / 1e6:g} MHz, for the running job")
    if low == high:
        return Finding(
            "clock's bounds",
            ATTENTION,
            f"pinned to {low / 1e6:g} MHz though no job runs: by jetson_clocks, by hand, or left over",
            "sudo jetson_clocks --restore, or sudo traingov restore",
        )
    governor = read_or_none(files, f"{node.path}/governor") or "governor not known"
    return Finding("clock's bounds", OK, f"{low / 1e6:g} to {high / 1e6:g} MHz, {governor}")


def _over_current(files: SystemFiles) -> Finding:
    counts = {}
    for monitor in list_or_empty(files, "/sys/class/hwmon"):
        folder = f"/sys/class/hwmon/{monitor}"
        for name in list_or_empty(files, folder):
            if (match := _COUNTER.match(name)) and (value := read_or_none(files, f"{folder}/{name}")) is not None:
                counts[match.group(1)] = value
    if not counts:
        return Finding("over-current", UNSEEN, "this board shows no over-current counters (only Orin and Thor do)")
    text = ", ".join(f"{_MEANS.get(n, 'oc' + n)} {value}" for n, value in sorted(counts.items()))
    if any(value.isdigit() and int(value) for value in counts.values()):
        return Finding(
            "over-current",
            ATTENTION,
            f"events since the boot: {text}",
            "the board was throttled: a lower cap or power mode, or a stronger supply",
        )
    return Finding("over-current", OK, f"events since the boot: {text}")


def _owner(status: os.stat_result) -> str:
    try:
        user = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        user = str(status.st_uid)
    return f"{user}:{_group(status)} {stat.S_IMODE(status.st_mode):04o}"


def _group(status: os.stat_result) -> str:
    try:
        return grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        return str(status.st_gid)
