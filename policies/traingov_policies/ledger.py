"""What a job cost: time, energy by the trapezoid rule, time above the cap. Fed the same events as the governor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .actions import Action, JobIdle
from .attribution import Work, split
from .energy import EnergyMeter, TimeAbove
from .events import CapChanged, Event, JobEnded, JobRegistered, Sample, StepsReported
from .values import Cap

# A reading that is missing now and then leaves the window mean judged; longer silence does not.
_BRIDGED_S = 0.1
_IDLE_SEEN_S = 1.0  # so long the board has to idle for its idle power to be known


@dataclass(frozen=True)
class JobSummary:
    """One job from registration to its end (or to now). Energies are of the whole board while the job ran alone.

    While other jobs ran too (``shared``, for ``shared_s`` seconds) they are the job's part, as ``attribution`` says;
    ``attributed_by`` is "alone", "steps" (by work done) or "equal" (nothing told how much work it was, at some time).
    ``idle_s`` seconds the job idled: paused, or no steps and the GPU without load; ``idle_input_energy_j`` of
    ``input_energy_j`` and ``idle_compute_energy_j`` belong to that time.

    ``above_cap_s`` of ``judged_s`` seconds the window mean lay above the cap. ``gap_s`` seconds could not be
    integrated, so that energies are lower bounds where it is not 0; ``missed`` samples did not come or had no reading.
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
    shared_s: float = 0.0
    attributed_by: str = "alone"
    idle_s: float = 0.0
    idle_input_energy_j: float = 0.0
    idle_compute_energy_j: float = 0.0

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
    work: Work
    mark: _Mark
    samples_by_batch: dict[int, int] = field(default_factory=dict)
    steps: int = 0
    shared: bool = False
    shared_s: float = 0.0
    attributed_by: str = "alone"
    input_j: float = 0.0
    compute_j: float = 0.0
    idle: bool = False
    idle_s: float = 0.0
    idle_input_j: float = 0.0
    idle_compute_j: float = 0.0


