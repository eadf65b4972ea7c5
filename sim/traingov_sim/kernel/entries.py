"""The files of a virtual board's tree as values: path (relative to the root) → text, and links. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..board.boardspec import BoardSpec
from ..board.physics import Snapshot, VirtualBoard
from . import health
from .health import ZONES

CPUS = "sys/devices/system/cpu"
KNOBS = ("governor", "max_freq", "min_freq", "userspace/set_freq")


@dataclass
class Entries:
    """``files``: path → text; ``links``: path → target; all relative to the root."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def boot_id(seed: int, boot: int) -> str:
    """The boot's id; another ``boot`` number is a reboot."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"traingov virtual board {seed} {boot}"))


def entries(board: VirtualBoard, boot: str) -> Entries:
    """Every file and link of the tree at the board's start."""
    spec = board.spec
    out = Entries()
    _gpu(spec, out)
    _power(spec, out)
    health.fixed(spec, out.files, out.links)
    _cpu(spec, out)
    out.files |= {
        "proc/device-tree/model": spec.model + "\0",
        "proc/device-tree/compatible": "".join(name + "\0" for name in spec.compatible),
        "proc/sys/kernel/random/boot_id": boot + "\n",
        "etc/nv_tegra_release": spec.release + "\n",
        "etc/nvpmodel.conf": nvpmodel_conf(spec),
    }
    out.files |= knobs(board) | changing(spec, board.sensors(board.t_s)) | mode(board) | health.set_by_others(board)
    out.links |= health.battery_links(board)
    return out


def knobs(board: VirtualBoard) -> dict[str, str]:
    """The writable files of the GPU's devfreq node as they read back: the path's last part names the file."""
    node, clock = board.spec.gpu.node, board.clock
    return {f"{node}/{name}": clock.read(name) for name in clock.names() if name in KNOBS}


def mode(board: VirtualBoard) -> dict[str, str]:
    """What a change of power mode rewrites, besides the bounds."""
    files = {"var/lib/nvpmodel/status": f"pmode:{board.power_mode.id:04d} fmode:fanNull\n"}
    for i in range(board.spec.cpu.count):
        files[f"{CPUS}/cpu{i}/online"] = f"{int(i < board.power_mode.cpus)}\n"
    files[f"{CPUS}/online"] = f"0-{board.power_mode.cpus - 1}\n"
    return files


def clocks(spec: BoardSpec, hz: int, load: float) -> dict[str, str]:
    """The GPU's clock and load (per mille), refreshed most often."""
    node = spec.gpu.node
    files = {f"{node}/cur_freq": f"{hz}\n", f"{node}/target_freq": f"{hz}\n"}
    if spec.gpu.load:
        files[f"{spec.gpu.device}/load"] = f"{round(load * 1000)}\n"
    return files


def changing(spec: BoardSpec, snapshot: Snapshot) -> dict[str, str]:
    """Every file that moves by itself."""
    files = clocks(spec, snapshot.gpu_frequency_hz, snapshot.gpu_utilization)
    for rail, reading in zip(spec.rails, snapshot.readings, strict=True):
        chip = spec.chips[rail.chip]
        volts, amperes, watts = channel_files(chip.kind, rail.channel)
        shown = ("", "", "") if reading is None else (reading.millivolts, reading.milliamperes, reading.milliwatts)
        files[f"{chip.path}/{volts}"] = f"{shown[0]}\n"
        files[f"{chip.path}/{amperes}"] = f"{shown[1]}\n"
        if watts is not None:
            files[f"{chip.path}/{watts}"] = f"{shown[2]}{'000' if reading and chip.kind == 'ina238' else ''}\n"
    for i, value in enumerate(snapshot.temperatures_celsius):
        files[f"{ZONES}/thermal_zone{i}/temp"] = "\n" if value is None else f"{int(value * 1000)}\n"
    return files | health.moving(spec, snapshot)


def channel_files(kind: str, channel: int) -> tuple[str, str, str | None]:
    """Names of a channel's voltage (mV), current (mA) and power file (iio: mW, INA238: µW; hwmon has none)."""
    if kind == "iio":
        return f"in_voltage{channel}_input", f"in_current{channel}_input", f"in_power{channel}_input"
    return f"in{channel + 1}_input", f"curr{channel + 1}_input", "power1_input" if kind == "ina238" else None


