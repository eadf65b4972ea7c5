"""A PyTorch training loop whose batch size is governed: loader and learning rate follow, every sample is trained once.

    loop = GovernedLoop(dataset, model, optimizer, workload="resnet18", batch_sizes=[8, 16, 32, 64], epochs=10)
    with loop:
        for epoch in loop.epochs():
            for inputs, labels in loop:
                with loop.step():
                    loop.backward(loss_function(model(inputs), labels))

``step`` reports the step, and once its gradients are whole calls ``optimizer.step()``.
"""

import contextlib
import logging
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Set, Type

from ..features import features_of, signature_of
from ..job import Job
from ..registering import register
from . import ranks
from .group import Group
from .inputs import Lengths
from .memory import free_memory, is_out_of_memory, wait_for_device
from .order import Batches, share, usable
from .plan import Plan
from .rates import LearningRates, rule_for

log = logging.getLogger("traingov_client")

_OURS = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")


class GovernedLoop:
    """Trains ``epochs`` epochs of ``dataset``, each sample once per epoch. Enter it with ``with``.

    ``batch_sizes``: what one process can take at once. ``every``: optimizer steps between safe points in mid-epoch
    (None: only the end of an epoch is one). ``accumulate``: batches per optimizer step. ``effective_batch``: instead,
    the samples of an optimizer step, which then stay the same at every batch size, and so does the learning rate.
    ``rule``: "sqrt", "linear" or "none" (default: linear for SGD, else sqrt), with respect to ``reference_batch``
    (default: the largest), which the optimizer's rates and ``schedulers`` suit. ``loader``: arguments for DataLoader.
    ``order``: epoch -> the indices to train (default: shuffled by ``seed`` and epoch). ``length_of``: batch -> mean
    sequence length, or None (default: by its attention_mask). ``before_step`` is called before each optimizer step
    (clipping, say); ``scaler``: a GradScaler. ``sync`` and ``options`` go to ``register`` (default of ``sync``:
    torch.cuda.synchronize where CUDA is in use).

    With torch.distributed (one process per GPU of one machine, the model in DistributedDataParallel) process 0 speaks
    with the daemon, and the others do as it does. Raises ValueError for arguments that make no sense.
    """

    def __init__(
        self,
        dataset: Any,
        model: Any,
        optimizer: Any,
        workload: str,
        batch_sizes: Sequence[int],
        *,
        epochs: Optional[int] = None,
        batch_size: Optional[int] = None,
        every: Optional[int] = None,
        accumulate: int = 1,
        effective_batch: Optional[int] = None,
        rule: Optional[str] = None,
        reference_batch: Optional[int] = None,
        schedulers: Sequence[Any] = (),
        loader: Optional[Mapping[str, Any]] = None,
        order: Optional[Callable[[int], Sequence[int]]] = None,
        seed: int = 0,
        drop_last: bool = False,
        length_of: Optional[Callable[[Any], Optional[float]]] = None,
        before_step: Optional[Callable[[], Any]] = None,
        scaler: Any = None,
        sync: Optional[Callable[[], Any]] = None,
        **options: Any,
    ) -> None:
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise ValueError(
                "dataset must have a length and indices (a map-style dataset): of a stream nobody can say which "
                "samples are left when the batch size changes; use the plain client for it"
            )
        taken = sorted(set(loader or {}) & set(_OURS))
        if taken:
            raise ValueError("loader: %s is set by the loop; leave it out" % ", ".join(taken))
        self._dataset, self._model, self._optimizer = dataset, model, optimizer
        self._rank, self._world = ranks.ranks()
        self.plan = Plan(batch_sizes, batch_size, accumulate, effective_batch, self._world, epochs, every)
        self._workload, self._options = workload, dict(options)
        rule = "none" if effective_batch is not None else rule or rule_for(optimizer)
        self._rule = rule
        self._rates = LearningRates([optimizer], schedulers, reference_batch or max(self.plan.batch_sizes), rule)
        self._loader_options, self._order_of = dict(loader or {}), order
        self._seed, self._whole = seed, drop_last
        self._length_of = Lengths().of if length_of is None else length_of
        self._before_step, self._scaler = before_step, scaler
        self._sync = wait_for_device if sync is None else sync
        self._job: Optional[Job] = None
        self.epoch = 0
        self.steps = 0  # optimizer steps done
        self.samples_done = 0
        self._position = 0  # samples of this epoch that are trained, of all processes
        self._order: Optional[Sequence[int]] = None
        self._group = Group()
        self._open = self._rebuild = self._failed = False
        self._proven: Set[int] = set()

    # Before and after.

    @property
    def batch_size(self) -> int:
        """Samples that this process trains at once now."""
        return self.plan.batch_size

    @property
    def job(self) -> Job:
        """The registered job; of process 0 only. Raises RuntimeError elsewhere."""
        if self._job is None:
            raise RuntimeError("the job is that of process 0, inside `with loop:`")
        return self._job

    def state_dict(self) -> Dict[str, Any]:
        """Where training is, for a checkpoint. Batches whose optimizer step is still to come are trained again."""
        return {
            "epoch": self.epoch,
            "position": self._position,
            "steps": self.steps,
            "samples_done": self.samples_done,
            "batch_size": self.batch_size,
            "seed": self._seed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint. To be called before ``with loop``: the daemon is told of the progress there."""
        if self._job is not None:
            raise RuntimeError("load_state_dict: call it before `with loop:`")
        self.epoch, self._position, self.steps = state["epoch"], state["position"], state["steps"]
        self.samples_done, self._seed = state["samples_done"], state["seed"]
        if state["batch_size"] in self.plan.batch_sizes:
            self.plan.batch_size = state["batch_size"]
        self._order, self._group = None, Group()

    def __enter__(self) -> "GovernedLoop":
        if self._rank == 0:
            plan, length = self.plan, len(self._dataset)
            options: Dict[str, Any] = {"features": features_of(self._model), "learning_rate_rule": self._rule}
            options["signature"] = signature_of(self._model, self._optimizer)
            if plan.epochs is not None:
                options["samples_total"] = plan.epochs * length
            options.update(self._options)
            self._job = register(
                self._workload, [size * self._world for size in plan.batch_sizes], plan.batch_size * self._world,
                sync=self._sync, samples_done=self.samples_done, resume=self.samples_done > 0, **options
            )  # fmt: skip
        self._take_size()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._job is not None:
            self._job.end()

    def pause(self, reason: str = "pause") -> Any:
        """``with loop.pause("evaluation"):`` around what is no training."""
        return self._job.pause(reason) if self._job is not None else contextlib.ExitStack()

    # Epochs and batches.

    def epochs(self) -> Iterator[int]:
        """The epochs still to train. After a ``break`` the present one goes on where it stopped."""
        while self.plan.epochs is None or self.epoch < self.plan.epochs:
            yield self.epoch

    def __iter__(self) -> Iterator[Any]:
        """The batches of the present epoch that are still to be trained; each wants one ``with loop.step():``."""
        order = self._epoch_order()
        while share(self._position, len(order), self.batch_size, self._rank, self._world, self._whole):
            if self._failed:  # its error, and with it what the failed step held, is gone by now
                self._failed = False
                free_memory()
            self._rebuild, self._group = False, Group()
            for batch in self._loader(order):
                self._open = True
                self._group.length = self._length_of(batch)
                yield batch
                if self._open:
                    raise RuntimeError("each batch wants one `with loop.step():`, also those that you leave out")
                if self._rebuild:
                    break
        self.epoch, self._position, self._order = self.epoch + 1, 0, None
        self._safe_point()

    def _epoch_order(self) -> Sequence[int]:
        if self._order is None:
            if self._order_of is not None:
                self._order = list(self._order_of(self.epoch))
            else:
                import torch  # noqa: PLC0415  needed here only

                generator = torch.Generator()
                generator.manual_seed(self._seed + self.epoch)
                self._order = torch.randperm(len(self._dataset), generator=generator).tolist()
        return self._order

    def _loader(self, order: Sequence[int]) -> Any:
        from torch.utils.data import DataLoader  # noqa: PLC0415  needed here only

        batches = Batches(order, self._position, self.batch_size, self._rank, self._world, self._whole)
        return DataLoader(self._dataset, batch_sampler=batches, **self._loader_options)

    # One batch.

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Around forward and backward of one batch.

        A batch that does not fit into memory is told to the daemon; its samples come again in smaller ones, and
        gradients and buffers are as before. The error goes on where there is no smaller one, with several processes
        (the others would wait for it for ever), and when it comes from the optimizer itself.
        """
        self._open = False
        self._begin_batch()
        try:
            if self._world > 1:
                with self._quiet():
                    yield
            else:
                yield
        except Exception as error:
            if not is_out_of_memory(error) or not self._shrink():
                raise
            return
        self._end_batch()

    def backward(self, loss: Any) -> None:
        """``loss.backward()``, where ``loss`` is the batch's mean: weighted as its share of the optimizer step."""
        if self._group.weight != 1.0:
            loss = loss * self._group.weight
        (loss if self._scaler is None else self._scaler.scale(loss)).backward()

    def _begin_batch(self) -> None:
        group, total = self._group, len(self._epoch_order())
        if group.taken == 0:
            trained = usable(total - self._position, self.batch_size, self._world, self._whole)
            group.size = min(self.batch_size * self.plan.accumulate * self._world, trained)
            if self.batch_size not in self._proven and self._world == 1:
                group.buffers = [(kept, kept.detach().clone()) for kept in self._model.buffers()]
        part = share(self._position + group.taken, total, self.batch_size, self._rank, self._world, self._whole)
        assert part is not None
        group.now = part.taken
        group.weight = part.taken / float(group.size)

    def _quiet(self) -> Any:
        """Gradients are exchanged between processes once an optimizer step, not once a batch."""
        group = self._group
        if group.taken + group.now < group.size and hasattr(self._model, "no_sync"):
            return self._model.no_sync()
        return contextlib.ExitStack()

    def _end_batch(self) -> None:
        group = self._group
        group.count(group.now)
        if group.taken < group.size:
            return
        self._rates.follow(self.batch_size)  # a checkpoint may have been loaded
        if self._scaler is not None and self._before_step is not None:
            self._scaler.unscale_(self._optimizer)
        if self._before_step is not None:
            self._before_step()
        if self._scaler is not None:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        else:
            self._optimizer.step()
        self._optimizer.zero_grad()
        self._proven.add(self.batch_size)
        self._position += group.taken
        self.samples_done += group.taken
        self.steps += 1
        if self._job is not None:
            self._job.step(group.taken, group.mean_length, group.batches)
        self._group = Group()
        if self.plan.every is not None and self.steps % self.plan.every == 0:
            self._safe_point()

    # The batch size.

    def _safe_point(self) -> None:
        if self._job is not None:
            self._job.safe_point()
        self._take_size()

    def _take_size(self) -> None:
        size = self._job.batch_size // self._world if self._job is not None else 0
        if self._world > 1:
            size = ranks.from_first(size, self._model)
        self._rebuild = self._rebuild or size != self.batch_size
        self.plan.batch_size = size
        self._rates.follow(size)

    def _shrink(self) -> bool:
        """The batch did not fit: undo what it did, tell it, and go on smaller. False where that cannot be."""
        failed = self.batch_size
        smaller = self._job.out_of_memory() if self._job is not None else False
        if not smaller or self._world > 1:
            log.error("traingov: batch size %d does not fit into memory, and cannot be made smaller in mid-run", failed)
            return False
        for kept, before in self._group.buffers:
            kept.copy_(before)
        self._optimizer.zero_grad()
        self._group = Group()
        self._take_size()
        self._rebuild = self._failed = True
        log.warning("traingov: batch size %d does not fit into memory; going on with %d", failed, self.batch_size)
        return True
