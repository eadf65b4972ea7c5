"""What a search has measured of one job at one batch size: by clock, for limits, and to be remembered."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..values import Board
from .curves import Curve
from .window import Measured

_POWER_EXPONENT = 3.0  # dynamic power rises no faster than f·V², V at most in proportion to f


@dataclass
class Log:
    """Readings by clock index; ``clocks`` in Hz. ``reference_time_s``: time per sample in mode 0, None if unknown."""

    clocks: tuple[int, ...]
    reference_time_s: float | None = None
    readings: dict[int, list[Measured]] = field(default_factory=dict)

    def add(self, index: int, measured: Measured) -> None:
        """Keep a reading."""
        self.readings.setdefault(index, []).append(measured)

    def energy_j(self, index: int, power: str) -> float:
        """Mean energy per sample of the last three readings at ``index``. Raises KeyError where there is none."""
        last = [m.compute_energy_j if power == "compute" else m.input_energy_j for m in self.readings[index][-3:]]
        known = [e for e in last if e is not None]
        return sum(known) / len(known)

    def time_s(self, index: int) -> float:
        """Mean time per sample at ``index``. Raises KeyError where it was not measured."""
        return _mean([m.time_s for m in self.readings[index]])

    def within(self, cap_w: float, ceiling: int) -> set[int]:
        """Clocks that a cap allows: not above ``ceiling``, and by the readings so far not above the cap.

        Above the highest clock that was measured, power is taken to rise with the cube of the clock.
        """
        watts = {
            i: max(m.input_energy_j / m.time_s for m in ms if m.input_energy_j is not None)
            for i, ms in self.readings.items()
            if any(m.input_energy_j is not None for m in ms)
        }
        allowed = set()
        for i, hz in enumerate(self.clocks[: ceiling + 1]):
            below = max((k for k in watts if k <= i), default=None)
            most = 0.0 if below is None else watts[below] * (hz / self.clocks[below]) ** _POWER_EXPONENT
            if most < cap_w:
                allowed.add(i)
        return allowed

    def fast_enough(self, limit: float) -> set[int]:
        """Clocks at which a sample takes at most ``limit`` times as long as in mode 0.

        Those not measured are judged by host part + device part over f, fitted to what was; before two clocks are
        known, all of the time is taken to follow the clock.
        """
        reference = self.reference_time_s
        if reference is None:
            return set(range(len(self.clocks)))
        times = {i: self.time_s(i) for i in self.readings}
        top = len(self.clocks) - 1
        known = {top: reference, **times}
        f = np.array([self.clocks[i] for i in known], float) / self.clocks[top]
        t = np.array(list(known.values()))
        host, device = 0.0, reference
        if len(known) >= 2:
            terms = np.stack([np.ones_like(f), 1 / f], axis=1)
            host, device = (float(x) for x in np.linalg.lstsq(terms, t, rcond=None)[0])
        guess = [host + device * self.clocks[top] / hz for hz in self.clocks]
        return {i for i in range(len(self.clocks)) if times.get(i, guess[i]) <= limit * reference}

    def curve(
        self, board: Board, workload: str, batch_size: int, *, tree: int, best: int, utilization: float | None
    ) -> Curve:
        """To be remembered. Raises ValueError before the first reading."""
        index = sorted(self.readings)
        return Curve(
            board.name,
            workload,
            batch_size,
            tuple(self.clocks[i] for i in index),
            tuple(_mean_known([m.compute_energy_j for m in self.readings[i]]) for i in index),
            tuple(_mean_known([m.input_energy_j for m in self.readings[i]]) for i in index),
            tuple(self.time_s(i) for i in index),
            tuple(math.sqrt(sum(m.sd**2 for m in self.readings[i])) / len(self.readings[i]) for i in index),
            self.clocks[tree],
            self.clocks[best],
            utilization,
            self.reference_time_s,
            board.release,
            board.power_mode,
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _mean_known(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return _mean(known) if known else None
