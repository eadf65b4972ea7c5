"""The twin: one event queue for board, telemetry, knob, jobs and governor."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from traingov_policies.actions import (
    Action,
    AdviseBatch,
    Decided,
    PersistLut,
    RestoreGpuBounds,
    SetGpuBounds,
    SetSamplingInterval,
)
from traingov_policies.events import BoardFound, CapChanged, Event, JobRegistered, KnobReadBack, Stored, Tick
from traingov_policies.governor import Governor
from traingov_policies.ledger import JobSummary, Ledger
from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap, Features

from ..board.boardspec import BoardSpec
from ..board.physics import VirtualBoard
from ..surface import Surface
from .health import Health
from .job import MESSAGE_S, Progress, TwinJob
from .knob import Knob
from .recording import Recording
from .telemetry import Telemetry, coarse

TICK_S = 0.1  # as the daemon's loop
LOOK_S = 1.0
WRITE_S = 0.003  # from the action to the read-back: a thread and four sysfs files
INTERVAL_MOST_S = 0.2


@dataclass(frozen=True)
class Moment:
    """One line of a trace: what the telemetry showed, and what the first job trained with (None: no job)."""

    t_s: float
    input_power_w: float | None
    gpu_frequency_hz: int | None
    batch_size: int | None


def settings_for(spec: BoardSpec, settings: Settings | None = None) -> Settings:
    """``settings`` with the board's dead times, as a configuration for this board has them.

    A point settles for the clock's switch delay and the sensor's lag (five time constants and an update).
    """
    base = settings or Settings()
    dead = spec.gpu.switch_delay_s + 5 * spec.sensor.lag_s + spec.sensor.update_s
    return replace(
        base,
        profile=replace(base.profile, settle_s=dead),
        guard=replace(base.guard, dead_time_s=dead),
    )


class Twin:
    """A board under the governor. Deterministic: the same arguments and calls give the same run.

    ``interval_s`` is the sampling interval: 0.01 s as the service samples, up to 0.2 s to go faster (the power
    monitor then averages over it). ``record`` keeps a recording, ``trace`` a ``Moment`` per sample. Raises ValueError
    for an interval outside 0 … 0.2 s.
    """

    def __init__(
        self, board: BoardSpec, settings: Settings | None = None, cap: Cap | None = None, seed: int = 0,
        interval_s: float = 0.01, *, record: bool = False, trace: bool = False, start_s: float = 0.0,
    ) -> None:  # fmt: skip
        if not 0 < interval_s <= INTERVAL_MOST_S:
            raise ValueError(f"twin: interval_s must lie above 0 and not above {INTERVAL_MOST_S}, not {interval_s!r}")
        spec = coarse(board, interval_s)
        base = settings_for(spec) if settings is None else settings
        self.settings = replace(
            base, sampling_interval_s=interval_s, stale_after_s=max(base.stale_after_s, 3.5 * interval_s)
        )
        self.board = VirtualBoard(spec, seed, start_s)
        self.identity = identity(self.board)
        self.governor = Governor(self.identity, self.settings, cap)
        self.ledger = Ledger(interval_s, cap, keep=10_000)
        self.jobs: dict[str, TwinJob] = {}
        self.actions: list[tuple[float, Action]] = []
        self.trace: list[Moment] | None = [] if trace else None
        self.recording = Recording(self.identity, self.settings, cap) if record else None
        self.telemetry_on = True
        self._telemetry = Telemetry(self.board)
        self._health = Health(self.board)
        self._knob = Knob(self.board, self._wrote)
        self._t_s = start_s
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._interval: float | None = self.settings.idle_interval_s
        self._sampling = 0
        self._ticking = False
        self._settled, self._settled_at = False, -1
        self._next_look_s = 0.0
        self._begin_sampling()

    # -- what an evaluation calls --------------------------------------------------------------------------------
    @property
    def t_s(self) -> float:
        """The present moment."""
        return self._t_s

    def add_job(
        self, surface: Surface, batch_sizes: Sequence[int], *, batch_size: int | None = None, name: str = "job",
        relation: RelationVector | None = None, lut: Lut | None = None, progress: Progress | None = None,
        obeys: bool = True, sync: bool = True, features: Features | None = None, **registered: object,
    ) -> TwinJob:  # fmt: skip
        """Register a job now, with its largest batch size unless told otherwise; it trains from the next ``run`` on.

        ``registered`` are further fields of ``JobRegistered`` (policy, objective, samples_done). Raises ValueError
        for a name that is in use.
        """
        if name in self.jobs and self.jobs[name].running:
            raise ValueError(f"twin: a job {name!r} is running already; give the new one another name")
        sizes = tuple(sorted(set(batch_sizes)))
        event = JobRegistered(
            self._t_s, name, surface.workload, sizes, batch_size or sizes[-1],
            features=features or Features(), lut=lut, relation=relation, **registered,  # type: ignore[arg-type]
        )  # fmt: skip
        job = TwinJob(event, surface, self.board, self.feed, self._at, progress, obeys, sync)
        self.jobs[name] = job
        self._at(self._t_s, lambda: job.begin(self._t_s))
        self.feed(event)
        if not self._ticking:
            self._ticking = True
            self._next_look_s = self._t_s + LOOK_S
            self._at(self._t_s + TICK_S, self._tick)
        return job

    def at(self, t_s: float, call: Callable[[Twin], object]) -> None:
        """At ``t_s`` call ``call(twin)``: a change of cap, of the board's surroundings, a fault, another writer."""

        def due() -> None:
            call(self)

        self._at(max(t_s, self._t_s), due)

    def set_cap(self, cap: Cap | None) -> None:
        """Another cap from now on."""
        self.feed(CapChanged(self._t_s, cap, "evaluation"))

    def end(self, name: str = "job", reason: str = "end") -> JobSummary:
        """End a job; its account."""
        self.jobs[name].end(self._t_s, reason)
        return self.ledger.ended[-1]

    def run(self, seconds: float | None = None, until: Callable[[Twin], bool] | None = None) -> Twin:
        """Let time pass: ``seconds``, or until ``until`` holds (looked at after each event), whichever comes first.

        Without either, until every job has ended. Raises ValueError when that would never happen.
        """
        if seconds is None and until is None:
            if any(job.running and job.progress is None for job in self.jobs.values()):
                raise ValueError("twin: a job has no end; give run() seconds or a condition")
            until = _all_ended
        end_s = float("inf") if seconds is None else self._t_s + seconds
        board, queue = self.board, self._queue
        while until is None or not until(self):
            t = min(queue[0][0] if queue else float("inf"), board.next_event_s())
            if t > end_s:
                board.advance(max(end_s, board.t_s))
                self._t_s = end_s
                break
            board.advance(t)
            self._t_s = t
            if board.finished:
                self._deliver()
            while queue and queue[0][0] <= t:
                heapq.heappop(queue)[2]()
        return self

    def feed(self, event: Event) -> None:
        """Give the governor one event and carry out what it answers, as the daemon's loop does."""
        self.ledger.see(event)
        answer = self.governor.handle(event)
        record = self.recording
        if record is not None:
            record.event(event)
            for action in answer:
                record.action(action)
        for action in answer:
            self.actions.append((self._t_s, action))
            self.ledger.act(action)
            self._carry_out(action)

    # -- what came out -------------------------------------------------------------------------------------------
    def of(self, kind: type[Action]) -> list[Action]:
        """The actions of one type, in order."""
        return [action for _, action in self.actions if isinstance(action, kind)]

    @property
    def decisions(self) -> list[Decided]:
        """Every decision and its reason, in order."""
        return [action for _, action in self.actions if isinstance(action, Decided)]

    def decided(self, *kinds: str) -> Decided | None:
        """The newest decision of one of these kinds."""
        return next((d for d in reversed(self.decisions) if d.kind in kinds), None)

    @property
    def lut(self) -> Lut | None:
        """The table as last persisted."""
        tables = [action.lut for _, action in self.actions if isinstance(action, PersistLut)]
        return tables[-1] if tables else None

    @property
    def settled(self) -> bool:
        """Whether the governor has left profiling: a choice is made, or it gave up."""
        if self._settled_at != len(self.actions):  # a state changes with a decision only; looking is not free
            self._settled_at = len(self.actions)
            self._settled = self.state not in ("idle", "profiling", "reference")
        return self._settled

    @property
    def state(self) -> str:
        """The governor's state."""
        return str(self.governor.snapshot()["state"])

    # -- inside --------------------------------------------------------------------------------------------------
    def _at(self, t_s: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (t_s, next(self._count), call))

    def _deliver(self) -> None:
        finished = self.board.finished
        while finished:
            ticket, t_s = finished.popleft()
            for job in self.jobs.values():
                if job.running and job.owns(ticket):
                    job.finished(ticket, t_s)
                    break

    def _carry_out(self, action: Action) -> None:
        match action:
            case SetGpuBounds(min_hz, max_hz):
                self._at(self._t_s + WRITE_S, lambda: self._write(min_hz, max_hz))
            case RestoreGpuBounds():
                self._at(self._t_s + WRITE_S, lambda: self._knob.restore(self._t_s))
            case AdviseBatch():
                job = self.jobs.get(action.job)
                if job is not None and job.running:
                    advice = action
                    self._at(self._t_s + MESSAGE_S, lambda: job.advise(advice))
            case SetSamplingInterval(interval_s):
                self._interval = interval_s
                self._begin_sampling()
            case _:
                pass

    def _write(self, min_hz: int, max_hz: int) -> None:
        error = self._knob.set_bounds(min_hz, max_hz, self._t_s)
        self.feed(KnobReadBack(self._t_s, min_hz, max_hz, *self._knob.bounds, error))

    def _wrote(self, path: str, value: int, error: str | None) -> None:
        if self.recording is not None:
            self.recording.write(path, value, self._t_s, error)

    def _begin_sampling(self) -> None:
        self._sampling += 1
        if self._interval is not None:
            generation = self._sampling
            self._at(self._t_s + self._interval, lambda: self._sample(generation))

    def _sample(self, generation: int) -> None:
        if generation != self._sampling or self._interval is None:
            return
        self._at(self._t_s + self._interval, lambda: self._sample(generation))
        if not self.telemetry_on:
            return
        sample = self._telemetry.sample(self._t_s)
        if self.trace is not None:
            job = next((j for j in self.jobs.values() if j.running), None)
            batch = None if job is None else job.batch_size
            self.trace.append(Moment(self._t_s, sample.input_power_w, sample.gpu_frequency_hz, batch))
        self.feed(sample)

    def _tick(self) -> None:
        if not any(job.running for job in self.jobs.values()):
            self._ticking = False
            return
        self._at(self._t_s + TICK_S, self._tick)
        self.feed(Tick(self._t_s))
        for event in self._health.due(self._t_s):
            self.feed(event)
        if self._t_s >= self._next_look_s:
            self._next_look_s = self._t_s + LOOK_S
            self.feed(KnobReadBack(self._t_s, None, None, *self._knob.bounds))
            self._look_at_mode()

    def _look_at_mode(self) -> None:
        """A power-mode change in mid-run is found by the status file, once a second; tables are kept by mode."""
        if self.board.power_mode.name == self.identity.power_mode:
            return
        self.identity = identity(self.board)
        stored = tuple(
            Stored(
                name, next((t for t in reversed(self._tables(name)) if t.power_mode == self.identity.power_mode), None)
            )
            for name, job in self.jobs.items()
            if job.running
        )
        self.feed(BoardFound(self._t_s, self.identity, stored))

    def _tables(self, job: str) -> list[Lut]:
        """Every table of ``job`` that was to be kept, in order."""
        return [action.lut for _, action in self.actions if isinstance(action, PersistLut) and action.job == job]


def _all_ended(twin: Twin) -> bool:
    return not any(job.running for job in twin.jobs.values())


def identity(board: VirtualBoard) -> Board:
    """Who the board is, as the daemon finds it: clocks above the power mode's maximum are left out."""
    spec = board.spec
    words = spec.release.replace(",", " ").split()
    release = f"{words[1]}.{words[words.index('REVISION:') + 1]}"
    cap_hz = board.power_mode.gpu_max_hz
    top = spec.gpu.frequencies_hz[-1] if cap_hz is None else cap_hz
    clocks = tuple(hz for hz in spec.gpu.frequencies_hz if hz <= top)
    return Board(spec.model, release, board.power_mode.name, clocks)
