"""The kernel's side of one devfreq node, simulated: which values it takes, what it shows, when the clock follows.

Two manners are modelled, because real kernels differ (drivers/devfreq/devfreq.c):

- "refuse" (4.9, JetPack 4): a write that would make min exceed max gets EINVAL; the files show what is stored;
- "clamp" (dev_pm_qos, 5.4 and later): every number is stored, and the files show the effective values: within the
  clock table and the power mode's limit, and min never above max. A max of 0 is "no limit".
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

NO_LIMIT = 2**31 * 1000


@dataclass(frozen=True)
class DevfreqSettings:
    """A node's manners.

    ``table_hz``: the clock steps, ascending. ``snap``: what a bound off the table becomes: "keep", "up", "down" or
    "nearest" step. ``minmax``: "refuse" or "clamp", see above. ``ceiling_hz``: the power mode's limit.
    ``switch_delay_s``: time until cur_freq follows a change. ``shows_table``: available_frequencies exists.
    """

    table_hz: tuple[int, ...]
    snap: str = "keep"
    minmax: str = "refuse"
    ceiling_hz: int | None = None
    switch_delay_s: float = 0.0
    governor: str = "nvhost_podgov"
    available_governors: tuple[str, ...] = ("nvhost_podgov", "userspace", "performance", "simple_ondemand")
    shows_table: bool = True


class SimulatedDevfreq:
    """One node's state. Frequencies in Hz, time from ``clock`` in seconds.

    ``demand_hz`` is what the governor would choose by load (None: as high as it may, as under training).
    """

    def __init__(self, settings: DevfreqSettings, clock: Callable[[], float]) -> None:
        if not settings.table_hz or list(settings.table_hz) != sorted(set(settings.table_hz)):
            raise ValueError("table_hz must be ascending clock steps, at least one")
        self.settings = settings
        self.demand_hz: int | None = None
        self._clock = clock
        self._ceiling = settings.ceiling_hz
        self._min = settings.table_hz[0]
        self._max = self._limit() if settings.minmax == "refuse" else settings.table_hz[-1]
        self._set_hz = settings.table_hz[0]
        self._governor = settings.governor
        self._settled_hz = self._target()
        self._goal_hz = self._settled_hz
        self._arrives_at = clock()

    def names(self) -> tuple[str, ...]:
        """The files that this node has."""
        names = ["available_governors", "cur_freq", "governor", "max_freq", "min_freq", "target_freq"]
        if self.settings.shows_table:
            names.append("available_frequencies")
        if self._governor == "userspace":
            names.append("userspace/set_freq")
        return tuple(sorted(names))

    def bounds(self) -> tuple[int, int]:
        """The bounds as the files show them: (min, max)."""
        if self.settings.minmax == "refuse":
            return self._min, self._max
        high = min(self._max, self.settings.table_hz[-1], self._limit())
        return min(max(self._min, self.settings.table_hz[0]), high), high

    def set_ceiling(self, ceiling_hz: int | None) -> None:
        """A new power mode's limit, as the kernel feels it; None lifts it."""
        self._ceiling = ceiling_hz
        if self.settings.minmax == "refuse":
            self._max = min(self._max, self._limit())
            self._min = min(self._min, self._max)
        self._follow()

    def read(self, name: str) -> str:
        """The content of a file of this node. Raises OSError (ENOENT)."""
        low, high = self.bounds()
        contents = {
            "min_freq": str(low),
            "max_freq": str(high),
            "cur_freq": str(self.current_hz()),
            "target_freq": str(self._target()),
            "governor": self._governor,
            "available_governors": " ".join(self.settings.available_governors),
            "available_frequencies": " ".join(str(step) for step in self.settings.table_hz),
            "userspace/set_freq": str(self._set_hz),
        }
        if name not in self.names():
            raise _error(errno.ENOENT, name)
        return contents[name] + "\n"

    def write(self, name: str, text: str) -> None:
        """A write to a file of this node. Raises OSError as the kernel does."""
        if name not in self.names():
            raise _error(errno.ENOENT, name)
        if name == "governor":
            if text.strip() not in self.settings.available_governors:
                raise _error(errno.EINVAL, name)
            self._governor = text.strip()
        elif name == "min_freq":
            self._write_min(_number(text, name))
        elif name == "max_freq":
            self._write_max(_number(text, name))
        elif name == "userspace/set_freq":
            self._set_hz = _number(text, name)
        else:
            raise _error(errno.EACCES, name)  # mode 0444
        self._follow()

    def current_hz(self) -> int:
        """The clock now: it follows a change only after the switch delay."""
        self._follow()
        return self._goal_hz if self._clock() >= self._arrives_at else self._settled_hz

    def _write_min(self, value: int) -> None:
        value = self._snap(value)
        if self.settings.minmax == "refuse" and value > self._max:
            raise _error(errno.EINVAL, "min_freq")
        self._min = value

    def _write_max(self, value: int) -> None:
        if self.settings.minmax == "clamp":
            self._max = self._snap(value) or NO_LIMIT
            return
        value = min(self._snap(value) or self._limit(), self._limit())
        if value < self._min:
            raise _error(errno.EINVAL, "max_freq")
        self._max = value

    def _snap(self, value: int) -> int:
        table = self.settings.table_hz
        if self.settings.snap == "keep" or value == 0:
            return value
        below = max((step for step in table if step <= value), default=table[0])
        above = min((step for step in table if step >= value), default=table[-1])
        if self.settings.snap == "up":
            return above
        if self.settings.snap == "down":
            return below
        return below if value - below < above - value else above

    def _limit(self) -> int:
        table = self.settings.table_hz
        if self._ceiling is None:
            return table[-1]
        # A limit off the table (520 MHz, say) means the next lower step.
        return max((step for step in table if step <= self._ceiling), default=table[0])

    def _target(self) -> int:
        low, high = self.bounds()
        wish = {"performance": high, "powersave": low, "userspace": self._set_hz}.get(
            self._governor, high if self.demand_hz is None else self.demand_hz
        )
        wish = max(low, min(high, wish))
        steps = [step for step in self.settings.table_hz if step <= high] or [self.settings.table_hz[0]]
        return min((step for step in steps if step >= wish), default=steps[-1])

    def _follow(self) -> None:
        target = self._target()
        if target == self._goal_hz:
            return
        now = self._clock()
        if now >= self._arrives_at:
            self._settled_hz = self._goal_hz
        self._goal_hz = target
        self._arrives_at = now + self.settings.switch_delay_s


def _number(text: str, name: str) -> int:
    """As kstrtoul(…, 0): a number, one newline allowed after it."""
    digits = text.removesuffix("\n")
    try:
        if not digits.isascii() or not digits or digits.strip() != digits or "_" in digits or digits[0] == "-":
            raise ValueError
        base = 16 if digits.lower().startswith("0x") else 8 if digits.startswith("0") and len(digits) > 1 else 10
        value = int(digits, base)
    except ValueError:
        raise _error(errno.EINVAL, name) from None
    if value >= 2**64:
        raise _error(errno.ERANGE, name)
    return value


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)
