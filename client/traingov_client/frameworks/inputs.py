"""What a batch says of itself: how many samples it holds, and how long they are without padding. Imports no library."""

from typing import Any, Iterable, Optional


def samples_in(batch: Any) -> Optional[int]:
    """The first dimension of the first tensor or array in ``batch``, a mapping or sequence perhaps; None: no such."""
    for part in _parts(batch):
        shape = getattr(part, "shape", None)
        if shape is not None and len(shape) > 0:
            return int(shape[0])
    return None


def mean_length(batch: Any) -> Optional[float]:
    """The mean number of tokens of a sample by the batch's ``attention_mask`` [samples][tokens]; None: it has none.

    On a tensor that is on a GPU this waits for the GPU.
    """
    mask = batch.get("attention_mask") if hasattr(batch, "get") else None
    if mask is None or len(mask.shape) != 2 or mask.shape[0] == 0:
        return None
    tokens = float(mask.sum())
    return tokens / int(mask.shape[0])


class Lengths:
    """Mean lengths of batches. A mask on a GPU is looked at seldom, since looking waits for the GPU."""

    def __init__(self, first: int = 16, then_every: int = 64) -> None:
        self._first, self._every = first, then_every
        self._seen = 0

    def of(self, batch: Any) -> Optional[float]:
        """``mean_length`` of ``batch``, or None where it is not looked at."""
        mask = batch.get("attention_mask") if hasattr(batch, "get") else None
        if mask is None:
            return None
        if getattr(getattr(mask, "device", None), "type", "cpu") != "cpu":
            self._seen += 1
            if self._seen > self._first and self._seen % self._every:
                return None
        return mean_length(batch)


def _parts(batch: Any) -> Iterable[Any]:
    if hasattr(batch, "shape"):
        return [batch]
    if hasattr(batch, "values"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return [part for item in batch for part in _parts(item)]
    return []
