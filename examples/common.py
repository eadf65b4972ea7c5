"""What both examples need besides training: the device that a step's time passes on, and progress lines."""

from __future__ import annotations

import json
import os
import time
from typing import Protocol


class Device(Protocol):
    """Where steps run, as CUDA has it: launched at once, finished later."""

    def submit(self, workload: str, batch_size: int) -> None:
        """Launch one training step. Raises MemoryError where the batch does not fit."""

    def synchronize(self) -> None:
        """Wait for all launched steps."""


class Cpu:
    """The processor that this script runs on: a step has ended when its NumPy calls have."""

    def submit(self, workload: str, batch_size: int) -> None:
        """Nothing to launch: the gradient step itself takes the time."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


def open_device() -> Device:
    """The emulated GPU of a virtual board where TRAINGOV_SIM_GPU names one, else this CPU."""
    if os.environ.get("TRAINGOV_SIM_GPU"):
        from traingov_sim.gpu import EmulatedGpu  # noqa: PLC0415  only a virtual board has it

        return EmulatedGpu()
    return Cpu()


class Progress:
    """Prints a JSON line of the given values, a few times a second at most, where ``on``."""

    def __init__(self, on: bool, interval_s: float = 0.25) -> None:
        self._on, self._interval_s = on, interval_s
        self._due_s = 0.0

    def show(self, **values: float | int | str | None) -> None:
        """Print ``values`` unless the last line is too recent."""
        if self._on and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + self._interval_s
            print(json.dumps(values), flush=True)
