"""The GPU clock of a virtual board: devfreq bounds, their delay, and the load-following mode-0 governor. Pure."""

from __future__ import annotations

import bisect
import errno
import math
from collections import deque

from .boardspec import GpuSpec

LOAD_TAU_S = 0.1
TARGET_LOAD = 0.6
RAISE_STEPS, LOWER_STEPS = 3, 1


class GpuClock:
    """What the devfreq files show, and the clock that really runs.

    A write shows in ``min_hz`` and ``max_hz`` at once and reaches the clock ``switch_delay_s`` later. In between the
    governor moves the clock inside the bounds in force: nvhost_podgov follows the load, lagging; performance stays
    at the top; userspace holds ``userspace_hz``; simple_ondemand is treated as nvhost_podgov.
    """

    def __init__(self, spec: GpuSpec, switch_delay_s: float | None = None) -> None:
        self.spec = spec
        self.table = spec.frequencies_hz
        self.switch_delay_s = spec.switch_delay_s if switch_delay_s is None else switch_delay_s
        self.min_hz, self.max_hz = self.table[0], self.table[-1]
        self.mode_max_hz = self.table[-1]
        self.thermal_max_hz = self.table[-1]
        self.governor = spec.default_governor
        self.userspace_hz = self.table[0]
        self.hz = self.table[0]
        self.load = 0.0
        self._in_force = (self.min_hz, self.max_hz)
        self._pending: deque[tuple[float, int, int]] = deque()
        self._wanted = 0

    @property
    def next_change_s(self) -> float:
        """When a written bound reaches the clock; infinity when none is on its way."""
        return self._pending[0][0] if self._pending else math.inf

    def write_max(self, value_hz: int, t_s: float) -> None:
        """Write max_freq, with the kernel's manners. Raises OSError(EINVAL) for a refused value."""
        self._check(value_hz)
        snapped = min(self._ceil(value_hz) if self.spec.snap_max == "up" else self._floor(value_hz), self.mode_max_hz)
        if snapped < self.min_hz:
            if self.spec.order == "refuse":
                raise OSError(errno.EINVAL, f"max_freq {value_hz} lies below min_freq {self.min_hz}")
            self.min_hz = snapped
        self.max_hz = snapped
        self._pending.append((t_s + self.switch_delay_s, self.min_hz, self.max_hz))

    def write_min(self, value_hz: int, t_s: float) -> None:
        """Write min_freq, with the kernel's manners. Raises OSError(EINVAL) for a refused value."""
        self._check(value_hz)
        snapped = self._ceil(value_hz)
        if snapped > self.max_hz:
            if self.spec.order == "refuse":
                raise OSError(errno.EINVAL, f"min_freq {value_hz} lies above max_freq {self.max_hz}")
            snapped = self.max_hz
        self.min_hz = snapped
        self._pending.append((t_s + self.switch_delay_s, self.min_hz, self.max_hz))

    def set_bounds(self, min_hz: int, max_hz: int, t_s: float) -> None:
        """Write both bounds in the order that the kernel accepts (raising, maximum first; lowering, minimum first)."""
        if max_hz >= self.max_hz:
            self.write_max(max_hz, t_s)
            self.write_min(min_hz, t_s)
        else:
            self.write_min(min(min_hz, self.max_hz), t_s)
            self.write_max(max_hz, t_s)

    def set_governor(self, name: str) -> None:
        """Choose the governor. Raises OSError(EINVAL) for one that the node does not offer."""
        if name not in self.spec.governors:
            raise OSError(errno.EINVAL, f"governor {name!r} is not one of {' '.join(self.spec.governors)}")
        self.governor = name

    def set_userspace(self, value_hz: int) -> None:
        """The userspace governor's set_freq."""
        self._check(value_hz)
        self.userspace_hz = self._ceil(value_hz)

    def set_mode_cap(self, cap_hz: int | None, t_s: float) -> None:
        """What a power-mode change does: the cap's next lower step limits, and the bounds are reset to it."""
        self.mode_max_hz = self.table[-1] if cap_hz is None else self._floor(cap_hz)
        self.min_hz, self.max_hz = self.table[0], self.mode_max_hz
        self._pending.append((t_s, self.min_hz, self.max_hz))
        self._pending = deque(sorted(self._pending))

    def take_effect(self, t_s: float) -> bool:
        """Put the bounds due by ``t_s`` in force. True when the clock moved."""
        while self._pending and self._pending[0][0] <= t_s:
            _, low, high = self._pending.popleft()
            self._in_force = (low, high)
        return self._settle()

    def tick(self, dt_s: float, busy_share: float) -> bool:
        """Let the governor look at ``dt_s`` seconds with that share busy. True when the clock moved."""
        self.load += (busy_share - self.load) * -math.expm1(-dt_s / LOAD_TAU_S)
        here = self.table.index(self.hz)
        if self.governor == "performance":
            wanted = len(self.table) - 1
        elif self.governor == "userspace":
            wanted = self.table.index(self.userspace_hz)
        else:
            ideal = bisect.bisect_left(self.table, self.hz * self.load / TARGET_LOAD)
            wanted = min(max(ideal, here - LOWER_STEPS), here + RAISE_STEPS, len(self.table) - 1)
        self._wanted = wanted
        return self._settle()

    def clamp_thermally(self, steps: int) -> None:
        """Lower the clock's ceiling by that many steps of the table."""
        self.thermal_max_hz = self.table[max(0, len(self.table) - 1 - steps)]

    def _settle(self) -> bool:
        low, high = self._in_force
        new = min(max(self.table[self._wanted], low), high, self.thermal_max_hz, self.mode_max_hz)
        moved = new != self.hz
        self.hz = new
        return moved

    def _check(self, value_hz: int) -> None:
        if value_hz < 0:
            raise OSError(errno.EINVAL, f"{value_hz} is not a frequency")

    def _ceil(self, value_hz: int) -> int:
        return self.table[min(bisect.bisect_left(self.table, value_hz), len(self.table) - 1)]

    def _floor(self, value_hz: int) -> int:
        return self.table[max(bisect.bisect_right(self.table, value_hz) - 1, 0)]
