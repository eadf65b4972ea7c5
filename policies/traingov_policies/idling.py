"""When the jobs idle: evaluation, data loading, checkpoints, a stopped process. Then nothing is measured, and where
the GPU has no load either, the pin is given back until steps or load return.

A job is *quiet* when it said so (``JobPaused``), or reported no step for ``after_s`` and for ``steps`` of its usual
steps, whichever is longer. The usual step is scaled to the present batch size and clock, so that the first step at a
larger batch and a lower clock is no pause. The *pin is released* when every job is quiet and the GPU's load was below
``gpu_utilization`` for ``unloaded_s``; where no utilization is shown, only what the jobs say counts: a missing reading
is not 0 (DESIGN 5.5). It is taken again at once, and released at most every ``every_s``, so that nothing thrashes.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .actions import JobIdle
from .events import BatchApplied, JobEnded, JobPaused, JobRegistered, JobResumed, Sample, StepsReported, Tick

if TYPE_CHECKING:
    from .context import Context

_BUCKETS = 64  # ticks whose mean load is kept
_LOADED_TICKS = 2
_STALL_S = 0.5
_REPORT_LATE_S = 0.25  # reports come every 0.1 s, or with every step where steps are longer
_BLINK_S = 0.5  # a shorter pause that was told only leaves its own samples out of what is measured
_OFTEN_S, _OFTEN = 10.0, 3  # so soon and so many times after one another, pauses are how this job trains:
_HABIT_S = 5.0  # then longer ones are left out likewise
_SILENT_MOST_S = 600.0  # after so long without a step or a word, a job is taken for one that never reports any


@dataclass(frozen=True)
class IdleSettings:
    """``first_step_s``: how long the first step may take, which may hold compilation; the others as above."""

    enabled: bool = True
    after_s: float = 5.0
    steps: float = 4.0
    first_step_s: float = 60.0
    gpu_utilization: float = 0.1
    unloaded_s: float = 1.0
    every_s: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.gpu_utilization < 1:
            raise ValueError(f"idle.gpu_utilization is {self.gpu_utilization!r}; use a share between 0 and 1")


class Activity:
    """What a job was last heard doing. Times in seconds, ``sample_hz_s`` in s·Hz a sample."""

    def __init__(self) -> None:
        self.last_s: float | None = None
        self.paused: str | None = None
        self.quiet = False
        self.idle = False
        self._sample_hz_s: float | None = None

    def steps(self, event: StepsReported, hz: int, since_s: float = -math.inf) -> None:
        """Steps; the clock is ``hz`` since ``since_s``. A window that a pause or a change of the clock lies in says
        nothing of the usual step: one taken for a step at the lower clock would make each that follows look stalled."""
        if not self.quiet and event.samples and event.t_s - event.elapsed_s >= since_s:
            self._sample_hz_s = event.elapsed_s / event.samples * hz
        self.heard(event.t_s)

    def heard(self, t_s: float) -> None:
        """The job is at work."""
        self.last_s, self.paused, self.quiet = t_s, None, False

    def stalled(self, now_s: float, settings: IdleSettings, batch_size: int, hz: int) -> bool:
        """Whether a step is overdue: too early to call it quiet, but what the board draws may not be training."""
        if self._sample_hz_s is None or self.last_s is None or self.paused is not None:
            return False
        return now_s - self.last_s > max(_STALL_S, settings.steps * self._sample_hz_s * batch_size / hz)

    def overdue(self, now_s: float, batch_size: int, hz: int) -> bool:
        """Whether the next report is late: no verdict on a point is given before it is known why."""
        if self._sample_hz_s is None or self.last_s is None:
            return False
        return now_s - self.last_s > max(_REPORT_LATE_S, 1.5 * self._sample_hz_s * batch_size / hz)

    def due_s(self, settings: IdleSettings, batch_size: int, hz: int) -> float:
        """How long the job may be silent before it counts as quiet."""
        if self._sample_hz_s is None:
            return max(settings.after_s, settings.first_step_s)
        return max(settings.after_s, settings.steps * self._sample_hz_s * batch_size / hz)


class IdleWatch:
    """Judges the jobs together, at every tick.

    ``quiet``: no job makes steps. ``told``: all said so. ``stalled``: no job has reported for some of its usual steps.
    ``suspended``: nothing measured now would be worth anything, and what was begun begins anew. A told pause does so
    only once it has lasted: what the board draws meanwhile is left out, and a job that evaluates every second is
    measured all the same. A job that stays silent for ten minutes and never said why is measured again, so that one
    that reports no steps is found out.
    ``released``: the pin is given back. ``releases`` and ``idle_s`` (of the board, all jobs) are for metrics.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.told = False
        self.stalled = False
        self.suspended = False
        self.released = False
        self._often = 0
        self._resumed_s = float("-inf")
        self.releases = 0
        self.idle_s = 0.0
        self._sum, self._count = 0.0, 0
        self._loads: deque[float | None] = deque(maxlen=_BUCKETS)
        self._next_s = float("-inf")
        self._judged_s: float | None = None
        self._quiet_since_s = 0.0
        self._frozen = False
        self._hz, self._hz_since_s = 0, float("-inf")

    def sample(self, sample: Sample) -> None:
        """Take the GPU's load of one sample."""
        if sample.gpu_utilization is not None:
            self._sum += sample.gpu_utilization
            self._count += 1

    def event(self, event: object, ctx: Context) -> None:
        """What jobs say of themselves; at a tick, all are judged."""
        hz = _present_hz(ctx)
        if hz != self._hz:
            first = self._hz == 0
            self._hz, self._hz_since_s = hz, float("-inf") if first else ctx.now_s + ctx.settings.guard.dead_time_s
        if isinstance(event, Tick):
            self._loads.append(self._sum / self._count if self._count else None)
            self._sum, self._count = 0.0, 0
        elif isinstance(event, (StepsReported, BatchApplied, JobResumed, JobPaused)):
            job = ctx.jobs.get(event.job)
            if job is None:
                return
            if isinstance(event, StepsReported):
                job.activity.steps(event, self._hz, self._hz_since_s)
            elif isinstance(event, JobPaused):
                job.activity.paused = event.reason
                job.activity.last_s = event.t_s
            else:
                job.activity.heard(event.t_s)
        elif not isinstance(event, (JobRegistered, JobEnded)):
            return
        self._judge(ctx)

    def _judge(self, ctx: Context) -> None:
        settings, jobs = ctx.settings.idle, list(ctx.jobs.values())
        if not jobs or not settings.enabled:
            self.quiet = self.told = self.stalled = self.suspended = self.released = self._frozen = False
            self._judged_s = None
            self._loads.clear()
            return
        for job in jobs:
            a = job.activity
            if a.last_s is None:
                a.last_s = job.registered.t_s
            silent_s = ctx.now_s - a.last_s
            a.quiet = a.paused is not None or silent_s > a.due_s(settings, job.batch_size, _present_hz(ctx))
        quiet = all(job.activity.quiet for job in jobs)
        if quiet and not self.quiet:
            self._quiet_since_s = ctx.now_s
        self.quiet = quiet
        hz = _present_hz(ctx)
        self.stalled = all(job.activity.stalled(ctx.now_s, settings, job.batch_size, hz) for job in jobs)
        told = all(job.activity.paused is not None for job in jobs)
        self._count_pauses(ctx.now_s, told=told)
        quiet_s = ctx.now_s - self._quiet_since_s
        shortest_s = _HABIT_S if self._often >= _OFTEN and not self.released else _BLINK_S
        self.suspended = quiet and (quiet_s >= shortest_s if told else quiet_s < _SILENT_MOST_S)
        unloaded = self._unloaded(settings, told, ctx.now_s)
        for job in jobs:
            self._tell(job.name, job.activity, quiet=quiet, unloaded=unloaded, ctx=ctx)
        if self._judged_s is not None and all(job.activity.idle for job in jobs):
            self.idle_s += ctx.now_s - self._judged_s
        self._judged_s = ctx.now_s
        if self.released:
            if not quiet or self._loaded(settings):
                self._take(ctx, "steps are reported again" if not quiet else "the GPU has load again")
        elif quiet and unloaded and ctx.ours and ctx.now_s >= self._next_s:
            self._release(ctx)
        self._freeze(ctx)

    def _count_pauses(self, now_s: float, *, told: bool) -> None:
        """How many told pauses have come soon after one another."""
        if told and not self.told:
            self._often = self._often + 1 if now_s - self._resumed_s < _OFTEN_S else 1
        elif self.told and not told:
            self._resumed_s = now_s
        self.told = told

    def _freeze(self, ctx: Context) -> None:
        """Without steps the guard steps down where it must, and never up: an idle board teaches no higher limit."""
        if ctx.cap is not None and (self.stalled or self.quiet):
            self._frozen = True
            ctx.guard.aim(min(ctx.guard.limit, ctx.guard.target))
        elif self._frozen:
            self._frozen = False
            ctx.guard.aim(len(ctx.clocks) - 1 if ctx.target_hz is None else ctx.index_at_most(ctx.target_hz))

    def _tell(self, name: str, activity: Activity, *, quiet: bool, unloaded: bool, ctx: Context) -> None:
        """Job ``name`` idles while it is quiet and the GPU works for nobody, or for another job that is not quiet."""
        idle = activity.quiet and (unloaded or activity.idle or not quiet)
        if activity.idle and quiet and self._loaded(ctx.settings.idle):
            idle = False
        if idle != activity.idle:
            activity.idle = idle
            ctx.out.append(JobIdle(name, idle, activity.paused or ("no steps" if idle else "")))

    def _release(self, ctx: Context) -> None:
        self.released = True
        self.releases += 1
        self._next_s = ctx.now_s + ctx.settings.idle.every_s
        said = [job.activity.paused for job in ctx.jobs.values() if job.activity.paused]
        why = f"paused ({', '.join(said)})" if said else "no steps are reported"
        kept = "the pin is given back" if ctx.cap is None else "the pin becomes an upper bound, which the cap allows"
        ctx.say(None, "idle", f"{why} and the GPU has no load: {kept}")

    def _take(self, ctx: Context, why: str) -> None:
        self.released = False
        ctx.say(None, "idle-over", f"{why}: governed again")

    def _unloaded(self, settings: IdleSettings, told: bool, now_s: float) -> bool:
        ticks = max(1, round(settings.unloaded_s / 0.1))
        loads = list(self._loads)[-ticks:]
        if all(load is None for load in loads):
            return told and now_s - self._quiet_since_s >= settings.unloaded_s
        return len(loads) == ticks and all(load is not None and load < settings.gpu_utilization for load in loads)

    def _loaded(self, settings: IdleSettings) -> bool:
        loads = list(self._loads)[-_LOADED_TICKS:]
        return len(loads) == _LOADED_TICKS and all(
            load is not None and load >= settings.gpu_utilization for load in loads
        )


def _present_hz(ctx: Context) -> int:
    """The clock that is asked for; without one the highest, since mode 0 goes there under load."""
    if ctx.requested is not None:
        return ctx.requested[1]
    return ctx.clocks[-1] if ctx.clocks else 1
