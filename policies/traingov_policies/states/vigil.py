"""While a job trains at its point: is the table still true there, and do other points still stand to it as they did?

Passive: every second of training is compared with the table (``drift.watch``), which costs nothing. Active: now and
then a short probe at a rival point, within the budget, since only a change of one point against another changes what
is best (``drift.rivals``). Probes keep the job's phase, so that both points are seen in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..actions import PersistLut
from ..context import Context, Job
from ..drift.offsets import MOST, offset_of, with_offset
from ..drift.rivals import Rivals
from ..drift.watch import Live, Watch
from ..events import Event, Sample, StepsReported
from ..lut import Lut
from ..plans.view import relative
from ..robust import Choice
from ..values import OperatingPoint
from .pointrun import PointRun, Reading

_BATCH_CHANGES_S = 1.0  # what going to another batch size and back costs besides
_LEAST_SD = 0.005
_LOOK_S = 1.0  # between two looks for a point to probe
_DEBT = 2.0  # probes that a suspicion may be ahead of the budget
_CALIBRATION_BLOCKS = 10  # seconds
_ALIKE = 0.03
_OVERLAP = 0.10  # so much faster may a job train than its points were measured
_CONFIRMED_BLOCKS = 60  # seconds after which a stored table is said to hold


@dataclass(frozen=True)
class Doubt:
    """The table is doubted: why, where (the present point first), and how the present point stands to it."""

    why: str
    points: tuple[OperatingPoint, ...]
    live: Live | None


class Vigil:
    """One for a table. A table without a date was measured just now: then training's own manner is noted in it."""

    def __init__(self, job: Job, lut: Lut, cautious: Lut) -> None:
        self._job, self.lut, self._cautious = job, lut, cautious
        self._fresh = not lut.measured_at
        self._choice: Choice | None = None
        self._home: tuple[OperatingPoint, str] | None = None
        self._watches: dict[OperatingPoint, Watch] = {}
        self._here: Watch | None = None
        self._at: OperatingPoint | None = None
        self._since_s = 0.0
        self._rivals: Rivals | None = None
        self._probe: PointRun | None = None
        self._probe_s = self._spent_s = 0.0
        self._begun_s: float | None = None
        self._next_s = 0.0
        self._unsaid = not self._fresh
        self._strange: set[OperatingPoint] = set()

    def settle(self, choice: Choice, why: str, ctx: Context) -> None:
        """A choice was made (``why``): a probe under way is given up; rivals are its rivals."""
        if self._probe is not None:
            self._spend(ctx)
        self._choice, self._home = choice, (choice.selection.chosen.point, why)
        if self._begun_s is None:
            self._begun_s = ctx.now_s
        if self._rivals is None:
            self._rivals = Rivals(ctx.settings.drift)

    def learned(self, lut: Lut, cautious: Lut) -> None:
        """The table knows more than before: a point that was predicted, or a higher power of one that was measured."""
        self.lut, self._cautious = lut, cautious

    @property
    def probing(self) -> OperatingPoint | None:
        """The point that is probed now."""
        return None if self._probe is None else self._probe.point

    def see(self, event: Event, ctx: Context) -> Doubt | None:
        """Any event of the job's training; the doubt, if it raises one."""
        if not ctx.settings.drift.enabled or self._home is None or ctx.now_s < ctx.drift.quiet_until_s:
            return None
        if self._probe is not None:
            reading = self._probe.handle(event, ctx)
            return None if reading is None else self._probed(self._probe.point, reading, ctx)
        if isinstance(event, Sample):
            if self._here is not None and not ctx.idling.told:
                self._here.sample(event)
            return None
        self._look(ctx)
        here = self._here
        if here is None:
            return None
        if isinstance(event, StepsReported) and event.job == self._job.name:
            alarm = here.steps(event)
            if offset_of(self.lut, here.point) is None and here.point not in self._strange:
                self._calibrate(here, ctx)
                return None
            if alarm is not None:
                ctx.drift.alarms["point"] += 1
                return Doubt(f"{here.point}: {alarm.text}", (here.point,), alarm.live)
            self._say_confirmed(here, ctx)
            self._maybe_probe(here, ctx)
        return None

    # -- passive -------------------------------------------------------------------------------------------------
    def _look(self, ctx: Context) -> None:
        """Which point runs now, and since when; its watch, once clock and sensor have settled."""
        at = self._point_now(ctx)
        if at != self._at:
            self._at, self._since_s = at, ctx.now_s
        here = None
        if at is not None and ctx.now_s >= self._since_s + ctx.settings.profile.settle_s:
            here = self._watches.get(at) or self._new_watch(at, ctx)
        if self._here is not None and here is not self._here:
            self._here.pause()
        self._here = here

    def _point_now(self, ctx: Context) -> OperatingPoint | None:
        asked, actual = ctx.requested, ctx.actual
        if asked is None or asked[0] != asked[1] or actual is None or actual.max_hz != asked[1]:
            return None
        if ctx.unmeasurable or ctx.idling.stalled or "clock-not-following" in ctx.conditions:
            return None
        return OperatingPoint(self._job.batch_size, asked[1])

    def _new_watch(self, at: OperatingPoint, ctx: Context) -> Watch | None:
        try:
            cell = self.lut.cell(at)
        except KeyError:
            return None
        if cell.origin == "predicted" or not cell.time_s:
            return None
        watch = Watch(
            at,
            cell,
            self.lut.samples,
            ctx.settings.drift,
            clock_tolerance=ctx.settings.profile.clock_tolerance,
            offset=offset_of(self.lut, at) or (0.0, 0.0),
        )
        self._watches[at] = watch
        return watch

    def _calibrate(self, here: Watch, ctx: Context) -> None:
        """What training differs by from a new table is no drift. Kept with the table for later jobs.

        Of a stored table that no job has trained by, the same is taken where it looks like what overlap does: a little
        faster, at about the same power.
        """
        live = here.live()
        if live is None or here.blocks < _CALIBRATION_BLOCKS:
            return
        time, power = live.time, live.power or 0.0
        usual = max(abs(time), abs(power)) <= MOST
        if not self._fresh:
            usual = -_OVERLAP <= time <= _ALIKE and abs(power) <= _ALIKE
        if not usual:
            self._strange.add(here.point)
            return
        here.calibrate(time, power)
        self._job.lut = self.lut = with_offset(self.lut, here.point, time, power)
        ctx.out.append(PersistLut(self.lut, self._job.name))

    def _say_confirmed(self, here: Watch, ctx: Context) -> None:
        """A table from the store was checked at its point without any cost: say so once."""
        if not self._unsaid or here.blocks < _CONFIRMED_BLOCKS or (live := here.live()) is None:
            return
        self._unsaid = False
        power = "" if live.power is None else f", power {100 * math.expm1(live.power):+.1f} %"
        when = f"table of {self.lut.measured_at}" if self.lut.measured_at else "stored table"
        text = f"{here.point}: the {when} holds: time {100 * math.expm1(live.time):+.1f} %{power}"
        ctx.say(self._job, "table-confirmed", text, here.point, conditions=dict(self.lut.conditions))

    # -- active --------------------------------------------------------------------------------------------------
    def _maybe_probe(self, here: Watch, ctx: Context) -> None:
        settings, choice = ctx.settings.drift, self._choice
        assert self._home is not None
        assert self._rivals is not None
        assert self._begun_s is not None
        if settings.probe_budget <= 0 or choice is None or here.point != self._home[0]:
            return
        follower = self._job.follower
        if ctx.idling.quiet or not choice.selection.feasible or (follower is not None and follower.due_s < math.inf):
            return
        least_s = ctx.settings.profile.settle_s + ctx.settings.profile.min_window_s
        debt_s = _DEBT * least_s if self._rivals.suspect() else 0.0
        earned_s = settings.probe_budget * (ctx.now_s - self._begun_s) + debt_s
        if ctx.now_s < self._next_s or self._spent_s + least_s > earned_s or (live := here.live()) is None:
            return
        self._next_s = ctx.now_s + _LOOK_S
        if ctx.cap is not None and ctx.guard.limit < ctx.index_at_most(here.point.gpu_frequency_hz):
            return
        points = [j.point for j in choice.ranked if j.origin != "predicted"]
        safe = [p for p in points if self._cost_s(p, ctx) <= settings.probe_most_s and self._safe(p, live, ctx)]
        point = self._rivals.next(choice.ranked, choice.chosen, safe, ctx.now_s, self._begun_s)
        if point is None or self._spent_s + self._cost_s(point, ctx) > earned_s:
            return
        here.pause()
        self._here, self._at = None, None
        self._probe_s = ctx.now_s
        ctx.drift.probes += 1
        self._probe = PointRun(self._job, point, self.lut.samples, ctx, why=f"probing {point}", phase="train")

    def _cost_s(self, point: OperatingPoint, ctx: Context) -> float:
        """Seconds that a probe of ``point`` is expected to last."""
        cell, profile = self.lut.cell(point), ctx.settings.profile
        if not cell.time_s:
            return math.inf
        step_s = cell.time_s * point.batch_size / self.lut.samples
        lasts = profile.settle_s + 0.5 * step_s + max(profile.min_window_s, profile.min_steps * step_s)
        return lasts + (_BATCH_CHANGES_S if point.batch_size != self._job.batch_size else 0.0)

    def _safe(self, point: OperatingPoint, live: Live, ctx: Context) -> bool:
        """Whether the point, with power as it is now, is expected to stay below the cap and the board's own limits."""
        if ctx.index_at_most(point.gpu_frequency_hz) > ctx.watch.ceiling:
            return False
        if ctx.cap_w is None:
            return True
        peak_w = self._cautious.cell(point).peak_power_w
        return peak_w is not None and peak_w * math.exp(max(0.0, live.power or 0.0)) * 1.02 < ctx.cap_w

    def _spend(self, ctx: Context) -> None:
        lasted_s = ctx.now_s - self._probe_s
        self._spent_s += lasted_s
        ctx.drift.probe_s += lasted_s
        self._probe = None

    def _probed(self, point: OperatingPoint, reading: Reading, ctx: Context) -> Doubt | None:
        """Back to the chosen point, with what was seen at the other."""
        assert self._home is not None
        assert self._rivals is not None
        self._spend(ctx)
        home, why = self._home
        ctx.aim_guarded(home.gpu_frequency_hz, why, home.batch_size, trusted=True)
        ctx.advise(self._job, home.batch_size, "train", why)
        live = self._watches[home].live()
        cell = reading.cell
        if cell is None or cell.time_s is None or cell.peak_power_w is None or live is None:
            self._rivals.failed(point, ctx.now_s)
            return None
        there, here = self.lut.cell(point), self.lut.cell(home)
        assert there.time_s is not None
        time = math.log(cell.time_s / there.time_s) - live.time
        own = (relative(cell.time_std_s, cell.time_s), relative(there.time_std_s, there.time_s))
        time_sd = math.hypot(_LEAST_SD, *own, relative(here.time_std_s, here.time_s), live.time_sd)
        power, power_sd = None, 1.0
        if live.power is not None and live.power_sd is not None and cell.mean_power_w and there.mean_power_w:
            power = math.log(cell.mean_power_w / there.mean_power_w) - live.power
            sds = [relative(c.power_std_w, c.peak_power_w) for c in (cell, there, here)]
            power_sd = math.hypot(_LEAST_SD, *sds, live.power_sd)
        if not self._rivals.tell(point, ctx.now_s, time, time_sd, power=power, power_sd=power_sd):
            return None
        ctx.drift.alarms["probe"] += 1
        said = "" if power is None else f", power {100 * math.expm1(power):+.1f} %"
        text = f"{point} against {home} is no longer as in the table: time {100 * math.expm1(time):+.1f} %{said}"
        return Doubt(text, (home, point), live)


def raised(cautious: Lut, live: Live | None) -> Lut:
    """``cautious`` with its powers raised by what power is above the table now: for looking up what is safe."""
    if live is None or live.power is None or live.power <= 0:
        return cautious
    by = math.exp(live.power)
    peaks = tuple(tuple(None if p is None else p * by for p in row) for row in cautious.peak_power_w)
    return replace(cautious, peak_power_w=peaks)
