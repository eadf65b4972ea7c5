"""The loop's side of the history: follows events and actions, and gives records of the runs. No disk here.

Energies are differences of the ledger's counters. Samples, by far the most frequent events, cost a few additions,
for the timeline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.ledger import JobSummary, Ledger
from traingov_policies.values import Board, Cap, Objective, PolicyName
from traingov_policies.wording import sentences

from .records import CapUse, Choice, Notice, PointUse, Run
from .trail import Second, Trail

_MOST_CHOICES = 500  # of one run; a guard that works all day must not fill the memory
_MOST_CAPS = 100
_MOST_NOTICES = 200
_SILENCE_S = 1.0
_RATE_S = 30.0  # samples a second are told over so long
_RATE_WINDOWS = 64


@dataclass
class _Use:
    """A point's account. Energies are None until some of it was measured."""

    time_s: float = 0.0
    samples: int = 0
    steps: int = 0
    input_j: float | None = None
    compute_j: float | None = None


@dataclass(frozen=True)
class _Mark:
    """The ledger's counters at one moment."""

    t_s: float
    input_j: float
    input_covered_s: float
    compute_j: float
    compute_covered_s: float


@dataclass
class _Account:
    registered: ev.JobRegistered
    signature: str
    board: Board
    started_s: float
    first: _Mark
    mark: _Mark
    batch_size: int
    uses: dict[tuple[int, int | None], _Use] = field(default_factory=dict)
    caps: deque[CapUse] = field(default_factory=lambda: deque(maxlen=_MOST_CAPS))
    choices: deque[Choice] = field(default_factory=lambda: deque(maxlen=_MOST_CHOICES))
    notices: deque[Notice] = field(default_factory=lambda: deque(maxlen=_MOST_NOTICES))
    trail: Trail = field(default_factory=Trail)
    decided: int = 0
    guard_steps: int = 0
    idle: bool = False
    windows: deque[tuple[float, int, float]] = field(default_factory=lambda: deque(maxlen=_RATE_WINDOWS))


