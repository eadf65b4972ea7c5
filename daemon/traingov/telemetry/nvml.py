"""Readings through NVML, for Thor and for discrete GPUs: power, utilization, clock and temperature of one GPU.

The package ``pynvml`` (nvidia-ml-py) is imported when the first reading is asked for; traingov does not need it.
On Orin, NVML comes up and then answers NotSupported to nearly everything: each such reading is missing.

Monitoring only. NVML can lock a GPU's clocks, but it cannot say what was locked before, so there would be no found
value to give back (DESIGN 5.1); and giving back must work with the standard library alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .interface import MeterError
from .reading import Reading

CARD_RAIL = "NVML_GPU"
"""Power of a discrete card: it is all there is, and counts as input power (etc/boards/nvml-gpu.yaml)."""
MODULE_RAIL = "NVML_SOC_GPU"
"""Power that NVML shows on a Jetson: a part of the board, in no sum."""


class NvmlMeter:
    """The GPU number ``index``. ``on_jetson``: its power is a part of the board's, not the whole."""

    name = "nvml"
    least_interval_s = 0.02

    def __init__(self, index: int = 0, on_jetson: bool = False) -> None:
        self._index = index
        self._rail = MODULE_RAIL if on_jetson else CARD_RAIL
        self._nvml: Any = None
        self._handle: Any = None

    def read(self) -> Reading:
        """What NVML says now. Raises MeterError where it says nothing at all, or cannot be used."""
        nvml = self._nvml if self._nvml is not None else self._open()
        handle = self._handle
        milliwatts = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        busy = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        mhz = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_GRAPHICS))
        celsius = self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        if milliwatts is busy is mhz is celsius is None:
            raise MeterError("NVML supports no reading of this GPU (as on Orin): use tegrastats or sysfs")
        return Reading(
            rails_w={} if milliwatts is None else {self._rail: milliwatts / 1000},
            gpu_utilization=None if busy is None else busy / 100,
            gpu_frequency_hz=None if mhz is None else mhz * 1_000_000,
            temperatures_celsius={} if celsius is None else {"gpu": float(celsius)},
        )

    def close(self) -> None:
        """Let go of the library."""
        if self._nvml is not None:
            with contextlib.suppress(Exception):
                self._nvml.nvmlShutdown()

    def _open(self) -> Any:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            raise MeterError("the package nvidia-ml-py is not installed: pip install nvidia-ml-py") from None
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise MeterError(f"NVML cannot be used: {error}") from None
        self._nvml = nvml
        try:
            self._handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
        except nvml.NVMLError as error:
            raise MeterError(f"NVML shows no GPU {self._index}: {error}") from None
        return nvml

    def _ask(self, question: Callable[[], int]) -> int | None:
        try:
            return int(question())
        except self._nvml.NVMLError as error:
            if _is_lost(self._nvml, error):
                raise MeterError(f"NVML: {error}") from None
            return None


def _is_lost(nvml: Any, error: Exception) -> bool:
    """Whether the GPU or the library is gone, so that later questions would fail as well."""
    lost = {getattr(nvml, name, None) for name in ("NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_UNINITIALIZED")} - {None}
    return getattr(error, "value", None) in lost
