"""A callback for the Hugging Face ``Trainer``: the GPU's clock is governed while it trains.

    trainer = Trainer(model, args, train_dataset=..., callbacks=[TraingovCallback("bert-mrpc", policy="energy")])

The Trainer fixes loader, steps per epoch and schedule when ``train()`` begins, so the batch size cannot change in it:
one batch size is registered, that of TrainingArguments. To have the batch size governed too, use ``torch_loop``.
"""

import contextlib
import os
from typing import Any, Optional

from transformers import TrainerCallback

from ..features import features_of, signature_of
from ..job import Job
from ..registering import register
from .inputs import Lengths, samples_in
from .memory import wait_for_device


class TraingovCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Registers the training as a job, reports its optimizer steps, and ends it.

    ``options`` go to ``register`` (policy, objective, socket, sync, features, ...). Features and signature are read
    from the model, the mean length from the attention masks that it is called with (``lengths=False``: not).
    Evaluation and saving are pauses. With several processes on one machine process 0 reports for all. With
    auto_find_batch_size, a batch that did not fit is told to the daemon.
    """

    def __init__(self, workload: str, lengths: bool = True, **options: Any) -> None:
        self._workload, self._options = workload, options
        self._lengths = Lengths() if lengths else None
        self._job: Optional[Job] = None
        self._batch = self._world = 1
        self._paused = contextlib.ExitStack()
        self._hook: Any = None
        self._forget()

    @property
    def job(self) -> Optional[Job]:
        """The registered job, while training; in process 0."""
        return self._job

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **given: Any
    ) -> None:
        """Register. Raises ValueError for arguments that make no sense, and for several machines."""
        batch = int(state.train_batch_size or args.train_batch_size)
        if self._job is not None:  # an earlier try ended with an error
            if batch < self._batch:
                self._job.out_of_memory()
            self._finish()
        self._batch, self._world = batch, int(args.world_size)
        here = int(os.environ.get("LOCAL_WORLD_SIZE", self._world))
        if here != self._world:
            raise ValueError("traingov governs one board: %d of %d processes run on this machine" % (here, self._world))
        if not state.is_world_process_zero:
            return
        rows = _rows(given.get("train_dataloader"))
        done, total = self._progress(args, state, rows)
        options = {
            "features": features_of(model),
            "signature": signature_of(model, optimizer),
            "samples_total": total,
            "sync": wait_for_device,
            "learning_rate_rule": "none",
        }
        options["signature"]["precision"] = _precision(args) or options["signature"].get("precision")
        options.update(self._options)
        self._job = register(
            self._workload, [batch * self._world], samples_done=done, resume=done > 0, **options
        )  # fmt: skip
        self._forget()
        if model is not None:
            self._hook = model.register_forward_pre_hook(self._seen, with_kwargs=True)

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """What was a pause is over."""
        self._paused.close()

    def on_substep_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """A batch of a step that accumulates gradients."""
        self._batches += 1

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """An optimizer step is done."""
        self._batches += 1
        if self._job is None:
            return
        # A model that is called more than once a batch, or whose hook did not run, does not say how many samples.
        samples = self._samples if self._calls == self._batches else self._batch * self._batches
        length = self._length_sum / self._length_samples if self._length_samples else None
        self._job.step(samples * self._world, length, self._batches)
        self._forget()
        self._pause_before(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Evaluation and saving may follow."""
        self._pause_before(control)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """The job is over."""
        self._finish()

    def _finish(self) -> None:
        self._paused.close()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        if self._job is not None:
            self._job.end()
            self._job = None

    def _pause_before(self, control: Any) -> None:
        if self._job is None or not (control.should_evaluate or control.should_save):
            return
        self._paused.close()
        self._paused.enter_context(self._job.pause("evaluation" if control.should_evaluate else "saving"))

    def _seen(self, module: Any, positional: Any, named: Any) -> None:
        """Before each forward pass of the model."""
        if not module.training:
            return
        self._calls += 1
        samples = samples_in(named) or samples_in(positional) or 0
        self._samples += samples
        length = self._lengths.of(named) if self._lengths is not None else None
        if length is not None:
            self._length_sum += length * samples
            self._length_samples += samples

    def _forget(self) -> None:
        self._calls = self._batches = self._samples = self._length_samples = 0
        self._length_sum = 0.0

    def _progress(self, args: Any, state: Any, rows: Optional[int]) -> Any:
        """Samples done (by a checkpoint) and in all."""
        a_step = self._batch * args.gradient_accumulation_steps * self._world
        if rows is None or args.max_steps > 0:
            return state.global_step * a_step, max(1, state.max_steps) * a_step
        return round((state.epoch or 0) * rows) if state.global_step else 0, max(1, round(args.num_train_epochs * rows))


def _rows(loader: Any) -> Optional[int]:
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError):  # a stream
        return None


def _precision(args: Any) -> Optional[str]:
    return "bf16-mixed" if args.bf16 else "fp16-mixed" if args.fp16 else None
