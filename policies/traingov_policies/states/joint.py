"""The joint policy: profile by real training steps, then run at the point that table and relation vector give."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..actions import PersistLut
from ..context import Context, Job
from ..events import BatchApplied, BatchFailed, BoardFound, CapChanged, Event, KnobReadBack, Sample, StepsReported
from ..explaining import detail
from ..following import Follower, Worth, repays
from ..lut import Cell, Lut
from ..measure import PointMeter, Verdict
from ..plans import AdaptivePlan, AdaptiveSettings, FullPlan, Plan, StaircasePlan, cautious
from ..robust import Choice, Judged, choose
from ..select import Selection
from ..values import Cap, Objective, OperatingPoint
from ..wording import headline
from .base import Fallback, State
from .revalidating import Revalidated, Revalidating
from .vigil import Doubt, Vigil, raised

_STALLS_MOST = 3  # times that a point is begun anew since steps stalled; then stalls are how this job trains


class Profiling(State):
    """Measures the plan's points with real training steps, one after another."""

    name = "profiling"
    give_up_after = 3

    def __init__(self, job: Job, plan: Plan) -> None:
        self._job, self._plan = job, plan
        self._point: OperatingPoint | None = None
        self._meter: PointMeter | None = None
        self._attempt = 0
        self._failed_in_row = 0
        self._deadline_s = 0.0
        self._batch_ready = False
        self._measured = 0
        self._cautious: tuple[Lut, Lut] | None = None
        self._settled = False
        self._stalls = 0
        self._asked: Cap | None = None  # the cap under which the point was asked for

    def enter(self, ctx: Context) -> State:
        """Ask the plan for its first point."""
        ctx.say(self._job, "profile", f"profiling: at most {self._plan.at_most()} points")
        return self._next(ctx)

    def describe(self) -> str:
        """The point being measured."""
        return f"profiling {self._point}, {self._measured} measured, at most {self._plan.at_most()} to go"

    def safe_table(self) -> Lut | None:
        """What was measured so far; predicted powers with their uncertainty added."""
        lut = self._plan.lut
        if self._cautious is None or self._cautious[0] is not lut:
            self._cautious = lut, cautious(lut)
        return self._cautious[1]

    def handle(self, event: Event, ctx: Context) -> State:
        """Apply, settle, measure; every wait is bounded."""
        job = self._job
        if isinstance(event, CapChanged):
            return self._capped(ctx)
        if isinstance(event, BatchFailed) and event.job == job.name:
            return self._drop(event.batch_size, ctx, f"batch {event.batch_size} does not fit: {event.reason}")
        if isinstance(event, (BatchApplied, StepsReported)) and event.job == job.name:
            self._batch_ready = self._point is not None and event.batch_size == self._point.batch_size
        if self._point is not None and ctx.index_at_most(self._point.gpu_frequency_hz) > ctx.watch.ceiling:
            return self._too_high(self._point, ctx)
        if ctx.watch.disturbed_for_s(ctx.now_s) > ctx.settings.apply_timeout_s:
            text = f"the board has throttled itself for {ctx.settings.apply_timeout_s:g} s: nothing can be measured"
            return Fallback(job, text, self.safe_table())
        if ctx.unmeasurable:
            self._meter = None  # begin this point anew when readings are back, or the job is, or the clock is ours
            self._settled = False
            self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
            return self
        if ctx.idling.stalled and self._stalls < _STALLS_MOST and (self._meter is None or self._meter.begun):
            self._stalls += self._meter is not None
            self._meter = None  # what is drawn meanwhile may be an evaluation's, or an idle board's
            self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
            return self
        if self._meter is None:
            return self._applying(event, ctx)
        if isinstance(event, Sample):
            if not ctx.idling.told:
                self._meter.sample(event)
        elif isinstance(event, StepsReported) and event.job == job.name:
            self._meter.steps(event)
        elif isinstance(event, KnobReadBack):
            return self  # the end of an earlier write, or a look: the meter checks the clock itself
        point = self._meter.point
        late = job.activity.overdue(ctx.now_s, point.batch_size, point.gpu_frequency_hz)
        if late and self._meter.begun and self._stalls < _STALLS_MOST and not self._meter.surely_above():
            return self
        verdict = self._meter.verdict(ctx.now_s)
        return self if verdict is None else self._judge(verdict, ctx)

    def leave(self, event: Event, ctx: Context) -> None:
        """What was measured so far is gone on with: after a second job's end, under another policy."""
        if not isinstance(event, BoardFound):  # what was measured belongs to the board as it was
            self._job.lut = self._plan.lut

    def _capped(self, ctx: Context) -> State:
        """Another cap is another plan. A point that is allowed still is measured on: flickering must not starve it."""
        plan, asked, cap = plan_for(self._plan.lut, ctx, self._job), self._asked, ctx.cap
        same = asked is not None and cap is not None and cap.window_s == asked.window_s
        looser = cap is None or (same and asked is not None and cap.power_w >= asked.power_w)
        if self._point is None or not looser:
            return Profiling(self._job, plan)
        self._plan = plan
        return self

    def _next(self, ctx: Context) -> State:
        point = self._plan.next_point()
        if point is None:
            return self._finish(ctx)
        settled = point == self._point  # measured on: nothing changes, nothing has to settle
        self._point, self._attempt, self._stalls = point, 0, 0
        self._apply(ctx, settled=settled)
        return self

    def _apply(self, ctx: Context, *, settled: bool = False) -> None:
        assert self._point is not None
        self._settled = settled
        self._meter, self._asked = None, ctx.cap
        self._batch_ready = self._job.batch_size == self._point.batch_size
        self._deadline_s = ctx.now_s + ctx.settings.apply_timeout_s
        ctx.aim(self._point.gpu_frequency_hz, f"measuring {self._point}", self._point.batch_size)
        ctx.advise(self._job, self._point.batch_size, "profile", f"measuring {self._point}")

    def _applying(self, event: Event, ctx: Context) -> State:
        assert self._point is not None
        if ctx.actual is not None and ctx.actual.error is not None:
            return self._judge(Verdict(None, ctx.actual.error), ctx)
        wanted_hz = self._point.gpu_frequency_hz
        if self._batch_ready and ctx.actual is not None and ctx.actual.requested_max_hz == wanted_hz:
            set_hz = ctx.actual.max_hz
            if set_hz is not None and set_hz != wanted_hz:
                return self._judge(Verdict(None, f"the kernel set {set_hz / 1e6:g} MHz instead"), ctx)
            settings = ctx.settings.profile
            window_s = 1.0 if ctx.cap is None else ctx.cap.window_s
            begin_s = ctx.now_s + (0.0 if self._settled else settings.settle_s)
            earliest_s = ctx.now_s + settings.settle_seen_s
            self._meter = PointMeter(self._point, begin_s, settings, ctx.cap_w, window_s, earliest_s=earliest_s)
            return self
        if ctx.now_s > self._deadline_s:
            if not self._batch_ready:
                text = f"the job did not follow to batch {self._point.batch_size} in {ctx.settings.apply_timeout_s:g} s"
                return self._drop(self._point.batch_size, ctx, text)
            return self._judge(Verdict(None, "the clock write was not answered"), ctx)
        return self

    def _judge(self, verdict: Verdict, ctx: Context) -> State:
        assert self._point is not None
        if verdict.invalid is not None:
            self._attempt += 1
            ctx.say(self._job, "measurement-invalid", f"{self._point}: {verdict.invalid}", self._point)
            if self._attempt < ctx.settings.profile.attempts:
                ctx.rewrite()  # the clock is not what was asked for
                self._apply(ctx)
                return self
            self._failed_in_row += verdict.cell is None
            if self._failed_in_row >= self.give_up_after:
                text = f"{self._failed_in_row} points in a row cannot be measured: {verdict.invalid}"
                return Fallback(self._job, text, self.safe_table())
        if verdict.cell is not None:
            self._failed_in_row = 0
        cell = verdict.cell or Cell(None, None, None, "failed")
        self._measured += 1
        self._plan.tell(self._point, cell)
        ctx.out.append(
            PersistLut(self._plan.lut, self._job.name)
        )  # a table cut short by a crash is gone on with, not lost
        ctx.say(self._job, "measured", _measured_text(self._point, cell), self._point)
        return self._next(ctx)

    def _too_high(self, point: OperatingPoint, ctx: Context) -> State:
        """Over-current or a temperature forbids the clock: no measurement, and not this job's to repeat."""
        self._plan.tell(point, Cell(None, None, None, "failed"))
        ctx.say(self._job, "measured", f"{point}: left out, {ctx.watch.why()}", point)
        return self._next(ctx)

    def _drop(self, batch_size: int, ctx: Context, why: str) -> State:
        ctx.say(self._job, "batch-dropped", why)
        if batch_size in self._job.batch_sizes:
            self._job.batch_sizes.remove(batch_size)
        if batch_size not in self._plan.lut.batch_sizes:
            return self
        try:
            self._plan.drop_batch(batch_size)
        except ValueError:
            return Fallback(self._job, f"no batch size is left: {why}", None)
        return self._next(ctx)

    def _finish(self, ctx: Context) -> State:
        lut = self._plan.lut
        if self._measured:
            ctx.out.append(PersistLut(lut, self._job.name))  # with the mark that the plan came to its end
            ctx.say(self._job, "profiled", f"{self._measured} points measured")
        self._job.lut = lut
        return Joint(self._job, lut)


