"""The GPU clock of a virtual board: devfreq bounds, their delay, and the load-following mode-0 governor. Pure."""

from __future__ import annotations

import bisect
import math
from collections import deque

from ..kernel.devfreqnode import DevfreqSettings, SimulatedDevfreq
from .boardspec import GpuSpec

LOAD_TAU_S = 0.1
TARGET_LOAD = 0.6
RAISE_STEPS, LOWER_STEPS = 3, 1


class GpuClock:
    """What the devfreq files take and show (``devfreqnode`` has the kernel's manners), and the clock that runs.

    A write shows at once and reaches the clock ``switch_delay_s`` later. Meanwhile the governor moves the clock inside
    the bounds in force: nvhost_podgov follows the load, lagging; performance stays at the top; userspace holds its
    set_freq; simple_ondemand is treated as nvhost_podgov.
    """

    def __init__(self, spec: GpuSpec, switch_delay_s: float | None = None) -> None:
        self.spec = spec
        self.table = spec.frequencies_hz
        self.switch_delay_s = spec.switch_delay_s if switch_delay_s is None else switch_delay_s
        settings = DevfreqSettings(
            self.table,
            snap=spec.snap,
            minmax=spec.order,
            governor=spec.default_governor,
            available_governors=spec.governors,
        )
        # The node itself does not delay: the delay here is of bounds only, and an event of the board.
        self._node = SimulatedDevfreq(settings, lambda: 0.0)
        self._governor = spec.default_governor
        self._userspace_hz = self.table[0]
        self.thermal_max_hz = self.table[-1]
        self.hz = self.table[0]
        self.load = 0.0
        self.follows = True  # False: bounds read back as written, and the clock stays where it is
        self._in_force = self.bounds()
        self._pending: deque[tuple[float, int, int]] = deque()
        self._wanted_hz = self.table[0]

    @property
    def next_change_s(self) -> float:
        """When a written bound reaches the clock; infinity when none is on its way."""
        return self._pending[0][0] if self._pending else math.inf

    def bounds(self) -> tuple[int, int]:
        """min_freq and max_freq as they read back."""
        return self._node.bounds()

    def names(self) -> tuple[str, ...]:
        """The node's files."""
        return self._node.names()

    def read(self, name: str) -> str:
        """Content of one of the node's files. Raises OSError (ENOENT)."""
        if name in {"cur_freq", "target_freq"}:
            return f"{self.hz}\n"
        return self._node.read(name)

    def write(self, name: str, text: str, t_s: float) -> None:
        """A write to one of the node's files. Raises OSError as the kernel does."""
        self._node.write(name, text)
        self._governor = self._node.read("governor").strip()
        if self._governor == "userspace":
            self._userspace_hz = int(self._node.read("userspace/set_freq"))
        if name in {"min_freq", "max_freq"}:
            self._schedule(t_s + self.switch_delay_s)

    def set_bounds(self, min_hz: int, max_hz: int, t_s: float) -> None:
        """Write both bounds in the order that every kernel accepts: raising, maximum first; else minimum first."""
        writes = [("max_freq", max_hz), ("min_freq", min_hz)]
        if max_hz < self.bounds()[1]:
            writes.reverse()
        for name, value in writes:
            self.write(name, str(value), t_s)

    def set_mode_cap(self, cap_hz: int | None, t_s: float) -> None:
        """What a power-mode change does: a new limit, felt at once, and the bounds reset to it."""
        self._node.set_ceiling(cap_hz)
        self._node.write("min_freq", str(self.table[0]))
        self._node.write("max_freq", str(self.table[-1]))
        self._pending.clear()
        self._schedule(t_s)

    def take_effect(self, t_s: float) -> bool:
        """Put the bounds due by ``t_s`` in force. True when the clock moved."""
        while self._pending and self._pending[0][0] <= t_s:
            _, low, high = self._pending.popleft()
            self._in_force = (low, high)
        return self._settle()

    def tick(self, dt_s: float, busy_share: float) -> bool:
        """Let the governor look at ``dt_s`` seconds with that share busy. True when the clock moved."""
        self.load += (busy_share - self.load) * -math.expm1(-dt_s / LOAD_TAU_S)
        if self._governor == "performance":
            self._wanted_hz = self.table[-1]
        elif self._governor == "userspace":
            self._wanted_hz = self._userspace_hz
        else:
            here = self.table.index(self.hz)
            ideal = bisect.bisect_left(self.table, self.hz * self.load / TARGET_LOAD)
            step = min(max(ideal, here - LOWER_STEPS), here + RAISE_STEPS, len(self.table) - 1)
            self._wanted_hz = self.table[step]
        return self._settle()

    def clamp_thermally(self, steps: int) -> None:
        """Lower the clock's ceiling by that many steps of the table."""
        self.thermal_max_hz = self.table[max(0, len(self.table) - 1 - steps)]

    def _schedule(self, t_s: float) -> None:
        self._pending.append((t_s, *self.bounds()))

    def _settle(self) -> bool:
        if not self.follows:
            return False
        low, high = self._in_force
        high = min(high, self.thermal_max_hz)
        wish = min(max(self._wanted_hz, low), high)
        steps = self.table[: bisect.bisect_right(self.table, high)] or self.table[:1]
        new = steps[min(bisect.bisect_left(steps, wish), len(steps) - 1)]
        moved = new != self.hz
        self.hz = new
        return moved
