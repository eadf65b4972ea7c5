"""The energy policy's beginning: one measurement at the reference clock, one question to the tree (method B)."""

from __future__ import annotations

from typing import Any

from ..context import Context, Job
from ..events import Event, Sample, StepsReported
from ..tree import on_board
from .base import Fallback, Holding, State
from .searching import Searching, TreeChoice

_SEEN_ENOUGH = 50  # samples


class Reference(State):
    """Measures GPU utilization once at the reference clock (mode 0), then asks the tree once (method B).

    Reading utilization again at the chosen clock would flip the answer: it depends on the clock.
    """

    name = "reference"
    guarded = True

    def __init__(self, job: Job) -> None:
        self._job = job
        self._begin_s: float | None = None
        self._sum = 0.0
        self._seen = 0
        self._samples, self._elapsed_s = 0, 0.0

    def enter(self, ctx: Context) -> State:
        """Let the board's own governor run for the reference window."""
        window = ctx.settings.reference_window_s
        ctx.aim(None, "reference measurement of GPU utilization")
        ctx.guard.aim(len(ctx.clocks) - 1)
        ctx.advise(self._job, self._job.batch_size, "train", f"reference measurement, {window:g} s at mode 0")
        return self

    def handle(self, event: Event, ctx: Context) -> State:
        """Begin at the first report of a step, average utilization over the window, decide."""
        if ctx.idling.suspended:  # a pause is no part of the utilization: begin anew after it
            self._begin_s, self._sum, self._seen, self._samples, self._elapsed_s = None, 0.0, 0, 0, 0.0
            return self
        if isinstance(event, StepsReported) and event.job == self._job.name:
            if self._begin_s is None:
                self._begin_s = ctx.now_s
            else:
                self._samples += event.samples
                self._elapsed_s += event.elapsed_s
        elif isinstance(event, Sample) and self._begin_s is not None and event.gpu_utilization is not None:
            self._sum += event.gpu_utilization
            self._seen += 1
        held_back = ctx.cap is not None and ctx.guard.limit < len(ctx.clocks) - 1
        if held_back and self._seen < _SEEN_ENOUGH:
            self._seen = 0  # the cap forbids the reference clock before utilization could be measured at it
        elif not held_back and (self._begin_s is None or ctx.now_s - self._begin_s < ctx.settings.reference_window_s):
            return self
        utilization = 100 * self._sum / self._seen if self._seen else None
        time_s = self._elapsed_s / self._samples if self._samples and not held_back else None
        return decide_by_tree(self._job, ctx, utilization, time_s)


def decide_by_tree(
    job: Job, ctx: Context, utilization_percent: float | None, reference_time_s: float | None = None
) -> State:
    """Ask the tree with the job's features, then search from its clock (where the search is enabled).

    ``utilization_percent`` and ``reference_time_s`` (a sample's time) as measured at the reference clock.
    """
    tree = ctx.settings.tree
    if tree is None:
        return Fallback(job, "policy energy has no decision tree: set energy.tree in the configuration", None)
    features = job.registered.features
    known: dict[str, Any] = {
        "model_type": features.model_type,
        "layers": features.layers,
        "hidden_size": features.hidden_size,
        "seq_len_avg": job.seq_len_avg,
        "gpu_utilization": utilization_percent,
    }
    answer = tree.apply(known)
    frequency = on_board(answer.gpu_frequency_hz, tree.max_frequency_hz, ctx.clocks)
    moved = "" if frequency == answer.gpu_frequency_hz else f", nearest step to {answer.gpu_frequency_hz / 1e6:g} MHz"
    why = f"tree {tree.name}: {', '.join(answer.path) or 'one clock for all'}{moved}"
    if not ctx.settings.search.enabled:
        return Holding(job, frequency, why, "tree")

    def ask(seq_len_avg: float) -> int:
        hz = tree.apply({**known, "seq_len_avg": seq_len_avg}).gpu_frequency_hz
        return on_board(hz, tree.max_frequency_hz, ctx.clocks)

    return Searching(job, TreeChoice(frequency, why, ask, utilization_percent, reference_time_s), ctx)


def begin(job: Job, ctx: Context) -> State:
    """The energy policy's first state. A workload that was measured before needs no reference measurement."""
    for curve in job.registered.remembered:
        if curve.batch_size == job.batch_size and curve.gpu_utilization is not None and ctx.settings.search.enabled:
            return decide_by_tree(job, ctx, curve.gpu_utilization, curve.reference_time_s)
    return Reference(job)
