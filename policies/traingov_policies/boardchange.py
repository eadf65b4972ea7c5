"""The board changed: before the first job, or in mid-job, where a power mode was set (nvpmodel) or a clock limit moved.

What was measured belongs to the mode it was measured in, and is on disk under that mode already (each point is kept as
it is measured). Every job begins anew with what the store holds for the new mode.
"""

from __future__ import annotations

from dataclasses import replace

from .context import Context
from .events import BoardFound
from .guarding.board import renew
from .lut import Lut


def board_found(event: BoardFound, ctx: Context) -> bool:
    """Take the board; True when jobs run and have to begin anew.

    A guard for the new clock table knows nothing of the old one's limits. Writes of another program that came with the
    change (nvpmodel sets the bounds itself) are not held against anybody.
    """
    old, ctx.board = ctx.board, event.board
    if not ctx.jobs:
        renew(ctx)
        return False
    if old == event.board:
        return False
    if old.gpu_frequencies_hz != event.board.gpu_frequencies_hz:
        at_hz = old.gpu_frequencies_hz[ctx.guard.limit] if old.gpu_frequencies_hz else None
        renew(ctx)
        if at_hz is not None and ctx.cap is not None and ctx.clocks:
            ctx.guard.limit_to(ctx.index_at_most(at_hz))  # the cap goes on: begin at the clock it had come to
    ctx.power_mode_changes += old.power_mode != event.board.power_mode
    ctx.foreign_writes = 0
    ctx.condition("foreign-writer", None)
    ctx.requested = ctx.actual = None
    if ctx.sweep is not None and ctx.sweep.active:
        ctx.sweep.stop(f"the power mode is {event.board.power_mode} now; start it again to sweep this mode")
    stored = {entry.job: entry for entry in event.stored}
    for job in ctx.jobs.values():
        entry = stored.get(job.name)
        job.registered = replace(
            job.registered,
            lut=None if entry is None else entry.lut,
            prior=None if entry is None else entry.prior,
            remembered=() if entry is None else entry.remembered,
            curves=() if entry is None else entry.curves,
        )
        job.lut = usable_table(job.registered.lut, job.registered.batch_sizes, ctx)
        job.advised = None
    top = f", GPU up to {ctx.clocks[-1] / 1e6:g} MHz" if ctx.clocks else ""
    ctx.say(None, "board", f"power mode is now {event.board.power_mode}{top}: tables of this mode hold")
    return True


def usable_table(lut: Lut | None, batch_sizes: tuple[int, ...], ctx: Context) -> Lut | None:
    """The stored table cut to the job's batch sizes, if it fits the job and this board's clocks."""
    if lut is None or not set(lut.gpu_frequencies_hz) <= set(ctx.clocks):
        return None
    # What failed once may work now; batch sizes that the table does not have are measured besides.
    return lut.without_failed().extended(batch_sizes, ()).restricted(batch_sizes)
