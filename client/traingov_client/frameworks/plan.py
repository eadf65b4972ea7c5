"""How a loop trains: its batch sizes, and how many batches make an optimizer step. Checked before training begins."""

from typing import List, Optional, Sequence

from .. import arguments


class Plan:
    """``batch_size`` is the present one, of one process; it may change. Raises ValueError for what makes no sense."""

    def __init__(
        self,
        batch_sizes: Sequence[int],
        batch_size: Optional[int],
        accumulate: int,
        effective_batch: Optional[int],
        world: int,
        epochs: Optional[int],
        every: Optional[int],
    ) -> None:
        self.batch_sizes: List[int] = arguments.batch_sizes(batch_sizes)
        self.batch_size = self.batch_sizes[-1] if batch_size is None else batch_size
        if self.batch_size not in self.batch_sizes:
            raise ValueError("batch_size must be one of batch_sizes %r, not %r" % (self.batch_sizes, batch_size))
        self._accumulate = arguments.whole("accumulate", accumulate, 1, arguments.MAX_BATCH)
        self._effective = effective_batch
        self._world = world
        self.epochs = None if epochs is None else arguments.whole("epochs", epochs, 1, arguments.MAX_COUNT)
        self.every = None if every is None else arguments.whole("every", every, 1, arguments.MAX_COUNT)
        if effective_batch is None:
            return
        arguments.whole("effective_batch", effective_batch, 1, arguments.MAX_BATCH)
        if accumulate != 1:
            raise ValueError("give accumulate or effective_batch, not both")
        unfit = [size for size in self.batch_sizes if effective_batch % (size * world)]
        if unfit:
            processes = "" if world == 1 else " times %d processes" % world
            raise ValueError(
                "effective_batch %d is not a multiple of batch size %s%s; leave those out"
                % (effective_batch, ", ".join(map(str, unfit)), processes)
            )

    @property
    def accumulate(self) -> int:
        """Batches per optimizer step at the present batch size."""
        if self._effective is not None:
            return self._effective // (self.batch_size * self._world)
        return self._accumulate
