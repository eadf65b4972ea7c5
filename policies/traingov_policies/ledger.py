"""What a job cost: time, energy by the trapezoid rule, time above the cap. Fed the same events as the governor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .energy import EnergyMeter, TimeAbove
from .events import CapChanged, Event, JobEnded, JobRegistered, Sample, StepsReported
from .values import Cap

# A reading that is missing now and then leaves the window mean judged; longer silence does not.
_BRIDGED_S = 0.1


@dataclass(frozen=True)
class JobSummary:
    """One job from registration to its end (or to now). Energies are of the whole board while the job ran.

    ``above_cap_s`` of ``judged_s`` seconds the window mean lay above the cap. ``gap_s`` seconds could not be
    integrated, so that energies are lower bounds where it is not 0; ``missed`` samples did not come or had no reading.
    ``shared``: another job ran in the meantime.
    """

    job: str
    workload: str
    elapsed_s: float
    samples: int
    steps: int
    samples_by_batch: dict[int, int]
    input_energy_j: float
    compute_energy_j: float
    mean_input_power_w: float | None
    above_cap_s: float
    judged_s: float
    overshoot_j: float
    gap_s: float
    missed: int
    shared: bool
    ended: str | None

    def to_json(self) -> dict[str, Any]:
        """Plain values, as ``traingov jobs --json`` prints them."""
        out = dict(self.__dict__)
        out["samples_by_batch"] = {str(b): n for b, n in self.samples_by_batch.items()}
        return out


@dataclass(frozen=True)
class CapAccount:
    """Seconds above a cap, seconds judged, and the energy above, in joules. None of them ever falls."""

    above_s: float
    judged_s: float
    overshoot_j: float


@dataclass
class _Totals:
    """Counters of the board at one moment; a job's share is the difference of two."""

    input_j: float
    compute_j: float
    covered_s: float
    gap_s: float
    missed: int
    above_s: float
    judged_s: float
    overshoot_j: float


@dataclass
class _Account:
    registered: JobRegistered
    since: _Totals
    samples_by_batch: dict[int, int] = field(default_factory=dict)
    steps: int = 0
    shared: bool = False


class Ledger:
    """Keeps the accounts of running jobs and the summaries of the last ``keep`` that ended."""

    def __init__(self, sampling_interval_s: float, cap: Cap | None, keep: int = 100) -> None:
        self.input = EnergyMeter(sampling_interval_s)
        self.compute = EnergyMeter(sampling_interval_s)
        self._above = TimeAbove(None if cap is None else cap.power_w, 1.0 if cap is None else cap.window_s)
        self._folded = [0.0, 0.0, 0.0]
        self._last_power_s = float("-inf")
        self._accounts: dict[str, _Account] = {}
        self._keep = keep
        self.ended: list[JobSummary] = []

    def see(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Sample):
            power = event.input_power_w
            self.input.add(event.t_s, power)
            self.compute.add(event.t_s, event.compute_power_w)
            if power is not None:
                self._last_power_s = event.t_s
                self._above.add(event.t_s, power)
            elif event.t_s - self._last_power_s > _BRIDGED_S:
                self._above.add(event.t_s, None)
        elif isinstance(event, StepsReported):
            account = self._accounts.get(event.job)
            if account is not None:
                account.steps += event.steps
                by_batch = account.samples_by_batch
                by_batch[event.batch_size] = by_batch.get(event.batch_size, 0) + event.samples
        elif isinstance(event, JobRegistered):
            self._accounts[event.job] = _Account(event, self._totals())
            if len(self._accounts) > 1:
                for account in self._accounts.values():
                    account.shared = True
        elif isinstance(event, JobEnded):
            if event.job in self._accounts:
                self.ended.append(self.summary(event.job, event.t_s, event.reason))
                del self._accounts[event.job], self.ended[: -self._keep]
        elif isinstance(event, CapChanged):
            self._cap(event.cap)

    def summary(self, job: str, now_s: float, ended: str | None = None) -> JobSummary:
        """The account of a running job up to ``now_s``. Raises KeyError for a job that is not running."""
        account = self._accounts[job]
        now, since = self._totals(), account.since
        covered = now.covered_s - since.covered_s
        energy = now.input_j - since.input_j
        return JobSummary(
            job=job,
            workload=account.registered.workload,
            elapsed_s=now_s - account.registered.t_s,
            samples=sum(account.samples_by_batch.values()),
            steps=account.steps,
            samples_by_batch=dict(account.samples_by_batch),
            input_energy_j=energy,
            compute_energy_j=now.compute_j - since.compute_j,
            mean_input_power_w=energy / covered if covered > 0 else None,
            above_cap_s=now.above_s - since.above_s,
            judged_s=now.judged_s - since.judged_s,
            overshoot_j=now.overshoot_j - since.overshoot_j,
            gap_s=now.gap_s - since.gap_s,
            missed=now.missed - since.missed,
            shared=account.shared,
            ended=ended,
        )

    def running(self, now_s: float) -> list[JobSummary]:
        """The accounts of all running jobs up to ``now_s``."""
        return [self.summary(job, now_s) for job in self._accounts]

    def cap_account(self) -> CapAccount:
        """How the window means of all samples so far lay to the caps that were in force."""
        totals = self._totals()
        return CapAccount(totals.above_s, totals.judged_s, totals.overshoot_j)

    def _cap(self, cap: Cap | None) -> None:
        above = self._above
        if cap is not None and cap.window_s == above.window.window_s:
            above.limit_w = cap.power_w  # the window goes on: caps that change all the time are judged as well
            return
        for i, value in enumerate((above.above_s, above.judged_s, above.overshoot_j)):
            self._folded[i] += value
        self._above = TimeAbove(None if cap is None else cap.power_w, 1.0 if cap is None else cap.window_s)

    def _totals(self) -> _Totals:
        above, folded = self._above, self._folded
        return _Totals(
            self.input.energy_j,
            self.compute.energy_j,
            self.input.covered_s,
            self.input.gap_s,
            self.input.missed,
            folded[0] + above.above_s,
            folded[1] + above.judged_s,
            folded[2] + above.overshoot_j,
        )
