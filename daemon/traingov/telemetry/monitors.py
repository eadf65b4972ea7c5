"""Finding a board's power monitors: INA3221 and INA238 channels through hwmon (JetPack 5 and later) or iio (4).

By what is there, not by bus addresses or hwmon numbers, which move between boots. Only labels are read here: they
are text of the device tree, so nothing touches the I2C bus until a reading is asked for.
Kernel: Documentation/hwmon/ina3221.rst, ina238.rst, Documentation/hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..device.files import Files, list_or_empty, read_line

_DRIVERS = "/sys/bus/i2c/drivers"
_DEVICES = "/sys/bus/i2c/devices"
_HWMON = "/sys/class/hwmon"
_IIO = "/sys/bus/iio/devices"
_CHANNELS = {"ina3221": (1, 2, 3), "ina238": (1,)}
# An INA3221 has three channels; its further files (in4 to in7, curr4) are shunt voltages and sums, not rails.


@dataclass(frozen=True)
class Channel:
    """One rail's files. ``power`` is in units of ``power_w`` watts; or ``volts`` (mV) times ``amperes`` (mA)."""

    rail: str
    chip: str
    power: str | None
    power_w: float
    volts: str | None
    amperes: str | None


def find_channels(files: Files) -> tuple[Channel, ...]:
    """Every rail that the board's monitors have, in the order of chips and channels.

    A second rail of one name is called NAME_2, as in a tegrastats reading.
    """
    found: list[Channel] = []
    seen: set[str] = set()
    taken: dict[str, int] = {}
    for folder in _folders(files):
        try:
            real = files.real_path(folder)
        except OSError:
            continue
        if real in seen:
            continue
        seen.add(real)
        for channel in _channels(files, folder):
            count = taken[channel.rail] = taken.get(channel.rail, 0) + 1
            rail = channel.rail if count == 1 else f"{channel.rail}_{count}"
            found.append(Channel(rail, channel.chip, channel.power, channel.power_w, channel.volts, channel.amperes))
    return tuple(found)


def _folders(files: Files) -> Iterator[str]:
    """Folders that may be a monitor's: through the driver, the bus, and the class, whichever the kernel shows."""
    for driver in list_or_empty(files, _DRIVERS):
        if _chip(driver) is not None:
            for device in list_or_empty(files, f"{_DRIVERS}/{driver}"):
                yield from _below(files, f"{_DRIVERS}/{driver}/{device}")
    for device in list_or_empty(files, _DEVICES):
        if _chip(read_line(files, f"{_DEVICES}/{device}/name")) is not None:
            yield from _below(files, f"{_DEVICES}/{device}")
    for folder in (_HWMON, _IIO):
        for device in list_or_empty(files, folder):
            if _chip(read_line(files, f"{folder}/{device}/name")) is not None:
                yield f"{folder}/{device}"


def _below(files: Files, device: str) -> Iterator[str]:
    for name in list_or_empty(files, device):
        if name.startswith("iio:device"):
            yield f"{device}/{name}"
        elif name == "hwmon":
            for number in list_or_empty(files, f"{device}/hwmon"):
                if number.startswith("hwmon"):
                    yield f"{device}/hwmon/{number}"


def _chip(name: str | None) -> str | None:
    return next((chip for chip in _CHANNELS if (name or "").startswith(chip)), None)


def _channels(files: Files, folder: str) -> Iterator[Channel]:
    names = set(list_or_empty(files, folder))
    chip = _chip(read_line(files, f"{folder}/name")) or ("ina238" if "power1_input" in names else "ina3221")
    for number in range(3):  # iio: rail_name_0 …, power in mW
        rail = read_line(files, f"{folder}/rail_name_{number}") if f"rail_name_{number}" in names else None
        if rail is not None:
            yield Channel(
                rail, chip, f"{folder}/in_power{number}_input", 1e-3,
                f"{folder}/in_voltage{number}_input", f"{folder}/in_current{number}_input",
            )  # fmt: skip
    for number in _CHANNELS[chip]:  # hwmon: power in µW where there is a file, else mV and mA
        power = f"{folder}/power{number}_input" if f"power{number}_input" in names else None
        if power is None and not {f"in{number}_input", f"curr{number}_input"} <= names:
            continue
        rail = read_line(files, f"{folder}/in{number}_label") if f"in{number}_label" in names else None
        if rail is None and chip == "ina238":
            rail = "VIN"  # the one INA238 of a Jetson measures the carrier board's input; its kernel gives no label
        if rail is not None:
            yield Channel(rail, chip, power, 1e-6, f"{folder}/in{number}_input", f"{folder}/curr{number}_input")
