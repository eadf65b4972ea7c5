"""The text of a virtual board's tegrastats, in the format of the board's real release."""

from __future__ import annotations

import time

from .boardspec import BoardSpec
from .physics import Snapshot


def stamp(wall_s: float) -> str:
    """The local date and time that releases from R35 on begin a line with."""
    return time.strftime("%m-%d-%Y %H:%M:%S", time.localtime(wall_s))


class TegrastatsText:
    """Formats lines for one tegrastats run: the second figure of a rail is its mean since this run's start.

    As the real tool: power in whole milliwatts with the release's unit, averages cut to whole milliwatts, clocks
    in MHz cut (306000000 Hz prints 305 on an Orin, whose PLL runs a little below), temperatures in °C cut to
    thousandths. A missing rail or an unreadable zone leaves the line.
    """

    def __init__(self, spec: BoardSpec) -> None:
        self._spec = spec
        self._format = spec.tegrastats.template.format
        unit = spec.tegrastats.unit
        left = [rail.name for rail in spec.rails]
        self._rails = []
        for name in spec.tegrastats.rails:
            at = left.index(name)
            left[at] = ""  # the next rail of this name (NC) is another one
            self._rails.append((at, f"{name} %d{unit}/%d{unit}" + f"/%d{unit}" * spec.tegrastats.with_highest))
        labels = [zone.label for zone in spec.zones]
        self._zones = [(labels.index(label), label) for label in spec.tegrastats.zones]
        self._highest_celsius = [-256.0] * len(spec.zones)
        self._highest_mw = [-(10**9)] * len(spec.rails)
        self._sums = [0] * len(spec.rails)
        self._counts = [0] * len(spec.rails)
        self._temperatures: tuple[tuple[float | None, ...], str] = ((), "")

    def line(self, snapshot: Snapshot, stamp_text: str = "") -> str:
        """One line, without its newline. ``stamp_text`` is used where the board's format begins with a date."""
        rails = []
        for i, text in self._rails:
            reading = snapshot.readings[i]
            if reading is not None:
                self._sums[i] += reading.milliwatts
                self._counts[i] += 1
                self._highest_mw[i] = max(self._highest_mw[i], reading.milliwatts)
                shown = (reading.milliwatts, self._sums[i] // self._counts[i], self._highest_mw[i])
                rails.append(text % shown[: text.count("%d")])
        if snapshot.temperatures_celsius != self._temperatures[0]:
            self._temperatures = (snapshot.temperatures_celsius, self._temperature_text(snapshot))
        cpu = self._spec.cpu
        idle, busy = f"%@{cpu.idle_hz // 1_000_000}", f"%@{cpu.busy_hz // 1_000_000}"
        cores = [
            "off" if load is None else f"{load * 100:.0f}{busy if load > 0.3 else idle}"
            for load in snapshot.cpu_utilization
        ]
        shares = ["off" if load is None else f"{load * 100:.0f}%" for load in snapshot.cpu_utilization]
        common_hz = cpu.busy_hz if any((load or 0) > 0.3 for load in snapshot.cpu_utilization) else cpu.idle_hz
        gpu = round(snapshot.gpu_utilization * 100)
        return self._format(
            stamp=stamp_text,
            ram=snapshot.memory_used_bytes >> 20,
            cpus=",".join(cores),
            cpus_common=f"[{','.join(shares)}]@{common_hz // 1_000_000}",
            emc=gpu * 2 // 5,
            emc_mhz=snapshot.emc_hz // 1_000_000,
            gpu=gpu,
            gpu_mhz=(snapshot.gpu_frequency_hz - 1) // 1_000_000,
            temperatures=self._temperatures[1],
            rails=" ".join(rails),
        ).rstrip()

    def _temperature_text(self, snapshot: Snapshot) -> str:
        shown = []
        spec = self._spec.tegrastats
        for i, label in self._zones:
            value = snapshot.temperatures_celsius[i]
            if value is None:
                if spec.gated_shown:
                    shown.append(f"{label}@-256C")
                continue
            text = f"{label}@{_thousandths(value)}C"
            if spec.with_highest:
                self._highest_celsius[i] = max(self._highest_celsius[i], value)
                text += f"/{_thousandths(self._highest_celsius[i])}C"
            shown.append(text)
        return " ".join(shown)


def _thousandths(celsius: float) -> str:
    return f"{int(celsius * 1000) / 1000:.6g}"
