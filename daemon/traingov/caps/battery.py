"""Batteries as the kernel shows them in /sys/class/power_supply (Documentation/ABI/testing/sysfs-class-power).

Units there are micro: µA, µV, µW, µWh, µAh. Any file may be missing, unreadable or hold something else: then that
reading is missing, never 0.
"""

from __future__ import annotations

from traingov_policies.caps import Battery

from ..device.files import Files, list_or_empty, read_line

FOLDER = "/sys/class/power_supply"


def read_batteries(files: Files) -> list[Battery]:
    """Every battery that feeds the board: USB and mains supplies, and batteries of a mouse or so, are passed over."""
    found = []
    for name in list_or_empty(files, FOLDER):
        node = f"{FOLDER}/{name}"
        if read_line(files, f"{node}/type") != "Battery" or read_line(files, f"{node}/scope") == "Device":
            continue
        if read_line(files, f"{node}/present") == "0":
            continue
        found.append(Battery(name, _percent(files, node), read_line(files, f"{node}/status"), _power_w(files, node)))
    return found


def _percent(files: Files, node: str) -> float | None:
    """``capacity``, or energy or charge now over that when full. Percent, None where the kernel shows neither."""
    shown = _number(files, f"{node}/capacity")
    if shown is None:
        for what in ("energy", "charge"):
            now, full = _number(files, f"{node}/{what}_now"), _number(files, f"{node}/{what}_full")
            if now is not None and full is not None and full > 0:
                shown = 100 * now / full
                break
    return shown if shown is not None and 0 <= shown <= 110 else None


def _power_w(files: Files, node: str) -> float | None:
    """``power_now``, or current times voltage. Drivers differ in the sign of a current, so it is left out."""
    power = _number(files, f"{node}/power_now")
    if power is not None:
        return abs(power) * 1e-6
    current, voltage = _number(files, f"{node}/current_now"), _number(files, f"{node}/voltage_now")
    return None if current is None or voltage is None else abs(current * voltage) * 1e-12


def _number(files: Files, path: str) -> float | None:
    line = read_line(files, path)
    try:
        return None if line is None else float(int(line))
    except (ValueError, OverflowError):
        return None
