"""What the governor makes of the knob as it is read back: refused, snapped, unreadable, or written by somebody else."""

from __future__ import annotations

from .context import Context
from .events import KnobReadBack

FORGET_S = 60.0  # after so long without another program's write, such writes are forgotten
_RETRY_MOST_S = 30.0


def read_back(event: KnobReadBack, ctx: Context, *, guarded: bool) -> None:
    """Note what the bounds really are after a write, or at a periodic look."""
    if event.requested_max_hz is None:
        _look(event, ctx)
        return
    if ctx.requested != (event.requested_min_hz, event.requested_max_hz):
        return  # the answer to an older write; the newer one's is still to come
    ctx.actual = event
    if guarded:
        ctx.guard.written(event.t_s)
    wanted = event.requested_max_hz
    text = None
    if event.error is not None:
        text = event.error
    elif event.max_hz is not None and event.max_hz != wanted:
        text = f"asked for {wanted / 1e6:g} MHz, the kernel set {event.max_hz / 1e6:g} MHz"
    ctx.condition("clock-not-as-asked", text)


def _look(event: KnobReadBack, ctx: Context) -> None:
    """A periodic look at the knob: can it be read, did the last write hold, has somebody else written it?"""
    missing = event.max_hz is None and bool(ctx.clocks)
    ctx.condition("gpu-node-unreadable", "the GPU's bounds cannot be read: is its driver loaded?" if missing else None)
    actual, tries = ctx.actual, ctx.settings.rewrite_tries
    if ctx.requested is None or actual is None or event.max_hz is None:
        return
    if actual.error is not None:  # refused: tried again, ever more rarely, for as long as it is wanted
        if ctx.now_s >= ctx.retry_s:
            ctx.retry_s = ctx.now_s + ctx.retry_wait_s
            ctx.retry_wait_s = min(2 * ctx.retry_wait_s, _RETRY_MOST_S)
            ctx.rewrite()
        return
    ctx.retry_wait_s = 1.0
    if (event.min_hz, event.max_hz) == (actual.min_hz, actual.max_hz):
        if ctx.foreign_writes and ctx.now_s - ctx.foreign_s > FORGET_S:
            respected = ctx.foreign_writes > tries
            ctx.foreign_writes = 0
            ctx.condition("foreign-writer", None)
            if respected:
                ctx.rewrite()
        return
    ctx.foreign_writes += 1
    ctx.foreign_s = ctx.now_s
    found = f"{(event.min_hz or 0) / 1e6:g} to {event.max_hz / 1e6:g} MHz"
    if ctx.foreign_writes > tries:
        ctx.actual = event
        ctx.condition("foreign-writer", f"another program keeps setting {found}; left so after {tries} tries")
    else:
        ctx.condition("foreign-writer", f"another program set {found}; written again ({ctx.foreign_writes}/{tries})")
        ctx.rewrite()
