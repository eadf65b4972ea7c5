"""The ranges that the calibration searches: what is physically plausible on each board, and nothing narrower.

A range is (low, high); positive ranges that span more than a factor of three are searched in log.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Range = tuple[float, float]

_VOLTAGE: dict[str, Range] = {
    "voltage_floor": (0.62, 0.86),
    "voltage_knee": (0.2, 0.6),
    "voltage_bend": (0.8, 1.8),
    "idle_activity": (0.05, 0.25),
}
BOARD_RANGES: dict[str, dict[str, Range]] = {
    "nano": {
        "idle_w": (1.2, 2.4),
        "leakage_w": (0.1, 0.7),
        "dynamic_w": (2.0, 6.5),
        "memory_w": (0.3, 1.3),
        "cpu_host_w": (0.8, 1.8),
        "cpu_wait_w": (0.15, 0.75),
        **_VOLTAGE,
    },
    "tx2-nx": {
        "idle_w": (1.2, 2.4),
        "leakage_w": (0.1, 0.9),
        "dynamic_w": (3.0, 11.0),
        "memory_w": (0.4, 1.6),
        "cpu_host_w": (0.9, 2.2),
        "cpu_wait_w": (0.15, 0.85),
        **_VOLTAGE,
    },
    "agx-orin": {
        "idle_w": (8.0, 11.0),  # not part of compute power
        "leakage_w": (0.5, 3.5),
        "dynamic_w": (15.0, 45.0),
        "memory_w": (2.0, 6.0),
        "cpu_host_w": (3.5, 9.0),
        "cpu_wait_w": (1.0, 3.5),
        **_VOLTAGE,
        "idle_activity": (0.01, 0.15),
    },
}

_SHARED: dict[str, Range] = {
    "wave_share": (0.05, 0.5),
    "wave_size": (3.0, 24.0),
    "norm": (2.0, 8.0),
    "update_scaling": (0.1, 0.5),
    "activity": (0.55, 1.0),
    "stall_activity": (0.15, 0.6),
    "lane_activity": (0.3, 0.95),
}


def workload_ranges(board: str, sample_s: float) -> dict[str, Range]:
    """Ranges of a workload's parameters, given about how long a sample takes at the top clock."""
    s = sample_s
    ranges: dict[str, Range] = {
        "compute_s": (0.2 * s, 1.0 * s),
        "half_batch": (0.3, 12.0),
        "memory_s": (0.05 * s, 0.9 * s),
        "memory_step_s": (0.1 * s, 8.0 * s),
        "launch_s": (0.1 * s, 8.0 * s),
        "host_step_s": (0.05 * s, 4.0 * s),
        "host_sample_s": (0.01 * s, 0.35 * s),
        "update_s": (0.1 * s, 5.0 * s),
    }
    if board == "agx-orin":
        # Small models there wait for the host for most of a step.
        ranges["host_step_s"] = (0.1 * s, 32 * 0.9 * s)
        ranges["memory_s"] = (0.02 * s, 0.9 * s)
        ranges["compute_s"] = (0.03 * s, 1.0 * s)
        return {**ranges, **_SHARED, "activity": (0.3, 1.0)}
    return {**ranges, **_SHARED}


def common_parameters(board: str) -> tuple[str, ...]:
    """The board parameters that all workloads of a board share.

    On the AGX Orin the CPU rail is the workload's: the energy paper leaves the CPU's clock to schedutil.
    """
    return tuple(n for n in BOARD_RANGES[board] if board != "agx-orin" or not n.startswith("cpu_"))


class Space:
    """Named parameters as points of the unit cube."""

    def __init__(self, ranges: Mapping[str, Range]) -> None:
        self.names = tuple(ranges)
        low = np.array([ranges[n][0] for n in self.names])
        high = np.array([ranges[n][1] for n in self.names])
        self._log = high / low > 3.0
        self._low = np.where(self._log, np.log(low), low)
        self._high = np.where(self._log, np.log(high), high)

    def decode(self, unit: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Parameters of a population ``unit`` [population, parameters]."""
        values = self._low + unit * (self._high - self._low)
        values = np.where(self._log, np.exp(np.where(self._log, values, 0.0)), values)
        return {name: values[:, i] for i, name in enumerate(self.names)}
