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
    if ctx.foreign_writes > tries and _given_up(event, ctx):
        ctx.foreign_writes = 0
        ctx.condition("foreign-writer", None)
        ctx.say(None, "foreign-writer", f"the bounds are {bounds_text(event, ctx)} again: governed again")
        ctx.rewrite()
        return
    ctx.foreign_writes += 1
    ctx.foreign_s = ctx.now_s
    found = bounds_text(event, ctx)
    if ctx.foreign_writes > tries:
        if ctx.foreign_writes == tries + 1:
            ctx.foreigners += 1
            ctx.foreign_guard_steps = ctx.guard.steps_down
        ctx.actual = event
        text = f"another program keeps setting {found}; left so after {tries} tries"
        if ctx.cap is not None and ctx.guard.steps_down > ctx.foreign_guard_steps:  # a cap is no matter of taste
            text = f"another program keeps setting {found}, which breaks the cap: a lower clock is set each time"
            ctx.rewrite()
        ctx.condition("foreign-writer", text)
    else:
        ctx.condition("foreign-writer", f"another program set {found}; written again ({ctx.foreign_writes}/{tries})")
        ctx.rewrite()


def _given_up(event: KnobReadBack, ctx: Context) -> bool:
    """Whether the program that was respected has put the bounds back: to ours, or wide open as at boot.

    Bounds that it set itself and that were wide open from the beginning are still its own.
    """
    if (event.min_hz, event.max_hz) == ctx.requested:
        return True
    return _wide_open(event, ctx) and ctx.actual is not None and not _wide_open(ctx.actual, ctx)


def _wide_open(event: KnobReadBack, ctx: Context) -> bool:
    low, high = event.min_hz or 0, event.max_hz or 0
    return bool(ctx.clocks) and low <= ctx.clocks[0] and (high == 0 or high >= ctx.clocks[-1])


def bounds_text(event: KnobReadBack, ctx: Context) -> str:
    """Bounds in words, and what usually sets such."""
    low, high = event.min_hz or 0, event.max_hz or 0
    text = f"{low / 1e6:g} to {high / 1e6:g} MHz"
    if ctx.clocks and low == high == ctx.clocks[-1]:
        return f"{text} (as jetson_clocks does)"
    return f"{text} (as nvpmodel and jetson_clocks --restore do)" if _wide_open(event, ctx) else text
