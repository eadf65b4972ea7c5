"""The states that only hold: nothing, a fixed clock, or the cap."""

from __future__ import annotations

from typing import ClassVar

from ..context import Context, Job
from ..events import CapChanged, Event
from ..lut import Lut
from ..select import below_cap
from ..values import OperatingPoint


class State:
    """Handles one event and returns the state to be in.

    ``guarded`` states let the cap guard correct the clock; where ``writes`` is False the knob is left alone.
    """

    name: ClassVar[str]
    guarded: ClassVar[bool] = False
    writes: ClassVar[bool] = True

    def enter(self, ctx: Context) -> State:
        """Begin; may name another state at once."""
        return self

    def handle(self, event: Event, ctx: Context) -> State:
        """React to ``event``."""
        return self

    def leave(self, event: Event, ctx: Context) -> None:
        """``event`` (a job came or went, another policy) ends this state; a new beginning follows."""

    def describe(self) -> str:
        """One line for ``traingov status``."""
        return self.name

    def safe_table(self) -> Lut | None:
        """The table to look a safe clock up in when telemetry is missing."""
        return None


class Idle(State):
    """No job: the knob is as it was found."""

    name = "idle"

    def enter(self, ctx: Context) -> State:
        """Give everything back."""
        ctx.aim(None, "no job is registered")
        ctx.stale = False
        ctx.idle_since_s = ctx.now_s
        for name in list(ctx.conditions):
            ctx.condition(name, None)
        return self


class Observing(State):
    """Decides nothing that is carried out: ``why`` is the policy, or what keeps the governor from governing."""

    name = "observing"
    writes = False

    def __init__(self, job: Job, why: str, would: str | None = None) -> None:
        self._job, self._why, self._would = job, why, would

    def enter(self, ctx: Context) -> State:
        """Say what would be chosen, and leave the knob alone."""
        ctx.aim(None, self._why)
        ctx.advise(self._job, self._job.batch_size, "hold", self._why)
        ctx.say(self._job, "observe", self._why if self._would is None else f"{self._why}: {self._would}")
        return self

    def describe(self) -> str:
        """Why nothing is written."""
        return f"observing: {self._why}"


class Holding(State):
    """A fixed clock, corrected by the guard only; the job keeps its batch size."""

    name = "holding"
    guarded = True

    def __init__(self, job: Job, frequency_hz: int, why: str, kind: str) -> None:
        self._job, self._frequency_hz, self._why, self._kind = job, frequency_hz, why, kind

    def enter(self, ctx: Context) -> State:
        """Pin the clock."""
        point = OperatingPoint(self._job.batch_size, self._frequency_hz)
        ctx.aim_guarded(self._frequency_hz, self._why)
        ctx.advise(self._job, self._job.batch_size, "train", self._why)
        ctx.say(self._job, self._kind, f"{point}: {self._why}", point)
        return self

    def describe(self) -> str:
        """The clock that is held."""
        return f"holding {self._frequency_hz / 1e6:.0f} MHz: {self._why}"


class Fallback(State):
    """The policy cannot govern the job, for the reason ``why``; the cap holds all the same.

    With a cap the guard is in charge, beginning at a clock that ``table`` shows safe for the job's batch size (else at
    the lowest) and climbing as far as the cap allows; without one the knob is given back. After ``retry_s`` the policy
    begins anew: what failed may work by then.
    """

    name = "fallback"
    guarded = True
    retry_s = 60.0

    def __init__(self, job: Job, why: str, table: Lut | None) -> None:
        self._job, self._why, self._table = job, why, table
        self._begun_s = 0.0

    def enter(self, ctx: Context) -> State:
        """Say so, and hold the cap."""
        self._begun_s = ctx.now_s
        ctx.condition("not-governed", self._why)
        ctx.aim(None, self._why)
        ctx.advise(self._job, self._job.batch_size, "hold", self._why)
        ctx.say(self._job, "fallback", self._why if ctx.cap is None else f"the guard alone keeps the cap: {self._why}")
        self._hold(ctx)
        return self

    def handle(self, event: Event, ctx: Context) -> State:
        """A new cap is held at once; the policy is tried again after a while."""
        if isinstance(event, CapChanged):
            self._hold(ctx)
        elif ctx.now_s - self._begun_s > self.retry_s:
            self._begun_s = ctx.now_s
            ctx.begin_again = True
        return self

    def describe(self) -> str:
        """Why."""
        return f"fallback: {self._why}"

    def safe_table(self) -> Lut | None:
        """What is known of the job."""
        return self._table

    def _hold(self, ctx: Context) -> None:
        ctx.guard.aim(len(ctx.clocks) - 1)
        if ctx.cap is not None:
            ctx.guard.limit_to(ctx.index_at_most(safe_hz(self._table, ctx, self._job.batch_size)))


def safe_hz(table: Lut | None, ctx: Context, batch_size: int | None = None) -> int:
    """The highest clock that ``table`` shows safe for ``batch_size`` (default: its largest), else the lowest clock."""
    if table is None:
        return ctx.clocks[0]
    batch = table.batch_sizes[-1] if batch_size is None else batch_size
    safe = [
        p.gpu_frequency_hz
        for p in table.points()
        if p.batch_size == batch and below_cap(table.cell(p).peak_power_w, ctx.cap_w)
    ]
    return max(safe, default=ctx.clocks[0])
