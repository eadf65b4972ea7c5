"""The energy policy's beginning: one measurement at the reference clock, one question to the tree (method B)."""

from __future__ import annotations

from ..context import Context, Job
from ..events import Event, Sample, StepsReported
from ..tree import on_board
from .base import Fallback, Holding, State

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

    def enter(self, ctx: Context) -> State:
        """Let the board's own governor run for the reference window."""
        window = ctx.settings.reference_window_s
        ctx.aim(None, "reference measurement of GPU utilization")
        ctx.guard.aim(len(ctx.clocks) - 1)
        ctx.advise(self._job, self._job.batch_size, "train", f"reference measurement, {window:g} s at mode 0")
        return self

    def handle(self, event: Event, ctx: Context) -> State:
        """Begin at the first report of a step, average utilization over the window, decide."""
        if isinstance(event, StepsReported) and event.job == self._job.name and self._begin_s is None:
            self._begin_s = ctx.now_s
        elif isinstance(event, Sample) and self._begin_s is not None and event.gpu_utilization is not None:
            self._sum += event.gpu_utilization
            self._seen += 1
        held_back = ctx.cap is not None and ctx.guard.limit < len(ctx.clocks) - 1
        if held_back and self._seen < _SEEN_ENOUGH:
            self._seen = 0  # the cap forbids the reference clock before utilization could be measured at it
        elif not held_back and (self._begin_s is None or ctx.now_s - self._begin_s < ctx.settings.reference_window_s):
            return self
        utilization = 100 * self._sum / self._seen if self._seen else None
        return decide_by_tree(self._job, ctx, utilization)


def decide_by_tree(job: Job, ctx: Context, utilization_percent: float | None) -> State:
    """Ask the tree with the job's features; ``utilization_percent`` as measured at the reference clock."""
    tree = ctx.settings.tree
    if tree is None:
        return Fallback(job, "policy energy has no decision tree: set energy.tree in the configuration", None)
    features = job.registered.features
    answer = tree.apply(
        {
            "model_type": features.model_type,
            "layers": features.layers,
            "hidden_size": features.hidden_size,
            "seq_len_avg": job.seq_len_avg,
            "gpu_utilization": utilization_percent,
        }
    )
    frequency = on_board(answer.gpu_frequency_hz, tree.max_frequency_hz, ctx.clocks)
    moved = "" if frequency == answer.gpu_frequency_hz else f", nearest step to {answer.gpu_frequency_hz / 1e6:g} MHz"
    return Holding(job, frequency, f"tree {tree.name}: {', '.join(answer.path) or 'one clock for all'}{moved}", "tree")
