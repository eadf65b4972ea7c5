"""Caps that change: the series that `traingov-sim evaluate cap` puts a governor under. Pure; watts over seconds.

Levels lie between ``low_w`` (a little above what the board draws at its least point) and ``high_w`` (a little above
its most). A series is a list of (from second, watts); the last one holds to the end.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable
from dataclasses import dataclass

from ..board.battery import Solar

Series = tuple[tuple[float, float], ...]

DAY_S = 86_400.0


@dataclass(frozen=True)
class CapSeries:
    """``steps`` from second 0 on, for ``seconds`` in all."""

    name: str
    seconds: float
    steps: Series

    def at(self, t_s: float) -> float:
        """The cap at ``t_s``."""
        return self.steps[max(0, bisect.bisect_right(self.steps, (t_s, float("inf"))) - 1)][1]


def step(low_w: float, high_w: float, rng: random.Random) -> CapSeries:
    """Up and down between levels drawn at random, each held for a minute."""
    steps = [(60.0 * k, rng.uniform(low_w, high_w)) for k in range(1, 10)]
    return CapSeries("step", 600.0, ((0.0, high_w), *steps))


def ramp(low_w: float, high_w: float, rng: random.Random) -> CapSeries:
    """Down from the top to the bottom within four minutes and up again, told anew each second."""
    del rng
    down = [(float(k), high_w + (low_w - high_w) * k / 240) for k in range(240)]
    up = [(300.0 + k, low_w + (high_w - low_w) * k / 240) for k in range(240)]
    return CapSeries("ramp", 600.0, (*down, (240.0, low_w), *up, (540.0, high_w)))


def walk(low_w: float, high_w: float, rng: random.Random) -> CapSeries:
    """A random walk: each ten seconds a normal step of a tenth of the range, turned back at the ends."""
    watts, steps = rng.uniform(low_w, high_w), []
    for k in range(60):
        steps.append((10.0 * k, watts))
        watts += rng.gauss(0.0, 0.1 * (high_w - low_w))
        watts = min(max(2 * low_w - watts if watts < low_w else watts, low_w), high_w)
    return CapSeries("random-walk", 600.0, tuple(steps))


def flicker(low_w: float, high_w: float, rng: random.Random) -> CapSeries:
    """Between two levels by turns, three seconds each."""
    a, b = sorted((rng.uniform(low_w, high_w), rng.uniform(low_w, high_w)))
    if b - a < 0.3 * (high_w - low_w):
        a, b = low_w + 0.2 * (high_w - low_w), low_w + 0.8 * (high_w - low_w)
    return CapSeries("flicker", 300.0, tuple((3.0 * k, (b, a)[k % 2]) for k in range(100)))


def solar_day(low_w: float, high_w: float, rng: random.Random, *, day_s: float = DAY_S) -> CapSeries:
    """A day: what a battery always gives (``low_w``) and the sun on top, clouds passing, told each minute.

    At noon of a clear day the sun lifts the cap to a tenth above ``high_w``, as a panel of the right size would.
    """
    sun = Solar(1.1 * high_w - low_w, day_s, clouds=0.7, cloud_s=600.0 * day_s / DAY_S, seed=rng.randrange(10**6))
    minute = 60.0 * day_s / DAY_S
    return CapSeries("solar-day", day_s, tuple((k * minute, low_w + sun.power_w(k * minute)) for k in range(1440)))


SERIES: dict[str, Callable[[float, float, random.Random], CapSeries]] = {
    "step": step,
    "ramp": ramp,
    "random-walk": walk,
    "flicker": flicker,
    "solar-day": solar_day,
}
