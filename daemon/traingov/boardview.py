"""All that traingov reads of a board, as plain values: of this machine, of a virtual board or of a recording.

What ``traingov board read`` prints, and what the golden file of every recorded board holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .device.board import identify, power_mode
from .device.bounds import read_bounds
from .device.discovery import find_gpu, gpu_load
from .device.files import Files
from .telemetry.interface import MeterError
from .telemetry.rails import RailTable
from .telemetry.reading import Reading
from .telemetry.samples import Sampler
from .telemetry.sysfs import SysfsMeter
from .telemetry.tegrastats import NotTegrastats, parse_line


def view(files: Files, lines: Sequence[str], table: RailTable) -> dict[str, Any]:
    """Identity, GPU node, what the kernel's files give and what each line of tegrastats gives. Never raises.

    Power in watts, clocks in Hz, utilization 0..1, temperatures in °C; None for what the board does not show.
    """
    identity, mode, gpu = identify(files), power_mode(files), find_gpu(files)
    node: dict[str, Any] | None = None
    if gpu is not None:
        bounds = read_bounds(files, gpu.path)
        node = {
            "path": gpu.path,
            "available_frequencies_hz": list(gpu.available_frequencies_hz),
            "available_governors": list(gpu.available_governors),
            "min_hz": bounds.min_hz,
            "max_hz": bounds.max_hz,
            "governor": bounds.governor,
            "load_path": gpu.load_path,
            "utilization": gpu_load(files, gpu),
        }
    sysfs: dict[str, Any]
    try:
        sysfs = _sample(SysfsMeter(files).read(), table, identity.name)
    except MeterError as error:
        sysfs = {"error": str(error)}
    return {
        "board": identity.name,
        "release": identity.release,
        "power_mode": mode.name,
        "power_mode_gpu_max_hz": mode.gpu_max_hz,
        "gpu": node,
        "sysfs": sysfs,
        "tegrastats": [_line(line, table, identity.name) for line in lines],
    }


def _line(line: str, table: RailTable, board: str) -> dict[str, Any]:
    try:
        reading = parse_line(line)
    except NotTegrastats as error:
        return {"error": str(error)}
    return _sample(reading, table, board) | {"unknown": list(reading.unknown)}


def _sample(reading: Reading, table: RailTable, board: str) -> dict[str, Any]:
    sampler = Sampler(table, board, lambda rule, unknown: None)
    sample = sampler.sample(0.0, reading)
    return {
        "rails_w": {rail: round(power, 6) for rail, power in reading.rails_w.items()},
        "rule": sampler.rule.board,
        "input_power_w": _rounded(sample.input_power_w),
        "compute_power_w": _rounded(sample.compute_power_w),
        "gpu_frequency_hz": sample.gpu_frequency_hz,
        "gpu_utilization": sample.gpu_utilization,
        "temperature_celsius": sample.temperature_celsius,
    }


def _rounded(power_w: float | None) -> float | None:
    return None if power_w is None else round(power_w, 6)
