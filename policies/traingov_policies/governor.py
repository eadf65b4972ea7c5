"""``Governor.handle(event) -> actions``: the whole of traingov's decisions, deterministic and without I/O (DESIGN 3).

One event in, a list of actions out. What is common to all states happens here: bookkeeping of jobs, knob and
telemetry, the cap guard, and at the end of each event the one clock that target, guard and missing telemetry allow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .actions import Action, SetSamplingInterval
from .boardchange import board_found, usable_table
from .context import Context, Job
from .drift.counts import DriftCounts
from .events import (
    BatchApplied,
    BatchFailed,
    BoardFound,
    CapChanged,
    Event,
    JobEnded,
    JobRegistered,
    KnobReadBack,
    PolicyChanged,
    Sample,
    StepsReported,
    SweepRequested,
    SweepStopped,
)
from .guard import Guard
from .knob import read_back
from .settings import Settings
from .states.base import Idle, State, safe_hz
from .states.beginning import begin_policy
from .states.sweep import requested
from .sweeping import SweepRun
from .values import Board, Cap

_FORGET_S = 60.0  # after so long without a job, the guard's limit of the last one is forgotten


class Governor:
    """Decides for one board. Two governors fed the same events give the same actions."""

    def __init__(self, board: Board, settings: Settings, cap: Cap | None = None) -> None:
        guard = Guard(settings.guard, board.gpu_frequencies_hz)
        guard.set_cap(cap)
        self._ctx = Context(board, settings, settings.policy, settings.objective, guard, cap)
        self._state: State = Idle()
        self._ctx.table = lambda: self._state.safe_table()  # noqa: PLW0108  (the state changes)

    def handle(self, event: Event) -> list[Action]:
        """Take one event; the actions it calls for, in the order to carry them out."""
        ctx = self._ctx
        ctx.now_s = max(ctx.now_s, event.t_s)
        if isinstance(event, Sample):  # by far the most frequent: keep its path short
            ctx.idling.sample(event)
            event = self._sample(event, ctx)
        else:
            anew = self._bookkeeping(event, ctx)
            ctx.watch.event(event, ctx, writes=self._state.writes)
            if anew:
                self._state.leave(event, ctx)
                self._change(begin_policy(ctx), ctx)
            ctx.idling.event(event, ctx)
        if ctx.jobs:
            self._freshness(ctx)
            self._change(self._state.handle(event, ctx), ctx)
        if ctx.begin_again:
            ctx.begin_again = False
            self._change(begin_policy(ctx), ctx)
        self._apply(ctx)
        if not ctx.out:
            return []
        out, ctx.out = ctx.out, []
        return out

    @property
    def cap(self) -> Cap | None:
        """The cap in force."""
        return self._ctx.cap

    @property
    def counters(self) -> dict[str, float]:
        """What only grows, for metrics: pins released while jobs idle, foreign bounds respected, glitches left out."""
        ctx = self._ctx
        return {
            "pin_releases": ctx.idling.releases,
            "foreign_writers": ctx.foreigners,
            "readings_disbelieved": ctx.watch.filter.left_out,
        }

    @property
    def sweep(self) -> SweepRun | None:
        """The energy sweep that was last asked for."""
        return self._ctx.sweep

    @property
    def drift(self) -> DriftCounts:
        """What drift has led to so far, for metrics."""
        return self._ctx.drift

    def snapshot(self) -> dict[str, Any]:
        """The present state as plain values, for ``traingov status``."""
        ctx = self._ctx
        decision = ctx.last_decision
        return {
            "state": self._state.name,
            "doing": self._state.describe(),
            "policy": ctx.policy.value,
            "objective": ctx.objective.value,
            "cap_w": ctx.cap_w,
            "gpu_target_hz": ctx.target_hz,
            "gpu_limit_hz": self._allowed(ctx),
            "gpu_held_by": self._held_by(ctx),
            "guard_steps_down": ctx.guard.steps_down,
            "guard_steps_up": ctx.guard.steps_up,
            "pin_released": ctx.idling.released,
            "pin_releases": ctx.idling.releases,
            "idle_s": ctx.idling.idle_s,
            "foreign_writers": ctx.foreigners,
            "power_mode_changes": ctx.power_mode_changes,
            "conditions": dict(ctx.conditions),
            "decision": None if decision is None else decision.text,
            "drift": ctx.drift.to_json(),
            "sweep": None if ctx.sweep is None else ctx.sweep.to_json(),
            "jobs": [
                {
                    "job": job.name,
                    "workload": job.registered.workload,
                    "batch_size": job.batch_size,
                    "steps": job.steps,
                    "samples": job.samples,
                    "idle": job.activity.idle,
                    "paused": job.activity.paused,
                }
                for job in ctx.jobs.values()
            ],
        }

    def _sample(self, sample: Sample, ctx: Context) -> Sample:
        """Let the guard judge what is believed of the reading; what is not reaches the state as a missing one."""
        believed = ctx.watch.sample(sample, ctx)
        if not believed:
            if sample.input_power_w is None:
                return sample
            return replace(sample, input_power_w=None, compute_power_w=None)
        ctx.last_power_s = sample.t_s
        if self._state.guarded and ctx.clocks:
            for t_s, watts in believed:
                step = ctx.guard.sample(t_s, watts)
                if step is not None:
                    way = "up" if step.up else "down"
                    ctx.say(None, f"guard-{way}", f"to {ctx.clocks[step.index] / 1e6:.0f} MHz: {step.text}")
        return sample

    def _bookkeeping(self, event: Event, ctx: Context) -> bool:
        """Note what the event says; True when the set of jobs or the policy changed and a new beginning is due."""
        match event:
            case JobRegistered():
                first = not ctx.jobs
                usable = sorted(set(event.batch_sizes))
                ctx.jobs[event.job] = Job(
                    event, usable, event.batch_size, usable_table(event.lut, event.batch_sizes, ctx), event.samples_done
                )
                if first:
                    ctx.last_power_s = event.t_s
                    if ctx.idle_since_s is None or event.t_s - ctx.idle_since_s > _FORGET_S:
                        ctx.guard.forget()
                        ctx.watch.forget()
                    ctx.out.append(SetSamplingInterval(ctx.settings.sampling_interval_s))
                return True
            case JobEnded():
                if ctx.jobs.pop(event.job, None) is None:
                    return False
                if not ctx.jobs:
                    ctx.out.append(SetSamplingInterval(ctx.settings.idle_interval_s))
                return True
            case StepsReported():
                if (job := ctx.jobs.get(event.job)) is not None:
                    job.steps += event.steps
                    job.samples += event.samples
                    job.batch_size = event.batch_size
                    if event.seq_len_avg is not None:
                        job.seq_len_sum += event.seq_len_avg * event.samples
                        job.seq_len_weight += event.samples
            case BatchApplied():
                if (job := ctx.jobs.get(event.job)) is not None:
                    job.batch_size = event.batch_size
            case BatchFailed():
                if (job := ctx.jobs.get(event.job)) is not None:
                    job.advised = None  # the advice did not hold: whatever comes next is new to the job
                    if event.batch_size in job.batch_sizes:
                        job.batch_sizes.remove(event.batch_size)
            case CapChanged():
                if event.cap != ctx.cap:
                    ctx.pace.changed(ctx.now_s)
                ctx.cap = event.cap
                ctx.guard.set_cap(event.cap)
                ctx.condition("cap-infeasible", None)
                limit = "none" if event.cap is None else f"{event.cap.power_w:g} W over {event.cap.window_s:g} s"
                ctx.say(None, "cap", f"cap is now {limit} (set by {event.source})")
            case PolicyChanged():
                ctx.policy, ctx.objective = event.policy, event.objective
                return bool(ctx.jobs)
            case SweepRequested() | SweepStopped():
                return requested(event, ctx)
            case KnobReadBack():
                read_back(event, ctx, guarded=self._state.guarded)
            case BoardFound():
                return board_found(event, ctx)
            case _:
                pass
        return False

    def _freshness(self, ctx: Context) -> None:
        """No telemetry, no trust: with a cap and no fresh power reading the clock becomes a safe one (DESIGN 5.3)."""
        if ctx.cap is None or not self._state.writes:
            stale = False
        else:
            last = ctx.now_s if ctx.last_power_s is None else ctx.last_power_s
            stale = ctx.now_s - last > ctx.settings.stale_after_s
        if stale and not ctx.stale:
            ctx.condition("telemetry-stale", "no fresh power reading: the GPU runs at a clock that is safe without one")
        elif ctx.stale and not stale:
            ctx.condition("telemetry-stale", None)
            ctx.guard.written(ctx.now_s)
        ctx.stale = stale

    def _allowed(self, ctx: Context) -> int | None:
        """The clock that target, guard, freshness and the board's own limits allow; None: the knob as it was found."""
        if not ctx.clocks or not ctx.jobs or not self._state.writes:
            return None
        allowed = self._wanted(ctx)
        if ctx.watch.binding:
            ceiling = ctx.clocks[ctx.watch.ceiling]
            return ceiling if allowed is None else min(allowed, ceiling)
        return allowed

    def _held_by(self, ctx: Context) -> str | None:
        """What holds the clock below the target, in words; None where nothing does."""
        allowed, target = self._allowed(ctx), ctx.target_hz
        if allowed is None or target is None or allowed >= target:
            return None
        if ctx.watch.binding and ctx.clocks[ctx.watch.ceiling] <= allowed:
            return "a learned ceiling"
        if ctx.stale:
            return "missing readings"
        if self._state.guarded and ctx.clocks[ctx.guard.limit] <= allowed:
            return "the guard"
        return "the present batch size"

    def _wanted(self, ctx: Context) -> int | None:
        """What target, guard and freshness allow."""
        if ctx.stale:
            safe = safe_hz(self._state.safe_table(), ctx)
            return safe if ctx.target_hz is None else min(safe, ctx.target_hz)
        if ctx.target_hz is None:
            held = self._state.guarded and ctx.cap is not None and ctx.guard.limit < len(ctx.clocks) - 1
            return ctx.clocks[ctx.guard.limit] if held else None
        allowed = ctx.target_hz
        if self._state.guarded:
            allowed = min(allowed, ctx.clocks[ctx.guard.limit])
        if ctx.cap is not None and ctx.target_batch is not None:
            present = next(iter(ctx.jobs.values())).batch_size
            if present != ctx.target_batch:
                allowed = min(allowed, safe_hz(self._state.safe_table(), ctx, present))
        return allowed

    def _apply(self, ctx: Context) -> None:
        allowed = self._allowed(ctx)
        if allowed is not None and ctx.hands_off:
            # Another program's bounds are respected, but never above what cap and missing telemetry allow.
            shown = ctx.actual.max_hz if ctx.actual is not None else None
            bound = ctx.cap is not None or ctx.watch.binding
            if not bound or shown is None or allowed >= shown:
                return
        if ctx.idling.released:  # the board's own governor saves power meanwhile, below what the cap allows
            bounded = allowed if ctx.cap is not None or ctx.watch.binding else None
            ctx.write(bounded, "no job makes steps and the GPU has no load", ctx.clocks[0] if ctx.clocks else None)
            return
        why = "telemetry is stale" if ctx.stale else ctx.target_why
        if allowed is not None and allowed != ctx.target_hz and not ctx.stale:
            by_board = ctx.watch.binding and allowed == ctx.clocks[ctx.watch.ceiling]
            why = f"{ctx.watch.why() if by_board else 'held back under the cap'}: {why}"
        ctx.write(allowed, why)

    def _change(self, state: State, ctx: Context) -> None:
        while state is not self._state:
            self._state = state
            state = state.enter(ctx)
