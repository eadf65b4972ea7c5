"""The order of readings of an energy search, and when it is over. Pure: it is told readings and says what is next.

A probe is a reading away from the incumbent, the clock where the job would train anyway. Between probes the incumbent
is read again, so that drift and noise cancel (A B A). The incumbent is always a clock that was measured, the one of
least expected cost; one that wins by a probe is read once more before anything else, and loses again if the second
reading does not bear the first out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from .process import Belief, Mixture, Reading, gains

DRIFT_PER_S = 1e-4 / 60
"""Variance that the level of ln(cost) gains in a second: 1 % in a minute."""

_FRICTION = 0.01
"""Share of a probe's energy that it costs beyond what the clock itself does: switching, synchronising."""

_READINGS_LEAST = 2
_CONFIRM_MOST = 4
_SURE = 1.0
"""Standard deviations by which a clock has to beat the start before the search ends with it (84 %)."""


@dataclass(frozen=True)
class Step:
    """The clock index to read next, and why ("start", "incumbent", "probe", "again")."""

    index: int
    why: str


@dataclass(frozen=True)
class Stakes:
    """What is at stake, in joules of the cost that counts: the rest of the job, one probe, and what may be lost yet."""

    rest_j: float
    probe_j: float
    allowance_j: float


class Search:
    """One search over ``len(prior)`` clocks that starts at index ``start``; ``known`` is a best known from before.

    ``noise_sd``: standard error of a reading to come. ``probes_most`` bounds the probes. ``blocked``: a
    search that is over would go on if more might be lost; the allowance grows with the job.
    """

    def __init__(
        self, prior: Mixture, start: int, *, probes_most: int, noise_sd: float, known: int | None = None
    ) -> None:
        self._prior = prior
        self.start = start
        self.incumbent = start
        self.readings: list[Reading] = []
        self.probes = 0
        self.left_out: set[int] = set()
        self._probes_most = probes_most
        self._noise_sd = noise_sd
        self._known = known
        self.blocked = False
        self._foreseen: tuple[float, float] | None = None
        self._again: list[int] = []
        self._confirming = _CONFIRM_MOST
        self._belief: Belief | None = None
        self._step: Step | None = None

    @property
    def belief(self) -> Belief:
        """What is believed of the curve now."""
        if self._belief is None:
            self._belief = self._prior.given(self.readings, DRIFT_PER_S)
        return self._belief

    def tell(self, reading: Reading) -> None:
        """A window's reading."""
        if self._step is not None and self._step.why == "probe" and self._step.index == reading.index:
            self.probes += 1
            self._verified(reading)
        self._step = None
        self.readings.append(reading)
        self._belief = None

    def _verified(self, reading: Reading) -> None:
        """A best known from before that turns out as remembered ends the search: nothing more has to be found out."""
        if self._foreseen is None:
            return
        (mean, sd), self._foreseen = self._foreseen, None
        start = [r.value for r in self.readings if r.index == self.start]
        apart = reading.value - float(np.mean(start)) - mean
        if abs(apart) <= 2 * math.hypot(sd, reading.sd, self._noise_sd):
            self._probes_most = self.probes

    def leave_out(self, index: int) -> None:
        """This clock cannot be measured or used: it is no candidate from now on."""
        self.left_out.add(index)
        self._step = None
        if index == self.incumbent:
            self.incumbent = self.start

    def count(self, index: int) -> int:
        """How often the clock was read."""
        return sum(r.index == index for r in self.readings)

    def again(self, probes: int) -> None:
        """Look at the settled search again: start and incumbent are read anew, and so many probes more are allowed."""
        self._probes_most = self.probes + probes
        self._confirming = _CONFIRM_MOST
        self._again = [i for i in (self.start, self.incumbent) if i not in self.left_out]

    def resume(self) -> None:
        """Go on after a pause: the incumbent is read first, since the level may have drifted meanwhile."""
        self._again = [self.incumbent]

    def next(self, allowed: Collection[int], stakes: Callable[[], Stakes]) -> Step | None:
        """What to read next; None when the search is over, for now, and the job stays at the incumbent.

        ``allowed`` are the clocks that cap and slowdown limit permit; the start is always among them.
        """
        self.blocked = False
        self._step = self._next({*allowed, self.start} - (self.left_out - {self.start}), stakes)
        return self._step

    def _next(self, allowed: set[int], stakes: Callable[[], Stakes]) -> Step | None:
        if self.count(self.start) < _READINGS_LEAST:
            return Step(self.start, "start")
        if self._known is not None:
            known, self._known = self._known, None
            if known in allowed and known != self.start:
                self._foreseen = self.belief.difference(known, self.start)
                return Step(known, "probe")
        while self._again:
            again = self._again.pop(0)
            if again in allowed:
                return Step(again, "again")
        self.incumbent = self._best(allowed)
        if self.readings[-1].index != self.incumbent or self.count(self.incumbent) < _READINGS_LEAST:
            return Step(self.incumbent, "incumbent")
        probe = None if self.probes >= self._probes_most else self._worth(allowed, stakes())
        if probe is not None:
            return Step(probe, "probe")
        return self._confirm()

    def _confirm(self) -> Step | None:
        """The start is left for good only when that is sure; until then both are read in turn, a few times."""
        mean, sd = self.belief.difference(self.incumbent, self.start)
        if self.incumbent == self.start or mean + _SURE * sd < 0 or self._confirming <= 0:
            return None
        self._confirming -= 1
        pair = sorted((self.start, self.incumbent), key=lambda i: (self.count(i), i != self.start))
        return Step(pair[0], "start" if pair[0] == self.start else "incumbent")

    def _best(self, allowed: set[int]) -> int:
        """The measured clock of least expected cost; of equal ones the present incumbent."""
        seen = {r.index for r in self.readings} & allowed
        mean = self.belief.mean
        return min(seen, key=lambda i: (mean[i], i != self.incumbent, i))

    def _worth(self, allowed: set[int], stakes: Stakes) -> int | None:
        """The clock whose reading is expected to gain most over the rest of the job, less what it costs; None: none."""
        belief, here = self.belief, self.incumbent
        index = sorted(allowed)
        gain_j = gains(belief, index, self._noise_sd) * stakes.rest_j
        more, sd = belief.mean[index] - belief.mean[here], np.array([belief.difference(i, here)[1] for i in index])
        expected_j = stakes.probe_j * np.maximum(np.expm1(more), _FRICTION)
        # What it may lose against the start, with 84 % probability: it has to fit into what may be lost yet.
        from_start = np.expm1(np.minimum(belief.mean[index] - belief.mean[self.start] + sd, 3.0))
        open_ = stakes.probe_j * np.maximum(from_start, 0.0) <= stakes.allowance_j
        net_j = np.where(np.array(index) != here, gain_j - expected_j, -np.inf)
        self.blocked = bool(np.any(net_j[~open_] > 0))
        net_j[~open_] = -np.inf
        best = int(np.argmax(net_j))
        return index[best] if net_j[best] > 0 else None