def nvpmodel_conf(spec: BoardSpec) -> str:
    """The power modes in nvpmodel's syntax."""
    node = f"/{spec.gpu.node}"
    lines = ["# Power modes of a virtual board.", "< PARAM TYPE=FILE NAME=CPU_ONLINE >"]
    lines += [f"CORE_{i} /{CPUS}/cpu{i}/online" for i in range(spec.cpu.count)]
    lines += ["", "< PARAM TYPE=CLOCK NAME=GPU >", f"FREQ_TABLE {node}/available_frequencies"]
    lines += [f"MAX_FREQ {node}/max_freq", f"MIN_FREQ {node}/min_freq", ""]
    for m in spec.power_modes:
        lines.append(f"< POWER_MODEL ID={m.id} NAME={m.name} >")
        lines += [f"CPU_ONLINE CORE_{i} {int(i < m.cpus)}" for i in range(spec.cpu.count)]
        lines += ["GPU MIN_FREQ 0", f"GPU MAX_FREQ {-1 if m.gpu_max_hz is None else m.gpu_max_hz}", ""]
    lines.append(f"< PM_CONFIG DEFAULT={spec.default_power_mode} >")
    return "\n".join(lines) + "\n"


def _gpu(spec: BoardSpec, out: Entries) -> None:
    gpu = spec.gpu
    out.files |= {
        f"{gpu.node}/available_frequencies": " ".join(map(str, gpu.frequencies_hz)) + "\n",
        f"{gpu.node}/available_governors": " ".join(gpu.governors) + "\n",
        f"{gpu.node}/polling_interval": "50\n",
    }
    if gpu.node_name:
        out.files[f"{gpu.device}/of_node/name"] = gpu.node_name + "\0"
    for name in gpu.beside:
        beside = f"{gpu.device}/devfreq/{name}"
        for bound, hz in (("min", 0), ("cur", 0), ("max", -1)):
            out.files[f"{beside}/{bound}_freq"] = f"{gpu.frequencies_hz[hz]}\n"
        out.files[f"{beside}/governor"] = gpu.default_governor + "\n"
        out.links[f"sys/class/devfreq/{name}"] = beside
    out.links[f"{gpu.node}/device"] = gpu.device
    out.links[f"sys/class/devfreq/{gpu.devfreq}"] = gpu.node
    out.links |= gpu.links


def _power(spec: BoardSpec, out: Entries) -> None:
    for i, chip in enumerate(spec.chips):
        rails = [rail for rail in spec.rails if rail.chip == i]
        out.files[f"{chip.path}/name"] = chip.label + "\n"
        for rail in rails:
            if chip.kind == "iio":
                out.files[f"{chip.path}/rail_name_{rail.channel}"] = rail.name + "\n"
            elif chip.kind == "hwmon":
                out.files[f"{chip.path}/in{rail.channel + 1}_label"] = rail.name + "\n"
        if chip.kind == "hwmon":
            out.files[f"{chip.path}/in7_label"] = "sum of shunt voltages\n"
            out.files[f"{chip.path}/in7_input"] = "0\n"
        number = chip.path.rsplit("/", 1)[1]
        device = chip.path.removesuffix(f"/{number}").removesuffix("/hwmon")
        out.files[f"{device}/name"] = chip.label + "\n"
        out.links[f"sys/bus/i2c/devices/{device.rsplit('/', 1)[1]}"] = device
        out.links[f"sys/bus/iio/devices/{number}" if chip.kind == "iio" else f"sys/class/hwmon/{number}"] = chip.path


def _cpu(spec: BoardSpec, out: Entries) -> None:
    cpu = spec.cpu
    table: Mapping[str, str] = {
        "scaling_available_frequencies": " ".join(str(hz // 1000) for hz in cpu.frequencies_hz) + "\n",
        "scaling_min_freq": f"{cpu.frequencies_hz[0] // 1000}\n",
        "scaling_max_freq": f"{cpu.frequencies_hz[-1] // 1000}\n",
        "scaling_cur_freq": f"{cpu.idle_hz // 1000}\n",
        "cpuinfo_min_freq": f"{cpu.frequencies_hz[0] // 1000}\n",
        "cpuinfo_max_freq": f"{cpu.frequencies_hz[-1] // 1000}\n",
        "cpuinfo_cur_freq": f"{cpu.idle_hz // 1000}\n",
        "scaling_governor": cpu.governor + "\n",
    }
    for i in range(cpu.count):
        out.files |= {f"{CPUS}/cpu{i}/cpufreq/{name}": text for name, text in table.items()}
    out.files[f"{CPUS}/possible"] = out.files[f"{CPUS}/present"] = f"0-{cpu.count - 1}\n"
