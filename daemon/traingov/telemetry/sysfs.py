"""Readings from the kernel's own files, for where tegrastats cannot run (containers, missing tool, other users).

Power from the monitors (monitors.py), the GPU's clock from its devfreq node, its utilization from the driver's load
file, temperatures from the thermal zones. What cannot be read is missing: some INA3221 files answer EIO for good.
Each power file is a transfer on the I2C bus of some hundred microseconds; temperatures move slowly and are read
twice a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..device.bounds import read_hz
from ..device.discovery import DevfreqNode, find_gpu, gpu_load
from ..device.files import Files, list_or_empty, read_line
from .interface import MeterError
from .monitors import Channel, find_channels
from .reading import Reading

_ZONES = ("/sys/class/thermal", "/sys/devices/virtual/thermal")
_SLOW_S = 0.5
_LOOK_AGAIN_S = 5.0
_GATED_CELSIUS = -200.0  # a power-gated zone shows -256 °C


class SysfsMeter:
    """Reads the board below ``files``' root. ``clock`` is monotonic seconds."""

    name = "sysfs"
    least_interval_s = 0.01

    def __init__(self, files: Files, clock: Callable[[], float] = time.monotonic) -> None:
        self._files = files
        self._clock = clock
        self._channels: tuple[Channel, ...] = ()
        self._gpu: DevfreqNode | None = None
        self._temperatures: dict[str, float] = {}
        self._slow_due_s = self._look_due_s = float("-inf")

    def read(self) -> Reading:
        """What the files show now. Raises MeterError where neither power nor clock nor temperature can be read."""
        now = self._clock()
        rails = {channel.rail: power for channel in self._channels if (power := self._power_w(channel)) is not None}
        if now >= self._look_due_s and (self._gpu is None or len(rails) < len(self._channels) or not rails):
            # Drivers load late, and a driver that was loaded again has another hwmon number.
            self._look_due_s = now + _LOOK_AGAIN_S
            self._channels, self._gpu = find_channels(self._files), find_gpu(self._files)
            rails = {ch.rail: power for ch in self._channels if (power := self._power_w(ch)) is not None}
        if now >= self._slow_due_s:
            self._slow_due_s = now + _SLOW_S
            self._temperatures = zone_temperatures(self._files)
        gpu = self._gpu
        clock_hz = read_hz(self._files, f"{gpu.path}/cur_freq") if gpu is not None else None
        if not rails and clock_hz is None and not self._temperatures:
            raise MeterError("no power monitor, GPU clock or temperature can be read below /sys: see traingov doctor")
        return Reading(
            rails_w=rails,
            gpu_utilization=gpu_load(self._files, gpu) if gpu is not None else None,
            gpu_frequency_hz=clock_hz,
            temperatures_celsius=self._temperatures,
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _power_w(self, channel: Channel) -> float | None:
        if channel.power is not None:
            power = _number(self._files, channel.power)
            if power is not None:
                return power * channel.power_w
        if channel.volts is None or channel.amperes is None:
            return None
        millivolts = _number(self._files, channel.volts)
        milliamperes = None if millivolts is None else _number(self._files, channel.amperes)
        if millivolts is None or milliamperes is None:
            return None
        return millivolts * milliamperes * 1e-6


def zone_temperatures(files: Files) -> dict[str, float]:
    """Temperature by zone in °C. Zones that cannot be read or are gated are absent; "-therm", "-thermal" is cut off,
    as tegrastats does."""
    for folder in _ZONES:
        found: dict[str, float] = {}
        for zone in list_or_empty(files, folder):
            if not zone.startswith("thermal_zone"):
                continue
            millicelsius = _number(files, f"{folder}/{zone}/temp")
            kind = read_line(files, f"{folder}/{zone}/type") if millicelsius is not None else None
            if millicelsius is not None and kind is not None and millicelsius / 1000 > _GATED_CELSIUS:
                name = kind.removesuffix("-thermal").removesuffix("-therm")
                found[name] = millicelsius / 1000
        if found:
            return found
    return {}


def _number(files: Files, path: str) -> int | None:
    """A whole number with a sign or without; None where the file cannot be read or holds none."""
    text = read_line(files, path)
    if text is None or len(text) > 18:
        return None
    digits = text[1:] if text[:1] == "-" else text
    return int(text) if digits.isascii() and digits.isdigit() else None