@dataclass
class _Mark:
    """A moment and the board's counters at it."""

    t_s: float
    input_j: float
    compute_j: float
    covered_s: float


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
        self._now_s = 0.0
        self._span = _Mark(0.0, 0.0, 0.0, 0.0)
        self._idle_w = (0.0, 0.0)
        self.ended: list[JobSummary] = []

    def see(self, event: Event) -> None:
        """Take one event."""
        self._now_s = max(self._now_s, event.t_s)
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
                inside_s = max(0.0, event.t_s - self._span.t_s)
                share = min(1.0, inside_s / event.elapsed_s) if event.elapsed_s > 0 else 1.0
                alone = len(self._accounts) == 1 and share == 1 and not account.idle
                account.work.add(event.batch_size, event.samples, event.elapsed_s, share=share, alone=alone)
                account.mark = self._mark()
        elif isinstance(event, JobRegistered):
            self._settle()
            self._accounts[event.job] = _Account(event, self._totals(), Work(event.lut), self._mark())
            if len(self._accounts) > 1:
                for account in self._accounts.values():
                    account.shared = True
        elif isinstance(event, JobEnded):
            if event.job in self._accounts:
                self._settle()
                self.ended.append(self.summary(event.job, event.t_s, event.reason))
                del self._accounts[event.job], self.ended[: -self._keep]
        elif isinstance(event, CapChanged):
            self._cap(event.cap)

    def act(self, action: Action) -> None:
        """Take one of the governor's answers: which jobs idle is its judgement."""
        if not isinstance(action, JobIdle) or (account := self._accounts.get(action.job)) is None:
            return
        if action.idle == account.idle:
            return
        self._settle()
        account.idle = action.idle
        if action.idle and len(self._accounts) == 1:  # it took a while to be sure: idle since the last step
            mark, now = account.mark, self._mark()
            account.idle_s += now.t_s - mark.t_s
            account.idle_input_j += now.input_j - mark.input_j
            account.idle_compute_j += now.compute_j - mark.compute_j

    def summary(self, job: str, now_s: float, ended: str | None = None) -> JobSummary:
        """The account of a running job up to ``now_s``. Raises KeyError for a job that is not running."""
        account = self._accounts[job]
        now, since = self._totals(), account.since
        covered = now.covered_s - since.covered_s
        input_parts, compute_parts, by = self._parts()
        energy, compute_j = account.input_j + input_parts[job], account.compute_j + compute_parts[job]
        several, open_s = len(self._accounts) > 1, max(0.0, now_s - self._span.t_s)
        idle = account.idle
        return JobSummary(
            job=job,
            workload=account.registered.workload,
            elapsed_s=now_s - account.registered.t_s,
            samples=sum(account.samples_by_batch.values()),
            steps=account.steps,
            samples_by_batch=dict(account.samples_by_batch),
            input_energy_j=energy,
            compute_energy_j=compute_j,
            mean_input_power_w=energy / covered if covered > 0 else None,
            above_cap_s=now.above_s - since.above_s,
            judged_s=now.judged_s - since.judged_s,
            overshoot_j=now.overshoot_j - since.overshoot_j,
            gap_s=now.gap_s - since.gap_s,
            missed=now.missed - since.missed,
            shared=account.shared,
            ended=ended,
            shared_s=account.shared_s + (open_s if several else 0.0),
            attributed_by=_worse(account.attributed_by, by) if several else account.attributed_by,
            idle_s=account.idle_s + (open_s if idle else 0.0),
            idle_input_energy_j=account.idle_input_j + (input_parts[job] if idle else 0.0),
            idle_compute_energy_j=account.idle_compute_j + (compute_parts[job] if idle else 0.0),
        )

    def running(self, now_s: float) -> list[JobSummary]:
        """The accounts of all running jobs up to ``now_s``."""
        return [self.summary(job, now_s) for job in self._accounts]

    @property
    def window_mean_w(self) -> float | None:
        """Mean input power over the cap's window (1 s without a cap) up to the newest sample; None: not covered."""
        return self._above.mean_w

    def cap_account(self) -> CapAccount:
        """How the window means of all samples so far lay to the caps that were in force."""
        totals = self._totals()
        return CapAccount(totals.above_s, totals.judged_s, totals.overshoot_j)

    def _parts(self) -> tuple[dict[str, float], dict[str, float], str]:
        """The jobs' parts of the open span's energies, and by what they were told."""
        now, span = self._mark(), self._span
        covered_s = now.covered_s - span.covered_s
        work_s = {job: account.work.seconds() for job, account in self._accounts.items()}
        by = "equal" if None in work_s.values() or not any(work_s.values()) else "steps"
        input_w, compute_w = self._idle_w
        return (
            split(now.input_j - span.input_j, input_w * covered_s, work_s),
            split(now.compute_j - span.compute_j, compute_w * covered_s, work_s),
            by,
        )

    def _settle(self) -> None:
        """Close the span in which the same jobs ran, and the same idled: everybody gets a part."""
        accounts, now, span = self._accounts, self._mark(), self._span
        elapsed_s, covered_s = now.t_s - span.t_s, now.covered_s - span.covered_s
        inputs, computes, by = self._parts()
        for job, account in accounts.items():
            account.input_j += inputs[job]
            account.compute_j += computes[job]
            if account.idle:
                account.idle_s += elapsed_s
                account.idle_input_j += inputs[job]
                account.idle_compute_j += computes[job]
            if len(accounts) > 1 and elapsed_s > 0:
                account.shared_s += elapsed_s
                account.attributed_by = _worse(account.attributed_by, by)
            account.work.clear()
        if covered_s >= _IDLE_SEEN_S and all(account.idle for account in accounts.values()):
            self._idle_w = (now.input_j - span.input_j) / covered_s, (now.compute_j - span.compute_j) / covered_s
        self._span = now

    def _mark(self) -> _Mark:
        return _Mark(self._now_s, self.input.energy_j, self.compute.energy_j, self.input.covered_s)

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


def _worse(one: str, other: str) -> str:
    """Of two ways to tell the jobs' parts, the one that says less."""
    return max(one, other, key=("alone", "steps", "equal").index)
