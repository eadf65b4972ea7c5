"""Files of a virtual board that tell of heat, over-current, the memory's clock and a battery. Pure.

Names and units are the kernel's: millidegrees, milliamperes, micro-units for power supplies, counters that start at
boot and are never cleared. Which zones have trip points, and the cooling devices, follow public device logs; they
differ by board and release, so a reader has to look for them.
"""

from __future__ import annotations

from ..board.battery import Battery
from ..board.boardspec import BoardSpec
from ..board.overcurrent import CurrentLimits
from ..board.physics import Snapshot, VirtualBoard

ZONES = "sys/devices/virtual/thermal"
SOCTHERM = "sys/devices/platform/bpmp/bpmp:soctherm/hwmon/hwmon1"
BATTERY = "sys/devices/platform/battery/power_supply/BAT0"
SUPPLIES = "sys/class/power_supply"
_UCSI = "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0008/power_supply/ucsi-source-psy-1-00081"
FOLLOWS_DIE = 0.9  # zones of at least this weight have trip points


def fixed(spec: BoardSpec, files: dict[str, str], links: dict[str, str]) -> None:
    """What stands still: names, kinds, trip points."""
    for i, zone in enumerate(spec.zones):
        path = f"{ZONES}/thermal_zone{i}"
        files[f"{path}/type"] = zone.name + "\n"
        if zone.weight >= FOLLOWS_DIE and not zone.unreadable:
            trips = (("passive", spec.thermal.trip_celsius), ("critical", spec.thermal.critical_celsius))
            for n, (kind, celsius) in enumerate(trips):
                files[f"{path}/trip_point_{n}_type"] = kind + "\n"
                # A zone beside the die reads a little more or less than it: its trip point is shifted likewise.
                files[f"{path}/trip_point_{n}_temp"] = f"{int((celsius + zone.offset_celsius) * 1000)}\n"
        links[f"sys/class/thermal/thermal_zone{i}"] = path
    for i, (kind, _, most) in enumerate(cooling(spec, 0)):
        path = f"{ZONES}/cooling_device{i}"
        files |= {f"{path}/type": kind + "\n", f"{path}/cur_state": "0\n", f"{path}/max_state": f"{most}\n"}
        links[f"sys/class/thermal/cooling_device{i}"] = path
    if spec.over_current_counters:
        files[f"{SOCTHERM}/name"] = "soctherm_oc\n"
        for n in (1, 2, 3):
            files[f"{SOCTHERM}/oc{n}_throt_en"] = "1\n"
        links["sys/class/hwmon/hwmon1"] = SOCTHERM
        files |= {f"{_UCSI}/type": "USB\n", f"{_UCSI}/online": "0\n", f"{_UCSI}/voltage_now": "5000000\n"}
        links[f"{SUPPLIES}/{_UCSI.rsplit('/', 1)[1]}"] = _UCSI
    for path, what in spec.emc.files.items():
        files[path] = {"max": str(spec.emc.frequencies_hz[-1]), "min": str(spec.emc.frequencies_hz[0])}.get(
            what, what
        ) + "\n"


def moving(spec: BoardSpec, snapshot: Snapshot) -> dict[str, str]:
    """What moves by itself: cooling states, over-current counters, the memory's clock."""
    files: dict[str, str] = {}
    for i, (_, state, _) in enumerate(cooling(spec, snapshot.throttle_steps)):
        files[f"{ZONES}/cooling_device{i}/cur_state"] = f"{state}\n"
    if spec.over_current_counters:
        for n, count in enumerate(snapshot.oc_events, 1):
            files[f"{SOCTHERM}/oc{n}_event_cnt"] = f"{count}\n"
    top = spec.emc.frequencies_hz[-1]
    shown = {"rate": snapshot.emc_hz, "cap": 0 if snapshot.emc_hz == top else snapshot.emc_hz}
    files |= {path: f"{shown[what]}\n" for path, what in spec.emc.files.items() if what in shown}
    return files


def set_by_others(board: VirtualBoard) -> dict[str, str]:
    """What an administrator or a plug changes: current limits, and the battery's files where there is one."""
    files: dict[str, str] = {}
    spec = board.spec
    for rail, limits in zip(spec.rails, board.over_current.limits, strict=True):
        chip = spec.chips[rail.chip]
        if chip.kind == "hwmon":
            files |= _limits(f"{chip.path}/curr{rail.channel + 1}", limits)
    if board.battery is not None:
        files |= battery(board.battery)
    return files


def battery_links(board: VirtualBoard) -> dict[str, str]:
    """The battery's place among the power supplies, where there is one."""
    return {} if board.battery is None else {f"{SUPPLIES}/BAT0": BATTERY}


def battery(held: Battery) -> dict[str, str]:
    """The files of a battery, as the kernel's power_supply class shows them (µV, µA, µW, µWh)."""
    volts, watts = held.volts, abs(held.power_w)
    values = {
        "type": "Battery",
        "technology": "Li-ion",
        "present": "1",
        "status": held.status,
        "capacity": str(round(held.charge * 100)),
        "energy_full": str(round(held.capacity_wh * 1e6)),
        "energy_full_design": str(round(held.capacity_wh * 1e6)),
        "energy_now": str(round(held.capacity_wh * held.charge * 1e6)),
        "power_now": str(round(watts * 1e6)),
        "current_now": str(round(watts / volts * 1e6)),
        "voltage_now": str(round(volts * 1e6)),
    }
    return {f"{BATTERY}/{name}": text + "\n" for name, text in values.items()}


def _limits(prefix: str, limits: CurrentLimits) -> dict[str, str]:
    return {f"{prefix}_max": f"{round(limits.max_a * 1000)}\n", f"{prefix}_crit": f"{round(limits.crit_a * 1000)}\n"}


def cooling(spec: BoardSpec, throttle_steps: int) -> tuple[tuple[str, int, int], ...]:
    """Kind, state and largest state of each cooling device, with heat taking away that many clock steps."""
    steps = len(spec.gpu.frequencies_hz) - 1
    clock = f"devfreq-{spec.gpu.devfreq}" if spec.gpu.order == "clamp" else "gpu-balanced"
    alert = int(throttle_steps > 0)
    return (
        ("pwm-fan", 0, 3),
        ("cpu-throttle-alert", alert, 1),
        ("gpu-throttle-alert", alert, 1),
        (clock, throttle_steps, steps),
    )
