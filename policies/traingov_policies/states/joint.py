"""The joint policy: profile by real training steps, then run at the point that table and relation vector give."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..actions import PersistLut
from ..context import Context, Job
from ..events import BatchFailed, CapChanged, Event
from ..explaining import detail
from ..following import Follower, Worth, repays
from ..lut import Cell, Lut
from ..plans import cautious
from ..plans.between import between, refreshed
from ..robust import Choice, Judged, choose
from ..select import Selection
from ..values import OperatingPoint
from ..wording import headline
from .base import Fallback, State
from .living import Living
from .planning import objective_of, plan_for
from .profiling import Profiling
from .revalidating import Revalidated, Revalidating
from .vigil import Doubt, Vigil, raised


def begin(job: Job, lut: Lut, ctx: Context) -> State:
    """Profiling while the plan asks for points, else the choice."""
    plan = plan_for(lut, ctx, job)
    return Joint(job, lut) if plan.next_point() is None else Profiling(job, plan, Joint)


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
        self._living = Living(job)
        self._between: tuple[Lut, Lut] | None = None
        self.selection: Selection | None = None

    def enter(self, ctx: Context) -> State:
        """Choose and advise; only what was measured, and where the cap moves, what lies between."""
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
        if ctx.pace.moves and (found := self._living.see(event, self._lut, ctx)) is not None:
            return self._learn(*found, ctx)
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
                return Profiling(job, plan_for(blank, ctx, job, prior=done.lut), Joint)
            job.lut = done.lut
            plan = plan_for(done.lut.unfinished() if done.reshaped else done.lut, ctx, job)
            return Joint(job, done.lut) if plan.next_point() is None else Profiling(job, plan, Joint)

        cautious_now = raised(self._cautious, doubt.live)
        return Revalidating(job, self._lut, cautious_now, doubt, ctx, best=best, again=again)

    def _choose(self, ctx: Context, batch_sizes: Sequence[int], lut: Lut | None = None) -> Choice:
        job, table = self._job, self._usable(self._lut if lut is None else lut, ctx)
        return choose(
            table, job.registered.relation, ctx.cap_w, objective_of(job, ctx), batch_sizes,
            violation_probability=ctx.settings.violation_probability, measured_only=not ctx.pace.moves,
        )  # fmt: skip

    def _usable(self, lut: Lut, ctx: Context) -> Lut:
        """``lut``; where the cap moves, with the predicted points that lie between measured ones and no others."""
        if not ctx.pace.moves:
            return lut
        if self._between is None or self._between[0] is not lut:
            self._between = lut, between(lut)
        return self._between[1]

    def _learn(self, point: OperatingPoint, cell: Cell, said: str, ctx: Context) -> State:
        """What was seen of ``point`` while training there goes into the table, and the choice is made anew."""
        job = self._job
        lut = refreshed(self._lut.with_cell(point, cell))
        job.lut = self._lut = lut
        self._cautious = cautious(lut)
        self._vigil.learned(lut, self._cautious)
        ctx.out.append(PersistLut(lut, job.name))
        ctx.say(job, "learned", f"{point}: {said}", point)
        return self._follow(ctx)

    def _take(self, choice: Choice, ctx: Context, batch_sizes: Sequence[int] | None = None, more: str = "") -> None:
        """Run at the chosen point of ``batch_sizes`` (default: all of the job's); ``more`` is said besides."""
        job, relation = self._job, self._job.registered.relation
        self.selection = choice.selection
        dropped = sorted(set(job.registered.batch_sizes) - set(job.batch_sizes))
        allowed = job.batch_sizes if batch_sizes is None else batch_sizes
        table = self._usable(self._lut, ctx)
        why = detail(choice, table, relation, batch_sizes=allowed, dropped=dropped, measured_only=not ctx.pace.moves)
        point, text = choice.selection.chosen.point, headline(why) + more
        ctx.condition("cap-infeasible", None if choice.selection.feasible else text)
        ctx.aim_guarded(point.gpu_frequency_hz, text, point.batch_size, trusted=True)
        ctx.advise(job, point.batch_size, "train", text)
        ctx.say(job, "joint", text, point, **why)
        self._vigil.settle(choice, text, ctx)
        self._living.at(point)

    def _follow(self, ctx: Context) -> State:
        """The cap changed: the best clock of the present batch size at once, and what else may be worth a change."""
        job = self._job
        follower = job.follower = job.follower or Follower(ctx.settings.following)
        table = self._lut.restricted(job.batch_sizes)
        kept = None if self.selection is None else self.selection.chosen.point.batch_size
        try:
            here = self._choose(ctx, [kept] if kept in job.batch_sizes else [])
            best = self._choose(ctx, job.batch_sizes).chosen
        except ValueError:
            here = None
        if here is None or not here.selection.feasible:  # the present batch size cannot stay below this cap
            follower.changed(ctx.now_s)
            plan = plan_for(table, ctx, job)
            return self.enter(ctx) if plan.next_point() is None else Profiling(job, plan, Joint)
        more = ""
        missing = plan_for(table, ctx, job, lasting=True).next_point() is not None
        follower.missing(ctx.now_s, missing)
        if missing:
            more = "; points that this cap allows are not measured yet"
        if best.point.batch_size == here.chosen.point.batch_size:
            follower.wish(ctx.now_s, None)
        else:
            worth = self._worth(here.chosen, best, ctx)
            follower.wish(ctx.now_s, best.point.batch_size if worth.pays or follower.wishes else None, worth)
            more += f"; {best.point} {worth.text}"
        if follower.due_s < math.inf:
            more += f"; looked at when that has held for {follower.due_s - ctx.now_s:.3g} s"
        self._take(here, ctx, [here.chosen.point.batch_size], more)
        return self

    def _reconsider(self, follower: Follower, ctx: Context) -> State:
        """What the cap calls for has held for a while: measure what is missing, or change the batch size if it pays."""
        job = self._job
        if ctx.now_s >= follower.look_s:
            plan = plan_for(self._lut.restricted(job.batch_sizes), ctx, job)
            if plan.next_point() is not None:
                follower.looked()
                return Profiling(job, plan, Joint)
            follower.looked(ctx.now_s + ctx.pace.held_s(ctx.now_s))  # it may be worth it for a cap that lasts longer
            if ctx.now_s < follower.due_s:
                return self
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
        return repays(here.score, best.score, *self._pace(here.point, ctx), ctx.settings.following)

    def _pace(self, point: OperatingPoint, ctx: Context) -> tuple[float | None, float | None]:
        """Seconds a step at ``point``, and seconds of training left there; None where unknown."""
        time_s, total = self._usable(self._lut, ctx).cell(point).time_s, self._job.registered.samples_total
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
