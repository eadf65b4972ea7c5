"""The table is in doubt: a few points are measured again, the rest follows, and the new table takes its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..actions import PersistLut
from ..context import Context, Job
from ..drift.offsets import with_offset
from ..drift.partial import CONFIRMED, FAILED, PARTIAL, Outcome, PartialPlan
from ..events import BatchFailed, CapChanged, Event
from ..lut import Lut
from ..values import OperatingPoint
from .base import State
from .pointrun import PointRun, Reading
from .vigil import Doubt

GIVEN_UP = "given-up"


@dataclass(frozen=True)
class Revalidated:
    """How it ended: the table from now on; ``reprofile``: measure everything anew, with it as prior knowledge;
    ``reshaped``: points changed against one another, so that others than before may be worth a measurement."""

    lut: Lut
    reprofile: bool = False
    reshaped: bool = False


class Revalidating(State):
    """Measures the points that ``PartialPlan`` names. Exits: what ``again`` makes of ``Revalidated``.

    While what is seen says nothing of a point (throttling, a pause, another writer) it waits at the present one, at
    most ``drift.wait_most_s``. The guard is in charge all the time.
    """

    name = "revalidating"
    guarded = True

    def __init__(
        self,
        job: Job,
        lut: Lut,
        cautious: Lut,
        doubt: Doubt,
        ctx: Context,
        *,
        best: Callable[[Lut], OperatingPoint | None],
        again: Callable[[Revalidated], State],
    ) -> None:
        self._job, self._lut, self._cautious = job, lut, cautious
        self._doubt, self._again = doubt, again
        self._plan = PartialPlan(lut, ctx.cap_w, doubt.points, ctx.settings.drift, best)
        self._run: PointRun | None = None
        self._attempt = 0
        self._waiting_s: float | None = None

    def enter(self, ctx: Context) -> State:
        """Say why, and measure the first point."""
        ctx.condition("drift", f"the table is in doubt: {self._doubt.why}")
        ctx.say(self._job, "drift", f"{self._doubt.why}: at most {self._plan.most} points are measured again")
        return self._next(ctx)

    def describe(self) -> str:
        """What is measured."""
        what = "waiting" if self._run is None else str(self._run.point)
        return f"revalidating: {what}, {self._plan.measured} of at most {self._plan.most} measured"

    def safe_table(self) -> Lut | None:
        """The table, with the power that is known to have risen."""
        return self._cautious

    def handle(self, event: Event, ctx: Context) -> State:
        """One point after another."""
        if isinstance(event, CapChanged):
            self._plan.set_cap(ctx.cap_w)
            # A point that is allowed still is measured on: steps may be longer than a cap holds.
            if self._run is not None and self._plan.allows(self._run.point) and self._run.goes_on(ctx):
                return self
            return self._next(ctx)
        if isinstance(event, BatchFailed) and event.job == self._job.name:
            self._plan.drop_batch(event.batch_size)
            return self._next(ctx)
        if self._run is None:
            return self._waited(ctx)
        reading = self._run.handle(event, ctx)
        return self if reading is None else self._judge(self._run.point, reading, ctx)

    def _next(self, ctx: Context) -> State:
        point = self._plan.next_point()
        if point is None:
            return self._finish(self._plan.outcome(), ctx)
        self._attempt = 0
        self._go(point, ctx)
        return self

    def _go(self, point: OperatingPoint, ctx: Context) -> None:
        self._run = PointRun(self._job, point, self._lut.samples, ctx, why=f"measuring {point} again", phase="profile")

    def _judge(self, point: OperatingPoint, reading: Reading, ctx: Context) -> State:
        if reading.passing:
            self._run = None
            if self._waiting_s is None:
                self._waiting_s = ctx.now_s
            return self
        self._waiting_s = None
        if reading.cell is not None:
            self._plan.tell(point, reading.cell)
            cell = reading.cell
            text = f"{point}: {cell.time_s:.2f} s, peak {cell.peak_power_w:.2f} W, mean {cell.mean_power_w:.2f} W"
            ctx.say(self._job, "measured", text, point)
            return self._next(ctx)
        ctx.say(self._job, "measurement-invalid", f"{point}: {reading.invalid}", point)
        self._attempt += 1
        if self._attempt < ctx.settings.profile.attempts and reading.above_w is None:
            ctx.rewrite()
            self._go(point, ctx)
            return self
        self._plan.leave_out(point, reading.above_w)
        return self._next(ctx)

    def _waited(self, ctx: Context) -> State:
        """Until what is seen is the job at the clock asked for; not for ever."""
        if ctx.unmeasurable or ctx.idling.stalled:
            since_s = ctx.now_s if self._waiting_s is None else self._waiting_s
            if ctx.now_s - since_s > ctx.settings.drift.wait_most_s:
                text = f"nothing could be measured for {ctx.settings.drift.wait_most_s:g} s"
                return self._end(GIVEN_UP, self._lut, text, ctx)
            return self
        return self._next(ctx)

    def _finish(self, outcome: Outcome, ctx: Context) -> State:
        counts, now = ctx.drift, ctx.now_s
        if outcome.result == FAILED:
            counts.revalidations[FAILED] += 1
            last = counts.reprofiled_s
            if last is not None and now - last < ctx.settings.drift.again_s:
                text = f"{outcome.text}; everything was measured anew {now - last:.0f} s ago: the table is kept"
                ctx.say(self._job, "revalidated", text)
                return self._end(GIVEN_UP, self._lut, text, ctx)
            counts.reprofiles += 1
            counts.reprofiled_s = now
            ctx.condition("drift", None)
            ctx.say(self._job, "revalidated", f"{outcome.text}: everything is measured anew", result=FAILED)
            return self._again(Revalidated(self._lut, reprofile=True))
        return self._end(outcome.result, outcome.lut, outcome.text, ctx)

    def _end(self, result: str, lut: Lut, text: str, ctx: Context) -> State:
        ctx.drift.revalidations[result] += 1
        ctx.condition("drift", None)
        ctx.say(self._job, "revalidated", text, result=result, points=self._plan.measured)
        if result == GIVEN_UP:
            ctx.drift.quiet_until_s = ctx.now_s + ctx.settings.drift.again_s
            return self._again(Revalidated(lut))
        lut = self._noted(lut)
        if result != CONFIRMED:
            ctx.out.append(PersistLut(lut, self._job.name, replaces=self._doubt.why))
        elif lut is not self._lut:
            ctx.out.append(PersistLut(lut, self._job.name))
        return self._again(Revalidated(lut, reshaped=result == PARTIAL))

    def _noted(self, lut: Lut) -> Lut:
        """``lut`` with what training at the present point differs by from measuring it: a manner of the job."""
        point, live = self._doubt.points[0], self._doubt.live
        found = self._plan.of(point)
        if live is None or found is None:
            return lut
        return with_offset(lut, point, live.time - found.time, 0.0 if live.power is None else live.power - found.mean)
