"""The order of an epoch's samples, cut into batches whose size may change at any sample. Plain Python."""

from typing import Iterator, List, NamedTuple, Optional, Sequence

Share = NamedTuple("Share", [("start", int), ("stop", int), ("taken", int)])


def share(position: int, total: int, batch: int, rank: int = 0, world: int = 1, whole: bool = False) -> Optional[Share]:
    """What process ``rank`` of ``world`` trains next: ``start`` to ``stop`` of the order; all together take ``taken``.

    Each process takes ``batch``. What is left at the end is shared as evenly as it goes, or left out where ``whole``
    batches are asked for, or where there is not one sample for each process. None: the epoch is over.
    """
    taken = min(batch * world, total - position)
    if taken < (batch * world if whole else world):
        return None
    each, more = divmod(taken, world)
    start = position + rank * each + min(rank, more)
    return Share(start, start + each + (1 if rank < more else 0), taken)


def usable(total: int, batch: int, world: int = 1, whole: bool = False) -> int:
    """How many of ``total`` samples an epoch trains that keeps one batch size."""
    if whole:
        return total - total % (batch * world)
    left = total % (batch * world)
    return total - left if left < world else total


class Batches:
    """A batch sampler from ``position`` on: give it to a ``DataLoader`` as ``batch_sampler``.

    What a loader's workers fetch ahead does not move ``position``: a new ``Batches`` begins where training is.
    """

    def __init__(self, order: Sequence[int], position: int, batch: int, rank: int, world: int, whole: bool) -> None:
        self._order = order
        self._position, self._batch = position, batch
        self._rank, self._world, self._whole = rank, world, whole

    def __iter__(self) -> Iterator[List[int]]:
        position = self._position
        while True:
            part = share(position, len(self._order), self._batch, self._rank, self._world, self._whole)
            if part is None:
                return
            yield list(self._order[part.start : part.stop])
            position += part.taken

    def __len__(self) -> int:
        left = len(self._order) - self._position
        batch = self._batch * self._world
        return (usable(left, self._batch, self._world, self._whole) + batch - 1) // batch
