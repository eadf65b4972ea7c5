"""One governed training job: counts steps, reports them in windows, and takes advice at safe points."""

import os
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from . import arguments
from .link import Link
from .outbox import Outbox
from .window import Pause, Window

END_TIMEOUT_S = 0.2
POLL_INTERVAL_S = 0.05
PAUSES_APART_S = 1.0  # pauses that follow each other faster are not told: loading each batch, say
PHASES = ("profile", "train", "hold")


class Job:
    """A registered job; made by ``register``. To be used from one thread.

    A window is a stretch of steps at one batch size, about 100 ms or one step, whichever is longer. The first step
    after registration and after each change of the batch size is not measured; it counts as progress all the same.
    """

    def __init__(
        self,
        fields: Dict[str, Any],
        batch_size: int,
        samples_done: int,
        resume: bool,
        sync: Optional[Callable[[], Any]],
        path: str,
        timeout_s: float,
    ) -> None:
        self._fields = fields
        self._candidates: List[int] = list(fields["batch_sizes"])
        self._batch = batch_size
        self._previous: Optional[int] = None
        self._resume = resume
        self._sync = sync
        self._phase = "train"
        self._pending: Optional[Dict[str, Any]] = None
        self._pauses = 0
        self._paused_s = float("-inf")
        self._pause_told = False
        self._reopen = False
        self._ended = False
        self._pid = os.getpid()
        self._poll_due_s = 0.0
        self._window = Window(self._synchronise, samples_done)
        self._outbox = Outbox()
        self._link = Link(path, self._registration)
        for kind, reply in self._link.open(timeout_s):
            advice = self._checked(kind, reply)
            if advice is not None:
                # Nothing is built yet, so the start is itself a safe point.
                self._batch, self._phase = advice["batch_size"], advice["phase"]
                self._applied(advice["advice"], always=self._batch != batch_size)

    # For the script.

    @property
    def batch_size(self) -> int:
        """The batch size to train with now."""
        return self._batch

    @property
    def batch_sizes(self) -> List[int]:
        """The batch sizes that are still candidates, ascending."""
        return list(self._candidates)

    @property
    def phase(self) -> str:
        """ "profile" while operating points are being measured, else "train" or "hold"."""
        return self._phase

    @property
    def connected(self) -> bool:
        """Whether a daemon governs this job now."""
        return self._link.state == "ready"

    @property
    def samples_done(self) -> int:
        """Samples trained so far, those given to ``register`` included."""
        return self._window.samples_done

    def step(self, n: Optional[int] = None, seq_len_avg: Optional[float] = None, micro_batches: int = 1) -> None:
        """A training step of ``n`` samples (default: the batch size) is done; ``seq_len_avg``: their mean length.

        With gradient accumulation, call it once an optimizer step, with the samples of its ``micro_batches`` batches: a
        window then holds whole optimizer steps.
        """
        if self._window.add(self._batch * micro_batches if n is None else n, seq_len_avg, micro_batches):
            self._edge()

    def seq_len(self, mean: float, n: Optional[int] = None) -> None:
        """Report the mean sequence length, without padding, of ``n`` samples (default: one batch)."""
        self._window.add_length(mean, self._batch if n is None else n)

    def safe_point(self) -> bool:
        """Call where the batch size may change, best before each step.

        True when ``batch_size`` has changed: rebuild the loader and scale the learning rate.
        """
        now_s = time.monotonic()
        if now_s >= self._poll_due_s and self._here():
            self._poll(now_s)
        advice = self._pending
        if advice is None or not self._here():
            return False
        self._pending = None
        self._report()
        self._unmeasured()
        self._previous, self._batch, self._phase = self._batch, advice["batch_size"], advice["phase"]
        self._applied(advice["advice"], always=True)
        return True

    def scale_lr(self, base_lr: float, reference_batch: Optional[int] = None, rule: Optional[str] = None) -> float:
        """The learning rate for the present batch size, where ``base_lr`` suits ``reference_batch``.

        The reference defaults to the largest registered batch size, ``rule`` to the registered one: "sqrt" (Adam,
        AdamW), "linear" (SGD) or "none".
        """
        reference = reference_batch or self._fields["batch_sizes"][-1]
        rule = rule or self._fields["learning_rate_rule"]
        return arguments.scaled_learning_rate(base_lr, reference, self._batch, rule)

    def out_of_memory(self) -> bool:
        """The present batch size does not fit: it leaves the candidates, and ``batch_size`` falls back.

        It falls back to the size used before, else to the next smaller one. True when there is one: rebuild as after
        ``safe_point``. False when none is left; the caller should then raise its own error.
        """
        if self._ended or not self._here():
            return False
        failed = self._batch
        self._unmeasured()  # the step that failed spoiled this window
        if self._link.accepting:
            self._outbox.failed(failed, "out_of_memory")
        if self._pending is not None and self._pending["batch_size"] == failed:
            self._pending = None
        self._candidates = [size for size in self._candidates if size != failed]
        smaller = [size for size in self._candidates if size < failed]
        if self._previous is not None and self._previous in self._candidates:
            self._batch = self._previous
        elif smaller:
            self._batch = smaller[-1]
        self._previous = None
        if self._batch == failed:
            self._send(time.monotonic())
            return False
        self._applied(None, always=True)
        return True

    def pause(self, reason: str = "pause") -> Pause:
        """``with job.pause("evaluation"):`` around evaluation or saving: that time is not training time.

        The daemon is told (once a second at most), and gives the GPU's clock back while the GPU has no load.
        """
        return Pause(self._pause, reason)

    def end(self) -> None:
        """The job is over. May be called twice; leaving ``with`` calls it."""
        if self._ended:
            return
        if self._here():
            self._report()
            self._poll(time.monotonic())
            self._link.finish(self._outbox.take() + [("end", {})], END_TIMEOUT_S)
        self._over()

    def __enter__(self) -> "Job":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.end()

    # Windows.

    def _edge(self) -> None:
        """A window is full, or a first step is done: close it, open the next, and exchange what waits."""
        if not self._here():
            return
        if self._window.is_open:
            self._report()
        else:
            self._window.close()
            if not self._pauses:
                self._window.open()
        self._poll(time.monotonic())

    def _report(self) -> None:
        report = self._window.cut(self._batch)
        if report is not None and report["samples"] > report["steps"] * report["batch_size"]:
            self._link.warn(
                "size",
                "steps have more samples than the advised batch size %d: rebuild the loader when safe_point() "
                "is True" % self._batch,
            )
        if report is not None and self._link.accepting:
            self._outbox.steps(report)

    def _unmeasured(self) -> None:
        """Measure nothing until the next step is done, also where a pause ends before."""
        self._reopen = False
        self._window.close()

    def _synchronise(self) -> bool:
        """Wait for the device while operating points are measured; whether that was done."""
        if self._phase != "profile" or self._sync is None:
            return False
        try:
            self._sync()
        except Exception as error:
            # The training will meet the same error by itself, and say it better.
            self._sync = None
            self._link.warn("sync", "sync failed (%s); windows are no longer synchronised" % error)
            return False
        return True

    def _change_phase(self, phase: str) -> None:
        if phase == self._phase:
            return
        measuring = self._window.is_open
        self._report()
        self._phase = phase
        if measuring:
            self._window.open()

    # The daemon.

    def _here(self) -> bool:
        """Whether this is the process that registered, and not a child of it."""
        if os.getpid() == self._pid:
            return True
        self._link.close()
        self._over()
        return False

    def _over(self) -> None:
        self._ended = True
        self._pending = None
        self._window.stop()
        self._poll_due_s = float("inf")

    def _poll(self, now_s: float) -> None:
        self._poll_due_s = now_s + POLL_INTERVAL_S
        was_accepting = self._link.accepting
        for kind, fields in self._link.poll(now_s):
            self._heed(kind, fields)
        if was_accepting and not self._link.accepting:
            # What waited is in the samples_done of the next registration. Nobody measures now.
            self._outbox.take()
            self._pending = None
            self._change_phase("train")
        self._send(now_s)

    def _send(self, now_s: float) -> None:
        if len(self._outbox) and self._link.idle:
            self._link.send(self._outbox.take(), now_s)

    def _registration(self) -> Dict[str, Any]:
        fields = dict(self._fields)
        fields["batch_sizes"] = sorted(set(self._candidates) | {self._batch})
        fields.update(batch_size=self._batch, samples_done=self._window.samples_closed, resume=self._resume)
        self._resume = True
        return fields

    def _heed(self, kind: str, fields: Dict[str, Any]) -> None:
        advice = self._checked(kind, fields)
        if advice is None:
            return
        if advice["phase"] == "hold" or advice["batch_size"] == self._batch:
            self._pending = None
            self._change_phase(advice["phase"])
            self._applied(advice["advice"])
        else:
            self._pending = advice

    def _checked(self, kind: str, fields: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """Advice that makes sense, None (and one warning) for other."""
        size, phase, number = fields.get("batch_size"), fields.get("phase"), fields.get("advice")
        numbered = type(number) is int and 0 <= number <= 2**53
        fits = type(size) is int and size in self._candidates and phase in PHASES
        if not fits or not (numbered or (number is None and kind == "registered")):
            self._link.warn("absurd", "advice that makes no sense is ignored: %.200r" % (fields,))
            return None
        return {"batch_size": size, "phase": phase, "advice": number}

    def _applied(self, advice: Optional[int], always: bool = False) -> None:
        """Say which batch size is used now, as the answer to ``advice``, or ``always`` without one."""
        if self._link.accepting and (always or advice is not None):
            self._outbox.applied(self._batch, advice)
        self._send(time.monotonic())

    def _pause(self, by: int, reason: str) -> None:
        """Enter (1) or leave (-1) a pause."""
        if self._ended or not self._here():
            return
        if self._pauses == 0:
            self._report()
            # Where the first step is still to come, it opens the window as ever.
            self._reopen = self._window.is_open
            self._window.close()
            now_s = time.monotonic()
            if now_s - self._paused_s >= PAUSES_APART_S:
                self._paused_s, self._pause_told = now_s, True
                self._tell_pause(arguments.printable(reason) or "pause")
        self._pauses += by
        if self._pauses == 0:
            if self._pause_told:
                self._pause_told = False
                self._tell_pause(None)
            if self._reopen:
                self._window.open()

    def _tell_pause(self, reason: Optional[str]) -> None:
        if self._link.accepting:
            self._outbox.paused(reason)
        self._send(time.monotonic())
