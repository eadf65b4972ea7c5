"""True power of a twin's board against a changing cap: what no sensor shows. Watts over windows on a 0.1 s grid."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..twin import Twin

Array = NDArray[np.float64]
GRID_S = 0.1
WINDOW = 10  # grid steps in the cap's window of 1 s
SETTLED_S = 5.0  # steady: the cap has not fallen for so long when the window begins


@dataclass
class TruePower:
    """Reads the true energy counter of ``twin``'s board each GRID_S from now on, and the cap in force then."""

    twin: Twin
    cap_w: float | None = None
    joules: list[float] = field(default_factory=list)
    caps_w: list[float] = field(default_factory=list)
    running: bool = True

    def start(self) -> None:
        """Begin; goes on until ``stop``."""
        self._look(self.twin)

    def stop(self) -> None:
        """No further readings."""
        self.running = False

    def _look(self, twin: Twin) -> None:
        if not self.running:
            return
        self.joules.append(twin.board.truth(twin.t_s).input_j)
        self.caps_w.append(float("inf") if self.cap_w is None else self.cap_w)
        twin.at(twin.t_s + GRID_S, self._look)

    def windows(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Mean power of each window of 1 s, the cap at its end, and whether it is steady."""
        joules, caps = np.array(self.joules), np.array(self.caps_w)
        mean_w = (joules[WINDOW:] - joules[:-WINDOW]) / (WINDOW * GRID_S)
        fell = np.flatnonzero(np.diff(caps) < 0) + 1
        last = np.full(len(caps), -np.inf)
        for i in fell:
            last[i:] = i
        begins = np.arange(len(mean_w))
        steady = begins - last[WINDOW:] >= SETTLED_S / GRID_S
        return mean_w, caps[WINDOW:], steady

    def overshoot_j(self) -> tuple[float, float]:
        """Energy of the windows' means above the cap, in all and in steady state."""
        mean_w, cap_w, steady = self.windows()
        excess = np.maximum(0.0, mean_w - cap_w) * GRID_S
        return float(excess.sum()), float(excess[steady].sum())

    def settling_s(self) -> list[float]:
        """After each fall of the cap: until no window is above it any more, up to the next change; None left out."""
        mean_w, _, _ = self.windows()
        caps = np.array(self.caps_w)
        changed = [int(i) + 1 for i in np.flatnonzero(np.diff(caps) != 0)]
        found = []
        for k, i in enumerate(changed):
            if caps[i] > caps[i - 1]:
                continue
            end = changed[k + 1] if k + 1 < len(changed) else len(caps)
            # Window j ends at grid point j + WINDOW.
            span = mean_w[max(0, i - WINDOW) : max(0, end - WINDOW)]
            above = np.flatnonzero(span >= caps[i])
            if len(span):
                found.append(0.0 if not len(above) else float(above[-1] + 1) * GRID_S)
        return found
