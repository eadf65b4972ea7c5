"""The batches that make one optimizer step."""

from typing import Any, Optional


class Group:
    """The batches of one optimizer step, so far. ``buffers``: pairs of a module's buffer and what it held before."""

    def __init__(self) -> None:
        self.size = self.taken = self.now = self.batches = 0  # samples, samples, samples, batches
        self.weight = 1.0
        self.length: Optional[float] = None  # of the present batch
        self.buffers: Any = ()
        self._length_sum, self._length_samples = 0.0, 0

    def count(self, samples: int) -> None:
        """A batch of ``samples`` is done."""
        self.taken += samples
        self.batches += 1
        if self.length is not None:
            self._length_sum += self.length * samples
            self._length_samples += samples

    @property
    def mean_length(self) -> Optional[float]:
        """The mean sequence length of the samples whose length is known; None: of none."""
        return self._length_sum / self._length_samples if self._length_samples else None
