"""More than one job (docs/jobs.md): tables are void while they run together, and the guard keeps the board's cap."""

from __future__ import annotations

from ..context import Context, Job
from ..events import CapChanged, Event
from ..values import PolicyName
from .base import State


class Sharing(State):
    """Several jobs share the GPU. ``fixed_hz``: the clock of policy fixed, where every job is under that policy.

    With a cap the guard begins at the present clock and climbs as far as the cap allows; without one the knob is given
    back, except to policy fixed, whose clock needs no table. Jobs keep their batch sizes.
    """

    name = "sharing"
    guarded = True

    def __init__(self, fixed_hz: int | None = None) -> None:
        self._fixed_hz = fixed_hz
        self._why = "sharing"

    def enter(self, ctx: Context) -> State:
        """Aim at the highest clock (or the fixed one); the guard brings it under the cap."""
        held = "the guard keeps the cap" if ctx.cap is not None else "no clock is set"
        if self._fixed_hz is not None:
            held = f"policy fixed holds {self._fixed_hz / 1e6:g} MHz"
        self._why = f"{len(ctx.jobs)} jobs share the GPU: tables are void, {held}"
        if ctx.clocks and (ctx.cap is not None or self._fixed_hz is not None):
            if ctx.requested is not None and ctx.cap is not None:  # begin at the present clock and climb
                ctx.guard.limit_to(ctx.index_at_most(ctx.requested[1]))
            ctx.aim_guarded(ctx.clocks[-1] if self._fixed_hz is None else self._fixed_hz, self._why)
        else:
            ctx.aim(None, self._why)
        _hold(ctx, self._why)
        return self

    def handle(self, event: Event, ctx: Context) -> State:
        """A changed cap is a new aim."""
        return self.enter(ctx) if isinstance(event, CapChanged) else self

    def describe(self) -> str:
        """How many, and what holds meanwhile."""
        return self._why


def _hold(ctx: Context, why: str) -> None:
    for job in ctx.jobs.values():
        ctx.advise(job, job.batch_size, "hold", why)
    ctx.say(None, "sharing", why)


class Unwritten(State):
    """Several jobs, all under policy observe: nothing is written, with a cap or without."""

    name = "observing"
    writes = False

    def enter(self, ctx: Context) -> State:
        """Say so, and leave the knob alone."""
        why = f"{len(ctx.jobs)} jobs share the GPU, all under policy observe, which writes nothing"
        ctx.aim(None, why)
        _hold(ctx, why)
        return self

    def describe(self) -> str:
        """Why nothing is written."""
        return "observing: several jobs"


def together(ctx: Context, fixed_hz: int | None) -> State:
    """The state for the jobs there are, two or more; ``fixed_hz`` is what policy fixed would hold."""
    policies = {policy_of(job, ctx) for job in ctx.jobs.values()}
    if policies == {PolicyName.OBSERVE}:
        return Unwritten()
    return Sharing(fixed_hz if policies == {PolicyName.FIXED} else None)


def policy_of(job: Job, ctx: Context) -> PolicyName:
    """The job's own wish, else the administrator's."""
    return job.registered.policy or ctx.policy
