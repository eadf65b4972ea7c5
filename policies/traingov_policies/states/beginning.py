"""Which state the jobs that are registered begin with, by their number and the policy."""

from __future__ import annotations

from dataclasses import replace

from ..context import Context, Job
from ..lut import Lut
from ..plans import thinned
from ..select import select
from ..tree import on_board
from ..values import PolicyName
from .base import Fallback, Holding, Idle, Observing, State
from .joint import begin
from .planning import objective_of, plan_for
from .reference import begin as begin_energy
from .sharing import policy_of, together
from .sweep import Sweep, due


def begin_policy(ctx: Context) -> State:
    """The state to begin with, given the jobs there are."""
    for name in ("cap-infeasible", "not-governed"):
        ctx.condition(name, None)
    if not ctx.jobs:
        ctx.foreign_writes = 0
        return Idle()
    if len(ctx.jobs) > 1:
        return together(ctx, _fixed_hz(ctx))
    job = next(iter(ctx.jobs.values()))
    policy = policy_of(job, ctx)
    if not ctx.clocks:
        return Observing(job, "the board shows no clock table for the GPU: nothing can be set")
    if (run := due(job, ctx)) is not None:
        return Sweep(job, run, begin_policy)
    if policy is PolicyName.OBSERVE:
        return Observing(job, "policy observe writes nothing", _would(job, ctx))
    if policy is PolicyName.FIXED:
        if (fixed_hz := _fixed_hz(ctx)) is None:
            return Fallback(job, "policy fixed has no clock: set fixed.gpu_frequency_hz in the configuration", None)
        return Holding(job, fixed_hz, "policy fixed", "fixed")
    if policy is PolicyName.ENERGY:
        return begin_energy(job, ctx)
    if not job.batch_sizes:
        return Fallback(job, "the job can use none of its batch sizes", None)
    lut = (job.lut or _new_table(job, ctx)).restricted(job.batch_sizes)
    return begin(job, lut, ctx)


def _fixed_hz(ctx: Context) -> int | None:
    """The clock that policy fixed holds: the configured one, else the answer of a tree without questions."""
    wanted, tree = ctx.settings.fixed_frequency_hz, ctx.settings.tree
    if wanted is None and tree is not None and ctx.clocks:
        wanted = on_board(tree.apply({}).gpu_frequency_hz, tree.max_frequency_hz, ctx.clocks)
    return None if wanted is None or not ctx.clocks else ctx.clocks[ctx.index_at_most(wanted)]


def _new_table(job: Job, ctx: Context) -> Lut:
    board, profile = ctx.board, ctx.settings.profile
    clocks = thinned(board.gpu_frequencies_hz, profile.max_frequencies)
    samples = max(profile.samples, *job.batch_sizes)
    lut = Lut.empty(board.name, job.registered.workload, samples, job.batch_sizes, clocks)
    return replace(lut, release=board.release, power_mode=board.power_mode)


def _would(job: Job, ctx: Context) -> str:
    """What the joint policy would do, for ``observe``."""
    if not job.batch_sizes:
        return "the job can use none of its batch sizes"
    if job.lut is None:
        plan = plan_for(_new_table(job, ctx), ctx, job)
        return f"no table for this workload; joint would measure at most {plan.at_most()} points"
    try:
        selection = select(job.lut, job.registered.relation, ctx.cap_w, objective_of(job, ctx), job.batch_sizes)
    except ValueError as error:
        return str(error)
    return f"joint would choose {selection.chosen.point}"
