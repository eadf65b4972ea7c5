"""A callback for Lightning: clock and batch size are governed while ``Trainer.fit`` trains.

    Trainer(callbacks=[TraingovCallback("resnet18", [8, 16, 32, 64])], reload_dataloaders_every_n_epochs=1)

The batch size changes at the end of an epoch: the callback sets ``batch_size`` of the module (or its hparams, or the
datamodule), as Lightning's own tuner does, and Lightning asks for a new train_dataloader, which must use it.
"""

import contextlib
import logging
import os
from typing import Any, Dict, Optional, Sequence

from lightning.pytorch import Callback
from lightning.pytorch.utilities import parsing

from ..arguments import batch_sizes as checked_sizes
from ..features import features_of, signature_of
from ..job import Job
from ..registering import register
from .inputs import Lengths, samples_in
from .memory import is_out_of_memory, wait_for_device
from .rates import LearningRates, rule_for

log = logging.getLogger("traingov_client")


class TraingovCallback(Callback):  # type: ignore[misc,unused-ignore]
    """Registers the training as a job, reports its optimizer steps, follows advice between epochs, and ends it.

    ``batch_sizes``: what one process can take at once; with a single one only the clock is governed. ``name``: the
    attribute that holds the batch size. ``rule``: "sqrt", "linear" or "none" (default: linear for SGD, else sqrt);
    the rates that ``configure_optimizers`` sets suit ``reference_batch`` (default: the largest). ``options`` go to
    ``register``. Several processes on one machine: process 0 reports for all. Validation and checkpoints are pauses.
    """

    def __init__(
        self,
        workload: str,
        batch_sizes: Sequence[int],
        *,
        name: str = "batch_size",
        rule: Optional[str] = None,
        reference_batch: Optional[int] = None,
        lengths: bool = True,
        **options: Any,
    ) -> None:
        self._workload, self._sizes, self._options = workload, checked_sizes(batch_sizes), options
        self._name, self._rule, self._reference = name, rule, reference_batch
        self._lengths = Lengths() if lengths else None
        self._job: Optional[Job] = None
        self._rates: Optional[LearningRates] = None
        self._world = 1
        self._size = self._sizes[-1]
        self._optimizer_steps = 0
        self.samples_done = 0
        self._paused = contextlib.ExitStack()
        self._forget()

    @property
    def job(self) -> Optional[Job]:
        """The registered job, while fitting; in process 0."""
        return self._job

    def state_dict(self) -> Dict[str, Any]:
        """What a checkpoint keeps."""
        return {"samples_done": self.samples_done, "batch_size": self._size}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.samples_done = state_dict["samples_done"]
        if state_dict["batch_size"] in self._sizes:
            self._size = state_dict["batch_size"]

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Register, before Lightning asks for the loader. Raises ValueError where the batch size could not change."""
        self._world = int(trainer.world_size)
        here = int(os.environ.get("LOCAL_WORLD_SIZE", self._world))
        if trainer.num_nodes > 1 or here != self._world:
            raise ValueError("traingov governs one board: run all processes on one machine")
        held = parsing.lightning_hasattr(pl_module, self._name)
        if len(self._sizes) > 1:
            if trainer.reload_dataloaders_every_n_epochs != 1:
                raise ValueError(
                    "several batch_sizes: give Trainer(reload_dataloaders_every_n_epochs=1), or a single batch size"
                )
            if not held:
                raise ValueError(
                    "several batch_sizes: neither the module, its hparams nor the datamodule has %r; "
                    "its train_dataloader must use it" % self._name
                )
        elif held:
            self._size = self._sizes[0]
        rule = self._rule or rule_for(trainer.optimizers[0] if trainer.optimizers else None)
        if trainer.is_global_zero:
            options: Dict[str, Any] = {
                "features": features_of(getattr(pl_module, "model", pl_module)),
                "signature": signature_of(pl_module, trainer.optimizers[0] if trainer.optimizers else None),
                "sync": wait_for_device,
                "learning_rate_rule": rule,
            }
            if "mixed" in str(trainer.precision):
                options["signature"]["precision"] = str(trainer.precision)
            options.update(self._options)
            self._job = register(
                self._workload, [size * self._world for size in self._sizes], self._size * self._world,
                samples_done=self.samples_done, resume=self.samples_done > 0, **options
            )  # fmt: skip
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        self._rates = LearningRates(trainer.optimizers, schedulers, self._reference or self._sizes[-1], rule)
        self._take_size(trainer, pl_module)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The optimizers of a checkpoint are loaded by now."""
        self._optimizer_steps = trainer.global_step
        self._follow()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """What was a pause is over."""
        self._paused.close()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A batch is done; with the last one of an optimizer step, that is too."""
        samples = samples_in(batch) or self._size
        self._batches += 1
        self._samples += samples
        length = self._lengths.of(batch) if self._lengths is not None else None
        if length is not None:
            self._length_sum += length * samples
            self._length_samples += samples
        if trainer.global_step == self._optimizer_steps and trainer.accumulate_grad_batches > 1:
            return
        self._optimizer_steps = trainer.global_step
        self.samples_done += self._samples * self._world
        if self._job is not None:
            length = self._length_sum / self._length_samples if self._length_samples else None
            self._job.step(self._samples * self._world, length, self._batches)
        self._forget()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """The safe point."""
        if self._job is not None:
            self._job.safe_point()
        self._take_size(trainer, pl_module)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """No training until the next batch."""
        self._pause("evaluation")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Dict[str, Any]) -> None:
        """No training until the next batch."""
        self._pause("saving")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """A batch that does not fit is told to the daemon. Lightning cannot take it back: the error goes on."""
        if self._job is not None and is_out_of_memory(exception):
            self._job.out_of_memory()
            log.error("traingov: batch size %d does not fit into memory; leave it out of batch_sizes", self._size)
        self._finish()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """The job is over."""
        self._finish()

    def _finish(self) -> None:
        self._paused.close()
        if self._job is not None:
            self._job.end()
            self._job = None

    def _pause(self, reason: str) -> None:
        if self._job is not None:
            self._paused.close()
            self._paused.enter_context(self._job.pause(reason))

    def _take_size(self, trainer: Any, pl_module: Any) -> None:
        size = self._job.batch_size // self._world if self._job is not None else self._size
        if self._world > 1:
            size = trainer.strategy.broadcast(size, 0)
        self._size = size
        if len(self._sizes) > 1:
            parsing.lightning_setattr(pl_module, self._name, size)
        self._follow()

    def _follow(self) -> None:
        if self._rates is not None:
            self._rates.follow(self._size)

    def _forget(self) -> None:
        self._batches = self._samples = self._length_samples = 0
        self._length_sum = 0.0