class Book:
    """The accounts of the running jobs, beside those of ``ledger``, which has to see each event first.

    ``wall`` tells the time that people read. It is used for records alone, never for a decision or a duration.
    """

    def __init__(
        self, ledger: Ledger, policy: PolicyName, objective: Objective, cap: Cap | None, wall: Callable[[], float],
        *, root: str | None = None,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._policy, self._objective = policy, objective
        self._cap, self._cap_source = cap, "configuration"
        self._wall = wall
        self._root = root
        self._second = Second()
        self._holding: dict[str, str] = {}  # conditions
        self._accounts: dict[str, _Account] = {}
        self._ours = False  # whether the clock is held by us
        self._clock_hz: int | None = None

    @property
    def jobs(self) -> tuple[str, ...]:
        """The running jobs."""
        return tuple(self._accounts)

    @property
    def clock_hz(self) -> int | None:
        """The clock that we hold; None for the board's own governor."""
        return self._clock_hz

    def registration(self, job: str) -> ev.JobRegistered | None:
        """How a running job registered."""
        account = self._accounts.get(job)
        return None if account is None else account.registered

    def registered(self, event: ev.JobRegistered, signature: str, board: Board) -> None:
        """A job begins. The ledger has seen its registration."""
        self._turn(event.t_s)
        mark = self._now(event.t_s)
        account = _Account(event, signature, board, self._wall(), mark, mark, event.batch_size)
        account.caps.append(self._cap_use(account.started_s))
        account.notices.extend(Notice(account.started_s, name, text) for name, text in self._holding.items())
        self._accounts[event.job] = account

    def sample(self, sample: ev.Sample) -> None:
        """Take a sample, after the ledger."""
        if sample.t_s >= self._second.until_s:
            self._turn(sample.t_s)
        self._second.add(sample, self._ledger.window_mean_w)

    def see(self, event: ev.Event) -> None:
        """Take an event that is no sample, after the ledger."""
        match event:
            case ev.StepsReported():
                if (account := self._accounts.get(event.job)) is not None:
                    self._to(account, event.t_s, event.batch_size)
                    use = self._use(account)
                    use.samples += event.samples
                    use.steps += event.steps
                    account.windows.append((event.t_s, event.samples, event.elapsed_s))
            case ev.BatchApplied():
                if (account := self._accounts.get(event.job)) is not None:
                    self._to(account, event.t_s, event.batch_size)
            case ev.KnobReadBack():
                self._clock(event.max_hz if self._ours else None, event.t_s)
            case ev.CapChanged():
                self._cap, self._cap_source = event.cap, event.source
                use_of_cap = self._cap_use(self._wall())
                for account in self._accounts.values():
                    account.caps.append(use_of_cap)
            case ev.PolicyChanged():
                self._policy, self._objective = event.policy, event.objective

    def carry_out(self, actions: Iterable[act.Action], now_s: float) -> None:
        """Take what the governor answered."""
        for action in actions:
            match action:
                case act.SetGpuBounds():
                    self._ours = True
                case act.RestoreGpuBounds():
                    self._ours = False
                    self._clock(None, now_s)
                case act.JobIdle(job, idle) if (account := self._accounts.get(job)) is not None:
                    self._to(account, now_s, account.batch_size)
                    account.idle = idle
                case act.Decided():
                    self._decided(action)
                case act.RaiseCondition(name, text):
                    self._notice(name, text)
                case act.ClearCondition(name):
                    self._notice(name, None)

    def record(self, job: str, now_s: float) -> Run:
        """A running job's record up to ``now_s``. Raises KeyError."""
        account = self._accounts[job]
        self._to(account, now_s, account.batch_size)
        return self._run(account, self._ledger.summary(job, now_s), None)

    def ended(self, event: ev.JobEnded) -> Run | None:
        """The record of the job that has just ended; None for one that was not running."""
        if event.job not in self._accounts:
            return None
        self._turn(event.t_s)
        account = self._accounts.pop(event.job)
        account.trail.end()
        self._to(account, event.t_s, account.batch_size)
        return self._run(account, self._ledger.ended[-1], event.reason)

    def samples_per_s(self, job: str, now_s: float) -> float | None:
        """Training speed over the newest windows; None where none ended lately."""
        account = self._accounts.get(job)
        windows = () if account is None else account.windows
        recent = [(samples, elapsed) for end, samples, elapsed in windows if now_s - end < _RATE_S]
        elapsed_s = sum(elapsed for _, elapsed in recent)
        return sum(samples for samples, _ in recent) / elapsed_s if elapsed_s > 0 else None

    def compute_energy_known(self, job: str) -> bool:
        """Whether any compute power was read while ``job`` ran."""
        account = self._accounts.get(job)
        return account is not None and self._ledger.compute.covered_s > account.first.compute_covered_s

    # -- inside --------------------------------------------------------------------------------------------------
    def _decided(self, action: act.Decided) -> None:
        at_s = self._wall()
        reasons = "\n".join(sentences(action.detail)) if action.kind == "joint" and action.detail else None
        for name, account in self._accounts.items():
            if action.job not in (None, name):
                continue
            account.decided += 1
            account.guard_steps += action.kind in ("guard-down", "guard-up")
            point = action.point
            batch, clock = (None, None) if point is None else (point.batch_size, point.gpu_frequency_hz)
            account.choices.append(Choice(account.decided, at_s, action.kind, action.text, batch, clock, reasons))

    def _notice(self, name: str, text: str | None) -> None:
        if text is None:
            self._holding.pop(name, None)
        else:
            self._holding[name] = text
        notice = Notice(self._wall(), name, text)
        for account in self._accounts.values():
            account.notices.append(notice)

    def _turn(self, now_s: float) -> None:
        """The present second of the timeline ends, and another begins. A silence is a stretch of its own."""
        second = self._second
        if now_s > second.until_s + _SILENCE_S > float("-inf"):
            self._close(second.until_s)
            second.begin(second.until_s)
        self._close(now_s)
        second.begin(now_s)

    def _close(self, now_s: float) -> None:
        second, cap_w = self._second, None if self._cap is None else self._cap.power_w
        for account in self._accounts.values():
            if now_s <= max(account.first.t_s, second.since_s):
                continue
            began_s, batch = account.first.t_s, account.batch_size
            account.trail.add(second.span(began_s, now_s, cap_w=cap_w, clock_hz=self._clock_hz, batch_size=batch))

    def _clock(self, hz: int | None, now_s: float) -> None:
        if hz == self._clock_hz:
            return
        for account in self._accounts.values():
            self._to(account, now_s, account.batch_size)
        self._clock_hz = hz

    def _to(self, account: _Account, now_s: float, batch_size: int) -> None:
        """Give the time and energy since the last mark to the point in use, which ``batch_size`` then succeeds.

        An idle span is no point's.
        """
        old, new = account.mark, self._now(max(now_s, account.mark.t_s))
        if not account.idle and (new.t_s > old.t_s or new.input_j > old.input_j):
            use = self._use(account)
            use.time_s += new.t_s - old.t_s
            if new.input_covered_s > old.input_covered_s:
                use.input_j = (use.input_j or 0.0) + new.input_j - old.input_j
            if new.compute_covered_s > old.compute_covered_s:
                use.compute_j = (use.compute_j or 0.0) + new.compute_j - old.compute_j
        account.mark = new
        account.batch_size = batch_size

    def _use(self, account: _Account) -> _Use:
        return account.uses.setdefault((account.batch_size, self._clock_hz), _Use())

    def _now(self, t_s: float) -> _Mark:
        power, compute = self._ledger.input, self._ledger.compute
        return _Mark(t_s, power.energy_j, power.covered_s, compute.energy_j, compute.covered_s)

    def _cap_use(self, at_s: float) -> CapUse:
        cap = self._cap
        if cap is None:
            return CapUse(at_s, None, None, None, self._cap_source)
        return CapUse(at_s, cap.power_w, cap.window_s, cap.burst_w, self._cap_source)

    def _run(self, account: _Account, summary: JobSummary, reason: str | None) -> Run:
        registered, board, now_s = account.registered, account.board, self._wall()
        compute_known = account.mark.compute_covered_s > account.first.compute_covered_s
        return Run(
            job=registered.job, workload=registered.workload, signature=account.signature,
            board=board.name, release=board.release, power_mode=board.power_mode,
            policy=(registered.policy or self._policy).value,
            objective=(registered.objective or self._objective).value,
            batch_sizes=registered.batch_sizes, samples_done=registered.samples_done,
            samples_total=registered.samples_total, started_s=account.started_s, updated_s=now_s,
            ended_s=None if reason is None else now_s, end_reason=reason, elapsed_s=summary.elapsed_s,
            samples=summary.samples, steps=summary.steps,
            input_energy_j=None if summary.mean_input_power_w is None else summary.input_energy_j,
            compute_energy_j=summary.compute_energy_j if compute_known else None,
            above_cap_s=summary.above_cap_s, judged_s=summary.judged_s, gap_s=summary.gap_s, shared=summary.shared,
            guard_steps=account.guard_steps,
            points=tuple(
                PointUse(batch, hz, use.time_s, use.samples, use.steps, use.input_j, use.compute_j)
                for (batch, hz), use in account.uses.items()
            ),
            caps=tuple(account.caps), choices=tuple(account.choices), notices=tuple(account.notices),
            spans=tuple(account.trail.spans), merges=account.trail.merges, root=self._root,
        )  # fmt: skip
