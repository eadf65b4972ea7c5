"""A board and jobs in pseudo-time to try the governor on: exact power and time tables, no noise, no process."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from traingov_policies.actions import (
    Action,
    AdviseBatch,
    Decided,
    PersistLut,
    RestoreGpuBounds,
    SetGpuBounds,
    SetSamplingInterval,
)
from traingov_policies.events import (
    BatchApplied,
    BatchFailed,
    CapChanged,
    Event,
    JobEnded,
    JobRegistered,
    KnobReadBack,
    Sample,
    StepsReported,
    Tick,
)
from traingov_policies.governor import Governor
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap

CLOCKS = tuple(76_800_000 * k for k in range(1, 13))


def power_w(batch: int, hz: int) -> float:
    return 1.6 + 2.9 * (hz / 921.6e6) ** 1.7 * (0.55 + 0.11 * (batch.bit_length() - 1)) * 1.6


def step_s(batch: int, hz: int) -> float:
    return 0.004 + batch * (0.0006 + 0.5e6 / hz)


@dataclass
class FakeJob:
    name: str
    batch: int
    too_large: int = 10**9
    stops: int = 0
    obeys: bool = True
    step_begin: float = 0.0
    stopped: bool = False


@dataclass
class Bench:
    """Runs events in time order; keeps every event and action with its time."""

    settings: Settings = field(default_factory=Settings)
    clocks: tuple[int, ...] = CLOCKS
    cap: Cap | None = None
    power: Callable[[int, int], float] = power_w
    step_s: Callable[[int, int], float] = step_s
    knob_delay_s: float = 0.02
    switch_delay_s: float = 0.3
    refuse: str | None = None
    sensor_on: bool = True
    rails_on: bool = True
    load_without_steps: float | None = 0.0

    def __post_init__(self) -> None:
        self.board = Board("nano", "R32.7.1", "0 MAXN", self.clocks)
        self.governor = Governor(self.board, self.settings, self.cap)
        self.now = 100.0
        self.hz = self.clocks[-1] if self.clocks else 921_600_000
        self.bounds = (self.clocks[0], self.clocks[-1]) if self.clocks else (0, 0)
        self.jobs: dict[str, FakeJob] = {}
        self.sampling: float | None = None
        self.log: list[tuple[float, Event | Action]] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._at(self.now, self._tick)

    # -- what tests call -------------------------------------------------------------------------------------
    def register(
        self, name: str = "j1", batches: tuple[int, ...] = (8, 16, 32), batch: int = 32, **more: object
    ) -> FakeJob:
        job_more = {k: more.pop(k) for k in ("too_large", "obeys") if k in more}
        job = self.jobs[name] = FakeJob(name, batch, step_begin=self.now, **job_more)  # type: ignore[arg-type]
        self.feed(JobRegistered(self.now, name, "w", batches, batch, **more))  # type: ignore[arg-type]
        self._at(self.now + self.step_s(job.batch, self.hz), lambda: self._step(job))
        return job

    def end(self, name: str = "j1") -> None:
        self.jobs.pop(name)
        self.feed(JobEnded(self.now, name))

    def stop(self, name: str = "j1", *, load: float = 0.0) -> None:
        """The job makes no steps from now on; the GPU's utilization is ``load`` meanwhile."""
        self.jobs[name].stopped, self.load_without_steps = True, load

    def go_on(self, name: str = "j1") -> None:
        """It makes steps again; the first report holds no pause, as the client has it."""
        job = self.jobs[name]
        job.stopped, job.step_begin = False, self.now
        job.stops += 1
        self._at(self.now + self.step_s(job.batch, self.hz), lambda n=job.stops: self._step(job, n))

    def set_cap(self, cap: Cap | None) -> None:
        self.feed(CapChanged(self.now, cap, "test"))

    def run(self, seconds: float) -> Bench:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            t, _, call = heapq.heappop(self._queue)
            self.now = max(self.now, t)
            call()
        self.now = until
        return self

    def feed(self, event: Event) -> None:
        self.log.append((self.now, event))
        for action in self.governor.handle(event):
            self.log.append((self.now, action))
            self._carry_out(action)

    def of(self, kind: type) -> list:
        return [entry for _, entry in self.log if isinstance(entry, kind)]

    def texts(self, kind: str) -> list[str]:
        return [d.text for d in self.of(Decided) if d.kind == kind]

    @property
    def lut(self):
        return self.of(PersistLut)[-1].lut

    # -- the board and the jobs ------------------------------------------------------------------------------
    def _at(self, t: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (t, next(self._count), call))

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, SetGpuBounds):
            self._at(self.now + self.knob_delay_s, lambda: self._write(action.min_hz, action.max_hz))
        elif isinstance(action, RestoreGpuBounds):
            self.bounds = (self.clocks[0], self.clocks[-1])
            self.hz = self.clocks[-1]
        elif isinstance(action, AdviseBatch) and action.job in self.jobs:
            job = self.jobs[action.job]
            if job.obeys and action.batch_size != job.batch:
                self._at(self.now + 0.01, lambda: self._follow(job, action))
        elif isinstance(action, SetSamplingInterval):
            was, self.sampling = self.sampling, action.interval_s
            if was is None and self.sampling is not None:
                self._at(self.now + self.sampling, self._sample)

    def _write(self, low: int, high: int) -> None:
        if self.refuse:
            self.feed(KnobReadBack(self.now, low, high, *self.bounds, self.refuse))
            return
        self.bounds = (low, high)
        self._at(self.now + self.switch_delay_s, lambda: setattr(self, "hz", self.bounds[1]))
        self.feed(KnobReadBack(self.now, low, high, low, high))

    def _follow(self, job: FakeJob, action: AdviseBatch) -> None:
        if job.name not in self.jobs:
            return
        if action.batch_size >= job.too_large:
            self.feed(BatchFailed(self.now, job.name, action.batch_size))
            return
        job.batch = action.batch_size
        job.step_begin = self.now
        self.feed(BatchApplied(self.now, job.name, job.batch, action.advice))

    def _step(self, job: FakeJob, stops: int = 0) -> None:
        if self.jobs.get(job.name) is not job or job.stopped or stops != job.stops:
            return  # the step that a stop cut is not ended
        elapsed = self.now - job.step_begin
        job.step_begin = self.now
        if elapsed > 0:
            self.feed(StepsReported(self.now, job.name, job.batch, 1, job.batch, elapsed, True))
        self._at(self.now + self.step_s(job.batch, self.hz), lambda: self._step(job, stops))

    def watts(self) -> float:
        working = [j for j in self.jobs.values() if not j.stopped]
        if not working:
            return 1.5 + 2.0 * (self.load_without_steps or 0.0) + 0.002 * ((self.now * 37.0) % 1.0 - 0.5)
        wiggle = 0.004 * ((self.now * 37.0) % 1.0 - 0.5)
        return self.power(max(j.batch for j in working), self.hz) + wiggle

    def _sample(self) -> None:
        if self.sampling is None:
            return
        if self.sensor_on:
            busy = 0.9 if any(not j.stopped for j in self.jobs.values()) else self.load_without_steps
            watts = self.watts() if self.rails_on else None
            self.feed(Sample(self.now, watts, None if watts is None else watts / 2, self.hz, busy, 40.0))
        self._at(self.now + self.sampling, self._sample)

    def _tick(self) -> None:
        self.feed(Tick(self.now))
        self._at(self.now + 0.1, self._tick)
