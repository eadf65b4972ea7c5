"""What the governor's states share: knob, telemetry freshness and jobs as last seen, and the actions to emit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .actions import (
    Action,
    AdviseBatch,
    ClearCondition,
    Decided,
    RaiseCondition,
    RestoreGpuBounds,
    SetGpuBounds,
)
from .drift.counts import DriftCounts
from .events import JobRegistered, KnobReadBack
from .following import CapPace, Follower
from .guard import Guard
from .guarding.board import BoardWatch
from .idling import Activity, IdleWatch
from .lut import Lut
from .settings import Settings
from .sweeping import SweepRun
from .values import Board, Cap, Objective, OperatingPoint, PolicyName


@dataclass
class Job:
    """A registered job as the governor sees it. ``follower`` is made with its first choice under a cap that changes."""

    registered: JobRegistered
    batch_sizes: list[int]
    batch_size: int
    lut: Lut | None
    samples: int = 0
    steps: int = 0
    seq_len_sum: float = 0.0
    seq_len_weight: int = 0
    advised: tuple[int, str] | None = None
    follower: Follower | None = None
    activity: Activity = field(default_factory=Activity)

    @property
    def name(self) -> str:
        """The job's identifier."""
        return self.registered.job

    @property
    def seq_len_avg(self) -> float | None:
        """Measured mean sequence length; before any report, the one the job registered with."""
        if self.seq_len_weight:
            return self.seq_len_sum / self.seq_len_weight
        return self.registered.features.seq_len_avg


@dataclass
class Context:
    """Shared by the states. ``out`` collects the actions of the event being handled."""

    board: Board
    settings: Settings
    policy: PolicyName
    objective: Objective
    guard: Guard
    cap: Cap | None = None
    now_s: float = 0.0
    jobs: dict[str, Job] = field(default_factory=dict)
    out: list[Action] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)
    last_power_s: float | None = None
    stale: bool = False
    target_hz: int | None = None
    target_batch: int | None = None
    target_why: str = ""
    requested: tuple[int, int] | None = None
    ours: bool = False
    retry_s: float = 0.0
    retry_wait_s: float = 1.0
    foreign_s: float = 0.0
    begin_again: bool = False
    idle_since_s: float | None = None
    actual: KnobReadBack | None = None
    foreign_writes: int = 0
    advice: int = 0
    last_decision: Decided | None = None
    sweep: SweepRun | None = None
    table: Callable[[], Lut | None] = lambda: None
    idling: IdleWatch = field(default_factory=IdleWatch)
    foreign_guard_steps: int = 0
    foreigners: int = 0
    power_mode_changes: int = 0
    drift: DriftCounts = field(default_factory=DriftCounts)
    pace: CapPace = field(default_factory=CapPace)

    def __post_init__(self) -> None:
        self.watch = BoardWatch(self.settings.guard, len(self.clocks))
        self.guard.slope.table = lambda: self.watch.powers(self)

    @property
    def cap_w(self) -> float | None:
        """The cap in watts, None without one."""
        return None if self.cap is None else self.cap.power_w

    @property
    def hands_off(self) -> bool:
        """Whether another program's bounds are respected for now."""
        return self.foreign_writes > self.settings.rewrite_tries

    @property
    def unmeasurable(self) -> bool:
        """Whether what is seen now is not the job at the clock that was asked for, so that no point is measured."""
        return self.stale or self.idling.suspended or self.hands_off or self.watch.disturbed(self.now_s)

    @property
    def clocks(self) -> tuple[int, ...]:
        """The board's ascending clock table in Hz."""
        return self.board.gpu_frequencies_hz

    def aim(self, frequency_hz: int | None, why: str, batch_size: int | None = None) -> None:
        """Want the GPU pinned at ``frequency_hz``; None gives the bounds back. Written once the event is handled.

        With ``batch_size`` the clock is meant for that batch size: under a cap it is not raised above what the table
        shows safe for the present one before the job has followed.
        """
        self.target_hz, self.target_why, self.target_batch = frequency_hz, why, batch_size

    def aim_guarded(self, frequency_hz: int, why: str, batch_size: int | None = None, *, trusted: bool = False) -> None:
        """As ``aim``, and let the guard correct it from there; ``trusted`` as in ``Guard.aim``."""
        self.aim(frequency_hz, why, batch_size)
        self.guard.aim(self.index_at_most(frequency_hz), trusted=trusted)

    def index_at_most(self, frequency_hz: int) -> int:
        """Index of the highest clock not above ``frequency_hz`` (0 when all are)."""
        return max([i for i, f in enumerate(self.clocks) if f <= frequency_hz], default=0)

    def write(self, frequency_hz: int | None, why: str, low_hz: int | None = None) -> None:
        """Ask for a pin, or for the originals, when that differs from what was last asked for.

        With ``low_hz`` for the range from there up to ``frequency_hz``, in which the board's own governor moves.
        """
        if frequency_hz is None:
            if self.ours:
                self.out.append(RestoreGpuBounds(why))
                self.requested, self.ours = None, False
                self.guard.running = len(self.clocks) - 1
            return
        bounds = (frequency_hz if low_hz is None else low_hz, frequency_hz)
        if bounds != self.requested:
            self.requested, self.ours = bounds, True
            self.guard.running = self.index_at_most(frequency_hz)
            self.actual = None
            self.out.append(SetGpuBounds(*bounds, why))

    def rewrite(self) -> None:
        """Write the bounds again although nothing else is wanted: they are not what was asked for."""
        self.requested = None

    def advise(self, job: Job, batch_size: int, phase: str, why: str) -> None:
        """Advise a batch size and phase, unless that is what was advised last.

        A size that the job found it cannot use is never advised: the next smaller one it has, or nothing.
        """
        if batch_size not in job.batch_sizes:
            smaller = [b for b in job.batch_sizes if b < batch_size]
            if not job.batch_sizes:
                return
            batch_size = max(smaller, default=min(job.batch_sizes))
        if job.advised == (batch_size, phase):
            return
        job.advised = (batch_size, phase)
        self.advice += 1
        self.out.append(AdviseBatch(job.name, batch_size, phase, self.advice, why))

    def say(self, job: Job | None, kind: str, text: str, point: OperatingPoint | None = None, **detail: object) -> None:
        """Put a decision and its reason on record."""
        decided = Decided(None if job is None else job.name, kind, text, point, detail)
        self.last_decision = decided
        self.out.append(decided)

    def condition(self, name: str, text: str | None) -> None:
        """Raise the condition ``name`` with ``text``, or clear it with None; said once per change of text."""
        if text is None:
            if self.conditions.pop(name, None) is not None:
                self.out.append(ClearCondition(name))
        elif self.conditions.get(name) != text:
            self.conditions[name] = text
            self.out.append(RaiseCondition(name, text))
