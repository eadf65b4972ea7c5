"""The window that is being measured: a stretch of steps at one batch size, and its two edges."""

import time
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Type

REPORT_INTERVAL_S = 0.1
_NEVER_S = float("inf")


class Window:
    """Counts steps and samples between two moments.

    No window is open before the first step, while paused, and after each change of the batch size until one step is
    done: that step holds building, warm-up and compilation. It counts as progress all the same. Times are
    CLOCK_MONOTONIC seconds. ``synchronise`` waits for the device where a window is to be exact, and
    says whether it did.
    """

    def __init__(self, synchronise: Callable[[], bool], samples_done: int) -> None:
        self._synchronise = synchronise
        self._clock = time.monotonic
        self._done = samples_done
        self._steps = 0
        self._samples = 0
        self._length_sum = 0.0
        self._length_samples = 0
        self._begin_s: Optional[float] = None
        self._begin_synced = False
        self._due_s = 0.0
        self._step_s: Optional[float] = None  # of the last synchronised window

    @property
    def is_open(self) -> bool:
        """Whether steps are being measured."""
        return self._begin_s is not None

    @property
    def samples_done(self) -> int:
        """All samples so far, measured or not."""
        return self._done + self._whole_samples()

    @property
    def samples_closed(self) -> int:
        """The samples so far without those of the open window, which are still to be reported."""
        return self._done

    def add(self, n: int, seq_len_avg: Optional[float], steps: int = 1) -> bool:
        """Count ``steps`` steps of ``n`` samples in all. True when the window is full."""
        self._steps += steps
        self._samples += n
        if seq_len_avg is not None:
            self._length_sum += seq_len_avg * n
            self._length_samples += n
        return self._clock() >= self._due_s

    def add_length(self, mean: float, n: int) -> None:
        """The mean sequence length of ``n`` samples."""
        self._length_sum += mean * n
        self._length_samples += n

    def open(self) -> None:
        """Measure from now on."""
        self._begin_synced = self._synchronise()
        self._begin_s = self._clock()
        self._due_s = self._begin_s + self._length_s()

    def cut(self, batch_size: int) -> Optional[Dict[str, Any]]:
        """Close the open window and begin the next at the same moment.

        The fields of ``steps``; None where no window was open or nothing was done in it.
        """
        if self._begin_s is None:
            return None
        synced = self._synchronise()
        end_s = self._clock()
        elapsed_s = end_s - self._begin_s
        samples = self._whole_samples()
        if self._steps and synced and self._begin_synced:
            self._step_s = elapsed_s / self._steps
        report: Optional[Dict[str, Any]] = None
        if self._steps and samples > 0 and elapsed_s > 0:
            length = self._length_sum / self._length_samples if self._length_samples else None
            report = {
                "batch_size": batch_size,
                "steps": self._steps,
                "samples": samples,
                "elapsed_s": elapsed_s,
                "end_s": end_s,
                "synced": synced and self._begin_synced,
                "seq_len_avg": length if length is not None and 0 < length < 1e9 else None,
            }
        self._forget_counts()
        self._begin_s, self._begin_synced = end_s, synced
        self._due_s = end_s + self._length_s()
        return report

    def close(self) -> None:
        """Measure nothing until ``open``; what was counted is progress. The next step is due at once."""
        self._forget_counts()
        self._begin_s, self._due_s, self._step_s = None, 0.0, None

    def stop(self) -> None:
        """Measure nothing any more."""
        self.close()
        self._due_s = _NEVER_S

    def _length_s(self) -> float:
        """How long the next window is. Steps are launched ahead of the device, so a clock looked at on launching says
        nothing of long steps: where windows are exact, one step is measured first, and each by itself if it is long.
        """
        if self._begin_synced and (self._step_s is None or self._step_s >= REPORT_INTERVAL_S):
            return 0.0
        return REPORT_INTERVAL_S

    def _forget_counts(self) -> None:
        self._done += self._whole_samples()
        self._steps = self._samples = self._length_samples = 0
        self._length_sum = 0.0

    def _whole_samples(self) -> int:
        # A script may count with a NumPy or tensor scalar; JSON takes neither.
        try:
            return max(0, int(self._samples))
        except (ValueError, OverflowError):  # NaN or infinity
            return 0


class Pause:
    """Stops the measuring of a job for the length of a ``with`` block. May be nested."""

    def __init__(self, change: Callable[[int, str], None], reason: str) -> None:
        self._change = change
        self._reason = reason

    def __enter__(self) -> "Pause":
        self._change(1, self._reason)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._change(-1, self._reason)