class Joint(State):
    """Runs at the point that the table and the relation vector give, corrected by the guard.

    A changed cap is followed with the clock at once, with the batch size when that pays (``following``).
    """

    name = "joint"
    guarded = True

    def __init__(self, job: Job, lut: Lut) -> None:
        self._job, self._lut = job, lut
        self._cautious = cautious(lut)
        self._vigil = Vigil(job, lut, self._cautious)
        self.selection: Selection | None = None

    def enter(self, ctx: Context) -> State:
        """Choose and advise; what a model predicted is never chosen unmeasured."""
        try:
            choice = self._choose(ctx, self._job.batch_sizes)
        except ValueError as error:
            return Fallback(self._job, str(error), self._cautious)
        self._take(choice, ctx)
        return self

    def handle(self, event: Event, ctx: Context) -> State:
        """A new cap or a batch that does not fit is a new choice."""
        job = self._job
        if isinstance(event, CapChanged):
            return self._follow(ctx)
        if isinstance(event, BatchFailed) and event.job == job.name:
            ctx.say(job, "batch-dropped", f"batch {event.batch_size} does not fit: {event.reason}")
            if not job.batch_sizes:
                return Fallback(job, f"no batch size is left: {event.reason}", None)
            return self.enter(ctx)
        doubt, self._lut = self._vigil.see(event, ctx), self._vigil.lut
        if doubt is not None:
            return self._revalidate(doubt, ctx)
        if job.follower is not None and ctx.now_s >= job.follower.due_s:
            return self._reconsider(job.follower, ctx)
        return self

    def _revalidate(self, doubt: Doubt, ctx: Context) -> State:
        """The table no longer holds, it seems: a few points again, or, if that does not explain it, all of them."""
        job = self._job

        def best(lut: Lut) -> OperatingPoint | None:
            try:
                return self._choose(ctx, job.batch_sizes, lut).selection.chosen.point
            except ValueError:
                return None

        def again(done: Revalidated) -> State:
            if done.reprofile:
                blank = done.lut.blank()
                ctx.out.append(PersistLut(blank, job.name, replaces=doubt.why))
                return Profiling(job, plan_for(blank, ctx, job, prior=done.lut))
            job.lut = done.lut
            plan = plan_for(done.lut.unfinished() if done.reshaped else done.lut, ctx, job)
            return Joint(job, done.lut) if plan.next_point() is None else Profiling(job, plan)

        cautious_now = raised(self._cautious, doubt.live)
        return Revalidating(job, self._lut, cautious_now, doubt, ctx, best=best, again=again)

    def _choose(self, ctx: Context, batch_sizes: Sequence[int], lut: Lut | None = None) -> Choice:
        job, table = self._job, self._lut if lut is None else lut
        return choose(
            table, job.registered.relation, ctx.cap_w, objective_of(job, ctx), batch_sizes,
            violation_probability=ctx.settings.violation_probability, measured_only=True,
        )  # fmt: skip

    def _take(self, choice: Choice, ctx: Context, batch_sizes: Sequence[int] | None = None, more: str = "") -> None:
        """Run at the chosen point of ``batch_sizes`` (default: all of the job's); ``more`` is said besides."""
        job, relation = self._job, self._job.registered.relation
        self.selection = choice.selection
        dropped = sorted(set(job.registered.batch_sizes) - set(job.batch_sizes))
        allowed = job.batch_sizes if batch_sizes is None else batch_sizes
        why = detail(choice, self._lut, relation, batch_sizes=allowed, dropped=dropped, measured_only=True)
        point, text = choice.selection.chosen.point, headline(why) + more
        ctx.condition("cap-infeasible", None if choice.selection.feasible else text)
        ctx.aim_guarded(point.gpu_frequency_hz, text, point.batch_size, trusted=True)
        ctx.advise(job, point.batch_size, "train", text)
        ctx.say(job, "joint", text, point, **why)
        self._vigil.settle(choice, text, ctx)

    def _follow(self, ctx: Context) -> State:
        """The cap changed: the best clock of the present batch size at once, and what else may be worth a change."""
        job = self._job
        follower = job.follower = job.follower or Follower(ctx.settings.following)
        plan = plan_for(self._lut.restricted(job.batch_sizes), ctx, job)
        missing = plan.next_point() is not None
        kept = None if self.selection is None else self.selection.chosen.point.batch_size
        try:
            here = self._choose(ctx, [kept] if kept in job.batch_sizes else [])
            best = self._choose(ctx, job.batch_sizes).chosen
        except ValueError:
            here = None
        if here is None or not here.selection.feasible:  # the present batch size cannot stay below this cap
            follower.changed(ctx.now_s)
            return Profiling(job, plan) if missing else self.enter(ctx)
        more, worth = "", None
        if missing:
            follower.wish(ctx.now_s, "measure")
            more = "; points that this cap allows are not measured yet"
        elif best.point.batch_size == here.chosen.point.batch_size:
            follower.wish(ctx.now_s, None)
        else:
            worth = self._worth(here.chosen, best, ctx)
            follower.wish(ctx.now_s, best.point.batch_size if worth.pays else None, worth)
            more = f"; {best.point} {worth.text}"
        if follower.due_s < math.inf:
            more += f"; looked at when that has held for {follower.due_s - ctx.now_s:.3g} s"
        self._take(here, ctx, [here.chosen.point.batch_size], more)
        return self

    def _reconsider(self, follower: Follower, ctx: Context) -> State:
        """What the cap calls for has held for a while: measure what is missing, or change the batch size if it pays."""
        job = self._job
        plan = plan_for(self._lut.restricted(job.batch_sizes), ctx, job)
        if plan.next_point() is not None:
            follower.granted()
            return Profiling(job, plan)
        follower.answered()
        choice = self._choose(ctx, job.batch_sizes)
        here = None if self.selection is None else choice.of(self.selection.chosen.point)
        best = choice.chosen
        if here is None or here.point.batch_size == best.point.batch_size:
            return self.enter(ctx)
        worth = self._worth(here, best, ctx)
        if worth.pays:
            follower.changed(ctx.now_s, worth)
            self._take(choice, ctx, more=f"; the change from batch {here.point.batch_size} {worth.text}")
        else:
            ctx.say(job, "batch-kept", f"batch {here.point.batch_size} is kept: {best.point} {worth.text}", here.point)
        return self

    def _worth(self, here: Judged, best: Judged, ctx: Context) -> Worth:
        return repays(here.score, best.score, *self._pace(here.point), ctx.settings.following)

    def _pace(self, point: OperatingPoint) -> tuple[float | None, float | None]:
        """Seconds a step at ``point``, and seconds of training left there; None where unknown."""
        time_s, total = self._lut.cell(point).time_s, self._job.registered.samples_total
        if time_s is None:
            return None, None
        sample_s = time_s / self._lut.samples
        return sample_s * point.batch_size, None if total is None else max(0, total - self._job.samples) * sample_s

    def describe(self) -> str:
        """The chosen point."""
        return "joint" if self.selection is None else f"joint: {self.selection.chosen.point}"

    def safe_table(self) -> Lut | None:
        """The job's table; predicted powers with their uncertainty added."""
        return self._cautious


