"""A training job of the twin: it submits steps, reports and follows advice as a script with traingov_client does.

The client's manners (``traingov_client.job``, ``window``), in pseudo-time: at most two steps on their way, windows of
about 100 ms per batch size, none across the first step after a change, synchronised edges while profiling, advice
taken at the next safe point. A step is known to have ended when the board says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from traingov_policies.actions import AdviseBatch
from traingov_policies.events import (
    BatchApplied,
    BatchFailed,
    Event,
    JobEnded,
    JobPaused,
    JobRegistered,
    JobResumed,
    StepsReported,
)

from ..board.gpuqueue import OutOfMemory
from ..board.physics import VirtualBoard
from ..surface import Surface

IN_FLIGHT = 2
WINDOW_S = 0.1
HOST_S = 0.0005  # host time between two submissions: what the loop itself costs
MESSAGE_S = 0.002  # from the daemon's action to the client's hands


class Progress(Protocol):
    """Told every step; says when the training is done."""

    def step(self, batch_size: int) -> bool:
        """A step of ``batch_size`` samples was launched; True when it was the last."""


@dataclass
class Steps:
    """Done after ``left`` steps."""

    left: int

    def step(self, batch_size: int) -> bool:
        """Count one."""
        self.left -= 1
        return self.left <= 0


@dataclass
class SamplesToAccuracy:
    """Done when Σ samples / N(b) reaches 1, with N by batch size: convergence as the relation vector assumes it."""

    samples: Mapping[int, float]
    share: float = 0.0

    def step(self, batch_size: int) -> bool:
        """Go on by one step. Raises KeyError for a batch size without N."""
        self.share += batch_size / self.samples[batch_size]
        return self.share >= 1


@dataclass
class TwinJob:
    """One job. ``obeys``: it follows advice; ``sync``: it has a callable that waits for the device.

    ``progress`` None trains on until ``Twin.end``. ``samples_by_batch`` counts what was trained.
    """

    registered: JobRegistered
    surface: Surface
    board: VirtualBoard
    feed: Callable[[Event], None]
    later: Callable[[float, Callable[[], None]], None]
    progress: Progress | None = None
    obeys: bool = True
    sync: bool = True
    batch_size: int = 0
    phase: str = "train"
    ended_s: float | None = None
    began_input_j: float = 0.0
    input_j: float = 0.0
    samples_by_batch: dict[int, int] = field(default_factory=dict)
    _sizes: list[int] = field(default_factory=list)
    _previous: int | None = None
    _pending: list[int] = field(default_factory=list)
    _advice: AdviseBatch | None = None
    _waiting: Callable[[float], None] | None = None
    _wait_for: int = 0
    _window_s: float | None = None
    _window_synced: bool = False
    _step_s: float | None = None
    _steps: int = 0
    _samples: int = 0
    _resting: bool = False
    _at_rest: bool = False
    _told: bool = False

    def __post_init__(self) -> None:
        self.batch_size = self.batch_size or self.registered.batch_size
        self._sizes = list(self.registered.batch_sizes)
        self.began_input_j = self.board.truth(self.registered.t_s).input_j

    @property
    def name(self) -> str:
        """The job's identifier."""
        return self.registered.job

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.ended_s is None

    @property
    def samples(self) -> int:
        """Samples trained so far."""
        return sum(self.samples_by_batch.values())

    # What the twin calls

    def advise(self, advice: AdviseBatch) -> None:
        """Advice arrives; it is taken at the next safe point."""
        self._advice = advice

    def begin(self, t_s: float) -> None:
        """The first step."""
        self._next(t_s)

    def pause(self, t_s: float, reason: str | None = None) -> None:
        """Make no steps until ``resume``: evaluation, a checkpoint. With a ``reason`` the job says so."""
        if self._resting or self.ended_s is not None:
            return
        self._resting, self._told = True, reason is not None
        if reason is not None:
            self.feed(JobPaused(t_s, self.name, reason))

    def resume(self, t_s: float) -> None:
        """Go on. The first step afterwards is progress, not a measurement."""
        if not self._resting:
            return
        self._resting = False
        if self._told and self.ended_s is None:
            self.feed(JobResumed(t_s, self.name))
        if self._at_rest:
            self._at_rest = False
            self._window_s, self._steps, self._samples = None, 0, 0
            self._next(t_s)

    def owns(self, ticket: int) -> bool:
        """Whether that step is this job's, and on its way."""
        return ticket in self._pending

    def finished(self, ticket: int, t_s: float) -> None:
        """The board ended a step of this job."""
        self._pending.remove(ticket)
        if self._waiting is not None and len(self._pending) <= self._wait_for:
            go, self._waiting = self._waiting, None
            go(t_s)

    def end(self, t_s: float, reason: str = "end") -> None:
        """End now, whatever is on its way."""
        if self.ended_s is not None:
            return
        self._waiting = None
        if reason == "end":
            self._cut(t_s, synced=not self._pending)
        self.ended_s = t_s
        self.input_j = self.board.truth(t_s).input_j - self.began_input_j
        self.board.release(self.name)
        self.feed(JobEnded(t_s, self.name, reason))

    # The loop of a training script

    def _next(self, t_s: float) -> None:
        """Safe point, then one step."""
        if self.ended_s is not None:
            return
        if self._resting:
            self._cut(t_s, synced=self._synchronises and not self._pending)
            self._at_rest = True
            return
        heeds = self._advice is not None and self.obeys
        if heeds and self._pending and self._synchronises and self._window_s is not None:
            self._wait(0, self._next)  # the window that this advice closes is to end with the device at rest
            return
        if self._safe_point(t_s):
            self._wait(0, self._reopen)
        elif len(self._pending) >= IN_FLIGHT:
            self._wait(IN_FLIGHT - 1, self._launch)
        else:
            self._launch(t_s)

    def _reopen(self, t_s: float) -> None:
        """The device has come to rest: measure from here."""
        self._window_s, self._window_synced = t_s, True
        self._steps = self._samples = 0
        self._launch(t_s)

    def _launch(self, t_s: float) -> None:
        if self.ended_s is not None:
            return
        try:
            ticket = self.board.submit(self.surface, self.batch_size, t_s, self.name)
        except OutOfMemory:
            self._out_of_memory(t_s)
            return
        self._pending.append(ticket)
        b = self.batch_size
        self.samples_by_batch[b] = self.samples_by_batch.get(b, 0) + b
        self._steps += 1
        self._samples += b
        if self.progress is not None and self.progress.step(b):
            self._wait(0, self.end)
            return
        window = self._window_s
        if window is None or t_s >= window + self._window_length_s():
            if self._synchronises:
                self._wait(0, self._edge)
                return
            self._edge(t_s)
        self.later(t_s + HOST_S, lambda: self._next(t_s + HOST_S))

    def _window_length_s(self) -> float:
        """As the client: where windows are exact, one step first, and each by itself if it is long."""
        exact = self._window_synced and self._synchronises
        return 0.0 if exact and (self._step_s is None or self._step_s >= WINDOW_S) else WINDOW_S

    def _edge(self, t_s: float) -> None:
        """A window is full, or a first step is done: close it, open the next."""
        synced = self._synchronises
        if self._window_s is None:
            self._steps = self._samples = 0  # the first step after a change is progress, not a measurement
            self._window_s, self._window_synced = t_s, synced
        else:
            self._cut(t_s, synced)
        if synced:
            self.later(t_s + HOST_S, lambda: self._next(t_s + HOST_S))

    def _cut(self, t_s: float, synced: bool) -> None:
        begin = self._window_s
        if begin is not None and self._steps and synced and self._window_synced:
            self._step_s = (t_s - begin) / self._steps
        if begin is not None and self._steps and t_s > begin:
            report = StepsReported(
                *(t_s, self.name, self.batch_size, self._steps, self._samples, t_s - begin),
                synced and self._window_synced,
            )
            self._steps = self._samples = 0
            self._window_s, self._window_synced = t_s, synced
            self.feed(report)

    def _safe_point(self, t_s: float) -> bool:
        """Take advice. True when the device has to come to rest first, so that a window can begin exactly."""
        advice = self._advice
        if advice is None or not self.obeys:
            return False
        self._advice = None
        if advice.phase == "hold" or advice.batch_size == self.batch_size:
            if advice.phase != self.phase:
                self._cut(t_s, self._synchronises)
                self.phase = advice.phase
                rest = self._synchronises and self._window_s is not None
                self.feed(BatchApplied(t_s, self.name, self.batch_size, advice.advice))
                return rest
            self.feed(BatchApplied(t_s, self.name, self.batch_size, advice.advice))
            return False
        self._cut(t_s, self._synchronises)
        self._window_s, self._steps, self._samples, self._step_s = None, 0, 0, None
        self._previous, self.batch_size, self.phase = self.batch_size, advice.batch_size, advice.phase
        self.feed(BatchApplied(t_s, self.name, self.batch_size, advice.advice))
        return False

    def _out_of_memory(self, t_s: float) -> None:
        failed = self.batch_size
        self._window_s, self._steps, self._samples, self._step_s = None, 0, 0, None
        self._sizes.remove(failed)
        smaller = [b for b in self._sizes if b < failed]
        if self._previous in self._sizes:
            self.batch_size = self._previous or failed
        elif smaller:
            self.batch_size = smaller[-1]
        self._previous = None
        self.feed(BatchFailed(t_s, self.name, failed))
        if self.batch_size == failed:
            self.end(t_s, "exited")
            return
        self.feed(BatchApplied(t_s, self.name, self.batch_size))
        self.later(t_s + HOST_S, lambda: self._next(t_s + HOST_S))

    @property
    def _synchronises(self) -> bool:
        return self.sync and self.phase == "profile"

    def _wait(self, left: int, go: Callable[[float], None]) -> None:
        """Go on once at most ``left`` steps are on their way."""
        if len(self._pending) <= left:
            go(self.board.t_s)
            return
        self._waiting, self._wait_for = go, left
