"""What a search may cost: away from the tree's clock, never more than a share of the job so far plus a few seconds.

A stay is a stretch at one clock other than the tree's. With E joules for n samples in T seconds it cost

    extra = E · (T / (n · t_tree))^k − n · e_tree        k = 0 for energy, 1 for energy times time

joules more than the tree's clock would have. The rule, checked at every event: the sum of the positive extras of all
stays, the present one included, stays below ``share`` of the job's energy so far plus ``seconds`` of the tree's power.
Savings of one stay do not pay for another. Energy counts when it is drawn and samples when they are reported, so the
present stay never looks cheaper than it is. Energy drawn while the job reports no steps for longer than a few reports
(an evaluation, a checkpoint) is nobody's: no sample was trained with it. On the way back the old clock still holds for
the switch's time: the reserve covers it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..values import Objective

_PENDING_S = 1.0  # reports come several times a second where steps are short
_REPORTS = 3  # a stay has to be affordable for so many reports, or none could ever end


@dataclass
class _Stay:
    energy_j: float = 0.0
    samples: int = 0
    elapsed_s: float = 0.0
    pending_j: float = 0.0
    pending_s: float = 0.0


class Budget:
    """Keeps the account. Watts are of the power that counts; a gap in the readings goes on at the last reading."""

    def __init__(self, share: float, seconds: float, reserve_s: float, objective: Objective) -> None:
        self._share, self._seconds, self._reserve_s = share, seconds, reserve_s
        self._exponent = 1 if objective is Objective.EDP else 0
        self._tree: tuple[float, float] | None = None
        self._stay: _Stay | None = None
        self._spent_j = 0.0
        self._last: tuple[float, float] | None = None
        self._report_s = 0.0
        self.job_j = 0.0

    def power(self, t_s: float, watts: float | None) -> None:
        """A power sample. Without a reading the last one stands in: the account must not go blind."""
        if self._last is None:
            if watts is not None:
                self._last = (t_s, watts)
            return
        last_s, last_w = self._last
        elapsed = max(t_s - last_s, 0.0)
        energy = elapsed * max(last_w, last_w if watts is None else watts)
        self.job_j += energy
        if self._stay is not None:
            self._stay.pending_j += energy
            self._stay.pending_s += elapsed
        self._last = (max(t_s, last_s), last_w if watts is None else watts)

    def report(self, samples: int, elapsed_s: float) -> None:
        """Steps were reported."""
        self._report_s = max(self._report_s, elapsed_s)
        stay = self._stay
        if stay is not None:
            share = 1.0 if stay.pending_s <= elapsed_s + _PENDING_S else elapsed_s / stay.pending_s
            stay.energy_j += share * stay.pending_j
            stay.elapsed_s += share * stay.pending_s
            stay.samples += samples
            stay.pending_j = stay.pending_s = 0.0

    def tree(self, energy_j: float, time_s: float) -> None:
        """What a sample costs at the tree's clock, as measured last."""
        self._tree = (energy_j, time_s)

    def leave(self) -> None:
        """The job leaves the tree's clock, or goes from one other clock to the next."""
        self.back()
        self._stay = _Stay()

    def back(self) -> None:
        """The job is back at the tree's clock: the stay's extra is spent."""
        self._spent_j += max(self.extra_j(), 0.0)
        self._stay = None

    def extra_j(self) -> float:
        """Joules that the present stay cost more than the tree's clock would have; negative: it saves."""
        stay = self._stay
        if stay is None or self._tree is None:
            return 0.0
        energy_j, time_s = self._tree
        waited_s = max(_PENDING_S, _REPORTS * self._report_s)
        share = 1.0 if stay.pending_s <= waited_s else waited_s / stay.pending_s
        drawn_j, elapsed_s = stay.energy_j + share * stay.pending_j, stay.elapsed_s + share * stay.pending_s
        factor = elapsed_s / (stay.samples * time_s) if self._exponent and stay.samples else 1.0
        return drawn_j * factor - stay.samples * energy_j

    @property
    def spent_j(self) -> float:
        """The positive extras of all stays so far."""
        return self._spent_j + max(self.extra_j(), 0.0)

    @property
    def limit_j(self) -> float:
        """What all stays together may have cost by now."""
        if self._tree is None:
            return 0.0
        energy_j, time_s = self._tree
        seconds = max(self._seconds, _REPORTS * self._report_s)
        return self._share * self.job_j + seconds * energy_j / time_s

    @property
    def allowance_j(self) -> float:
        """What may still be lost, less what the way back takes."""
        watts = 0.0 if self._last is None else self._last[1]
        return self.limit_j - self.spent_j - self._reserve_s * watts

    @property
    def exhausted(self) -> bool:
        """Whether the job has to go back to the tree's clock now."""
        return self._stay is not None and self.allowance_j <= 0
