"""The energy policy's search: begins at the tree's clock and looks for a better one with live training steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..actions import PersistCurve
from ..context import Context, Job
from ..events import BoardFound, CapChanged, Event, Sample, StepsReported
from ..search.budget import Budget
from ..search.curves import Curve, cost
from ..search.holding import Hold
from ..search.lengths import Lengths
from ..search.log import Log
from ..search.process import Reading
from ..search.search import Stakes, Step
from ..search.setup import build, objective_of
from ..search.window import Measured, Noise, Outcome, Window
from ..values import OperatingPoint
from .base import Holding, State

_BLOCKED_S = 120.0  # until a search goes on that would have cost more than it may
_PROBES_AGAIN = 2


@dataclass(frozen=True)
class TreeChoice:
    """Where a search begins: the tree's clock and its reason; ``ask`` is the tree's answer to another mean length.

    ``gpu_utilization`` (percent) and ``reference_time_s`` (a sample in mode 0) are as measured at the reference clock.
    """

    frequency_hz: int
    why: str
    ask: Callable[[float], int]
    gpu_utilization: float | None = None
    reference_time_s: float | None = None


class Searching(State):
    """Reads one clock after another as ``Search`` says, within ``Budget``; between searches it holds the best one.

    Exits: the tree's own clock cannot be measured → ``Holding`` it. Every wait is bounded.
    """

    name = "searching"
    guarded = True

    def __init__(self, job: Job, choice: TreeChoice, ctx: Context) -> None:
        s = ctx.settings
        self._job, self._choice = job, choice
        self._power = s.search.power
        self._objective = objective_of(job, s.search)
        self._budget = Budget(s.search.loss_share, s.search.loss_s, s.profile.settle_s, self._objective)
        self._lengths = Lengths(s.search.length_period_s, s.search.length_margin)
        self._noise = Noise()
        self._ceiling = len(ctx.clocks) - 1
        self._begun_s = ctx.now_s
        self._step: Step | None = None
        self._hold: Hold | None = None
        self._window: Window | None = None
        self._back_s: float | None = None
        self._attempt, self._poor = 0, False
        self._deadline_s = self._again_s = self._pause_s = 0.0
        self._settled_s: float | None = None
        self._at = 0
        self._log = Log(ctx.clocks)
        self._curve: Curve | None = None
        self._restart(ctx, ctx.clocks.index(choice.frequency_hz))

    # -- life ----------------------------------------------------------------------------------------------------
    def enter(self, ctx: Context) -> State:
        """Go to the tree's clock."""
        point = OperatingPoint(self._batch, self._choice.frequency_hz)
        ctx.say(self._job, "tree", f"{point}: {self._choice.why}", point)
        if ctx.cap is not None:  # what the guard has learned binds: no choice of ours is from a table under this cap
            ctx.guard.aim(self._search.start)
            ctx.guard.limit_to(self._search.start)
            self._ceiling = min(self._ceiling, ctx.guard.limit)
        return self._advance(ctx)

    def leave(self, event: Event, ctx: Context) -> None:
        """What was read so far is gone on with: after a second job's end, under another policy."""
        if (curve := self._curve) is not None and not isinstance(event, BoardFound):
            registered = self._job.registered
            others = tuple(c for c in registered.remembered if c.batch_size != curve.batch_size)
            self._job.registered = replace(registered, remembered=(*others, curve))

    def describe(self) -> str:
        """What is being read, or what is held."""
        held = f"{self._clocks[self._search.incumbent] / 1e6:.0f} MHz"
        if self._step is None:
            return f"holding {held}, the best of {len(self._log.readings)} clocks measured"
        at = f"{self._clocks[self._step.index] / 1e6:.0f} MHz"
        return f"reading {at} ({self._step.why}), best so far {held}, {self._search.probes} probes"

    def handle(self, event: Event, ctx: Context) -> State:
        """Keep the account, go back if it calls for that, and go on with the reading."""
        job = self._job
        if isinstance(event, Sample):
            self._budget.power(event.t_s, event.compute_power_w if self._power == "compute" else event.input_power_w)
        elif isinstance(event, StepsReported) and event.job == job.name:
            self._budget.report(event.samples, event.elapsed_s)
            if event.seq_len_avg is not None:
                self._lengths.add(event.seq_len_avg, event.samples)
        if self._back_s is not None and ctx.now_s >= self._back_s:
            self._budget.back()
            self._back_s = None
        if job.batch_size != self._batch:
            ctx.say(job, "search", f"batch size is {job.batch_size} now: readings begin anew")
            self._restart(ctx, self._search.start)
            return self._advance(ctx)
        if isinstance(event, CapChanged):
            self._ceiling = len(self._clocks) - 1
            self._search.left_out.clear()
            self._restart_from(self._clocks.index(self._choice.frequency_hz), ctx)
            return self._advance(ctx)
        if ctx.unmeasurable:
            self._window = None
            self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
            return self
        if self._at != self._search.start and self._budget.exhausted:
            return self._retreat(ctx)
        if (moved := self._lengths.due(ctx.now_s, self._choice.frequency_hz, self._choice.ask)) is not None:
            return self._tree_moved(*moved, ctx)
        if self._step is None:
            return self._look_again(ctx) if ctx.now_s >= self._again_s else self._held(event, ctx)
        if ctx.watch.ceiling < self._step.index:
            return self._advance(ctx)
        if ctx.cap is not None and ctx.guard.limit < self._step.index:
            self._ceiling = min(self._ceiling, ctx.guard.limit)
            return self._advance(ctx)
        if self._window is None:
            return self._applying(ctx)
        if isinstance(event, Sample):
            self._window.sample(event, paused=ctx.idling.told)
        elif isinstance(event, StepsReported) and event.job == job.name:
            self._window.steps(event)
        outcome = self._window.outcome(ctx.now_s, self._noise)
        return self if outcome is None else self._judge(outcome, ctx)

    # -- one reading ---------------------------------------------------------------------------------------------
    def _go(self, index: int, phase: str, why: str, ctx: Context) -> None:
        """To clock ``index``; the account is told where the job is."""
        start = self._search.start
        if index != self._at:
            if index != start:
                self._budget.leave()
                self._back_s = None
            else:
                self._back_s = ctx.now_s + ctx.settings.profile.settle_s
            self._at, self._settled_s = index, None
        ctx.aim_guarded(self._clocks[index], why, trusted=True)
        ctx.advise(self._job, self._batch, phase, why)

    def _read(self, step: Step, ctx: Context) -> State:
        self._step, self._window, self._hold = step, None, None
        self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
        self._go(step.index, "profile", f"energy search: reading {self._clocks[step.index] / 1e6:.0f} MHz", ctx)
        return self

    def _applying(self, ctx: Context) -> State:
        assert self._step is not None
        hz, actual, p, s = self._clocks[self._step.index], ctx.actual, ctx.settings.profile, ctx.settings.search
        if actual is not None and actual.error is not None:
            return self._judge(Outcome(None, actual.error), ctx)
        if actual is None or actual.requested_max_hz != hz:
            late = ctx.now_s > self._deadline_s
            return self._judge(Outcome(None, "the clock write was not answered"), ctx) if late else self
        if actual.max_hz is not None and actual.max_hz != hz:
            return self._judge(Outcome(None, f"the kernel set {actual.max_hz / 1e6:g} MHz instead"), ctx)
        if self._settled_s is None:
            self._settled_s = ctx.now_s + p.settle_s
        self._window = Window(
            hz, self._batch, max(ctx.now_s, self._settled_s), self._wanted_s(ctx), s.window_most_s,
            power=self._power, min_steps=p.min_steps, min_readings=p.min_readings, tolerance=p.clock_tolerance,
        )  # fmt: skip
        return self

    def _judge(self, outcome: Outcome, ctx: Context) -> State:
        step, job = self._step, self._job
        assert step is not None
        point = OperatingPoint(self._batch, self._clocks[step.index])
        if outcome.measured is not None:
            self._attempt = 0
            return self._take(step, outcome.measured, ctx)
        self._attempt += not outcome.paused
        ctx.say(job, "measurement-invalid", f"{point}: {outcome.invalid}", point)
        if self._attempt < ctx.settings.profile.attempts:
            ctx.rewrite()
            self._settled_s = None
            return self._read(step, ctx)
        self._attempt = 0
        if step.index == self._search.start:
            return Holding(job, point.gpu_frequency_hz, f"no search: {outcome.invalid}; {self._choice.why}", "tree")
        self._search.leave_out(step.index)
        return self._advance(ctx)

    def _take(self, step: Step, measured: Measured, ctx: Context) -> State:
        energy_j = measured.compute_energy_j if self._power == "compute" else measured.input_energy_j
        assert energy_j is not None
        self._log.add(step.index, measured)
        value = cost(energy_j, measured.time_s, self._objective)
        self._search.tell(Reading(step.index, ctx.now_s, value, measured.sd))
        search, point = self._search, OperatingPoint(self._batch, self._clocks[step.index])
        if step.index == search.start:
            self._budget.tree(self._log.energy_j(step.index, self._power), self._log.time_s(step.index))
        text = f"{point}: {1e3 * energy_j:.4g} mJ a sample ± {100 * measured.sd:.1f} %"
        ctx.say(self._job, "search-reading", f"{text} ({step.why})", point)
        tree, job = self._clocks.index(self._choice.frequency_hz), self._job
        best = min(self._log.readings, key=lambda i: search.belief.mean[i])
        curve = self._log.curve(
            ctx.board, job.registered.workload, self._batch,
            tree=tree, best=best, utilization=self._choice.gpu_utilization,
        )  # fmt: skip
        self._curve = curve
        ctx.out.append(PersistCurve(curve, job.name))
        return self._advance(ctx)

    # -- what comes next -----------------------------------------------------------------------------------------
    def _advance(self, ctx: Context) -> State:
        allowed = self._allowed(ctx)
        if self._search.start not in allowed and allowed:
            return self._move_start(min(allowed, key=lambda i: abs(i - self._search.start)), ctx)
        step = self._search.next(self._affordable(allowed), lambda: self._stakes(ctx))
        return self._settle(ctx) if step is None else self._read(step, ctx)

    def _allowed(self, ctx: Context) -> set[int]:
        allowed = set(range(min(len(self._clocks), ctx.watch.ceiling + 1)))
        if ctx.cap is not None:
            allowed &= self._log.within(ctx.cap.power_w, self._ceiling) or {0}
        limit = ctx.settings.search.slowdown_limit
        if limit is not None:
            fast = self._log.fast_enough(limit)
            if self._search.start not in self._log.readings:
                fast.add(self._search.start)  # a guess does not rule the tree's clock out, a reading does
            allowed = (allowed & fast) or {max(allowed)}
        return allowed

    def _affordable(self, allowed: set[int]) -> set[int]:
        """Only the start while less may be lost than a second of its power: a stay would end before it began."""
        start, log = self._search.start, self._log
        if start not in log.readings:
            return allowed
        watts = log.energy_j(start, self._power) / log.time_s(start)
        self._poor = self._budget.allowance_j <= watts
        return {start} if self._poor else allowed

    def _stakes(self, ctx: Context) -> Stakes:
        start, s, job = self._search.start, ctx.settings.search, self._job
        energy_j = self._log.energy_j(start, self._power)
        watts = energy_j / self._log.time_s(start)
        total = job.registered.samples_total
        if total is None:
            rest_j = watts * max(s.horizon_s, ctx.now_s - self._begun_s)
        else:
            rest_j = max(total - job.samples, 0) * energy_j
        return Stakes(rest_j, watts * (self._wanted_s(ctx) + ctx.settings.profile.settle_s), self._budget.allowance_j)

    def _wanted_s(self, ctx: Context) -> float:
        s = ctx.settings.search
        return min(max(s.window_s, self._noise.needed_s(s.standard_error)), s.window_most_s)

    def _settle(self, ctx: Context) -> State:
        search, self._step, self._window = self._search, None, None
        point = OperatingPoint(self._batch, self._clocks[search.incumbent])
        if search.blocked or self._poor:  # what may be lost grows with the job: go on when there is more of it
            self._again_s = ctx.now_s + _BLOCKED_S
        else:
            self._pause_s = max(2 * self._pause_s, ctx.settings.search.again_s)
            self._again_s = ctx.now_s + self._pause_s
        mean, sd = search.belief.difference(search.incumbent, search.start)
        text = f"{point}: best of {len(self._log.readings)} clocks after {search.probes} probes"
        if search.incumbent != search.start:
            text += f", {self._objective.value} {-100 * mean:.1f} ± {100 * sd:.1f} % below the tree's clock"
        self._go(search.incumbent, "train", text, ctx)
        ctx.say(self._job, "searched", text, point, probes=search.probes, readings=len(search.readings))
        return self

    def _held(self, event: Event, ctx: Context) -> State:
        """Between searches: where a sample is no longer what it was, nothing that was read holds any more."""
        if not ctx.settings.drift.enabled or (isinstance(event, StepsReported) and event.job != self._job.name):
            return self
        point = OperatingPoint(self._batch, self._clocks[self._at])
        if self._hold is None or self._hold.point != point:
            if self._at not in self._log.readings:
                return self
            time_s = self._log.time_s(self._at)
            known = [m.input_energy_j for m in self._log.readings[self._at] if m.input_energy_j is not None]
            self._hold = Hold(point, time_s, known[-1] / time_s if known else None, ctx)
        alarm = self._hold.see(event, ctx)
        if alarm is None:
            return self
        ctx.drift.alarms["point"] += 1
        ctx.say(self._job, "drift", f"{point}: {alarm.text_since}: readings begin anew", point)
        self._job.registered = replace(self._job.registered, remembered=())
        self._restart(ctx, self._clocks.index(self._choice.frequency_hz))
        return self._advance(ctx)

    def _look_again(self, ctx: Context) -> State:
        if self._search.blocked or self._poor:
            self._search.resume()
        else:
            self._search.again(_PROBES_AGAIN)
        return self._advance(ctx)

    def _retreat(self, ctx: Context) -> State:
        """The present stay has used up what may be lost: back to the tree's clock, and read that."""
        search, hz = self._search, self._clocks[self._at]
        text = f"{hz / 1e6:.0f} MHz has cost {self._budget.extra_j():.1f} J more than the tree's clock: back to that"
        ctx.say(self._job, "search-stopped", text, OperatingPoint(self._batch, hz))
        if self._step is not None and self._step.why == "probe":
            search.leave_out(self._at)
        search.incumbent = search.start
        self._attempt = 0
        return self._read(Step(search.start, "start"), ctx)

    def _tree_moved(self, frequency_hz: int, length: float, ctx: Context) -> State:
        point = OperatingPoint(self._batch, frequency_hz)
        ctx.say(self._job, "tree", f"{point}: the mean sequence length is {length:.3g} now", point)
        self._choice = replace(self._choice, frequency_hz=frequency_hz)
        self._restart(ctx, self._clocks.index(frequency_hz))
        return self._advance(ctx)

    def _move_start(self, start: int, ctx: Context) -> State:
        why = "the cap" if ctx.cap is not None else "the slowdown limit"
        if self._search.start > ctx.watch.ceiling:
            why = "over-current or a temperature"
        ctx.say(self._job, "search", f"{why} forbids the tree's clock: from {self._clocks[start] / 1e6:.0f} MHz")
        self._restart_from(start, ctx)
        return self._advance(ctx)

    def _restart_from(self, start: int, ctx: Context) -> None:
        """Another start for the same search: what was read stays known."""
        if start != self._search.start:
            log, readings, at = self._log, self._search.readings, self._at
            self._restart(ctx, start)
            self._log, self._search.readings, self._at = log, readings, at

    def _restart(self, ctx: Context, start: int) -> None:
        """A new search from clock index ``start``, for the job's present batch size."""
        self._clocks, self._batch = ctx.clocks, self._job.batch_size
        self._search = build(self._job, ctx.settings.search, ctx.clocks, start)
        self._log = Log(ctx.clocks, self._choice.reference_time_s)
        self._budget.back()
        self._at, self._settled_s = start, None