def objective_of(job: Job, ctx: Context) -> Objective:
    """What this job's choice minimises: its own wish, else the configuration's."""
    return job.registered.objective or ctx.objective


def plan_for(lut: Lut, ctx: Context, job: Job, prior: Lut | None = None) -> Plan:
    """The plan that the configuration names. The staircase answers for time only: other objectives get every point.

    ``prior``: what to start from in place of the job's own.
    """
    objective, profile = objective_of(job, ctx), ctx.settings.profile
    if profile.plan == "adaptive":
        settings = AdaptiveSettings(
            max_points=profile.max_points,
            violation_probability=ctx.settings.violation_probability,
            switch_s=min(profile.settle_s, profile.settle_seen_s + 0.2),
            window_s=profile.min_window_s,
        )
        return AdaptivePlan(
            lut, ctx.cap_w, job.registered.relation, objective,
            prior=job.registered.prior if prior is None else prior, settings=settings,
        )  # fmt: skip
    if profile.plan == "staircase" and objective is Objective.TIME:
        return StaircasePlan(lut, ctx.cap_w)
    return FullPlan(lut)


def _measured_text(point: OperatingPoint, cell: Cell) -> str:
    if cell.time_s is None:
        return f"{point}: {cell.origin}" + ("" if cell.peak_power_w is None else f", {cell.peak_power_w:.2f} W")
    return f"{point}: {cell.time_s:.2f} s, peak {cell.peak_power_w:.2f} W, mean {cell.mean_power_w:.2f} W"
