"""Step time and power as they are at the point that is set, over the table's: windows of some seconds."""

from __future__ import annotations

from ..events import StepsReported

WINDOW_S = 3.0
_LONGEST_S = 30.0  # a window without a step by then says nothing
_COVERED = 0.9  # share of the window that reported steps must cover: else the job paused


class LiveWindow:
    """Collects from ``begin`` on; ``time_s`` (a sample's) and ``power_w`` are those of the last two windows' agreement.

    Of two windows in a row the one nearer to what is expected counts, so that a single stalled second says nothing.
    """

    def __init__(self) -> None:
        self._begin_s = float("inf")
        self._batch: int | None = None
        self._restart()
        self._before: tuple[float, float | None] | None = None
        self._last: tuple[float, float | None] | None = None

    def begin(self, t_s: float, batch_size: int | None) -> None:
        """Another point is set and settled at ``t_s``."""
        self._begin_s, self._batch = t_s, batch_size
        self._restart()
        self._before = self._last = None

    def stop(self) -> None:
        """Nothing that comes now is the job at the clock asked for."""
        if self._begin_s != float("inf"):
            self.begin(float("inf"), None)

    def power(self, t_s: float, power_w: float) -> None:
        """A believed reading."""
        if t_s >= self._begin_s:
            self._sum_w += power_w
            self._count += 1

    def steps(self, report: StepsReported) -> None:
        """A step report of the only job."""
        if report.batch_size != self._batch or report.t_s - report.elapsed_s < self._begin_s - 1e-3:
            return
        self._samples += report.samples
        self._elapsed_s += report.elapsed_s
        self._reports += 1
        length = report.t_s - self._begin_s
        if length < WINDOW_S or self._reports < 2:
            if length > _LONGEST_S:
                self._next(report.t_s)
            return
        if self._elapsed_s >= _COVERED * length and self._samples:
            mean = self._sum_w / self._count if self._count else None
            self._before, self._last = self._last, (self._elapsed_s / self._samples, mean)
        self._next(report.t_s)

    def ratios(self, time_s: float, power_w: float | None) -> tuple[float | None, float | None]:
        """Time and power over what is expected (seconds a sample, watts); None before two windows are over."""
        if self._before is None or self._last is None:
            return None, None
        (t0, w0), (t1, w1) = self._before, self._last
        power = None if power_w is None or w0 is None or w1 is None else _nearer(w0 / power_w, w1 / power_w)
        return _nearer(t0 / time_s, t1 / time_s), power

    def _next(self, t_s: float) -> None:
        self._begin_s = t_s
        self._restart()

    def _restart(self) -> None:
        self._sum_w, self._count = 0.0, 0
        self._samples, self._elapsed_s, self._reports = 0, 0.0, 0


def _nearer(a: float, b: float) -> float:
    return a if abs(a - 1) < abs(b - 1) else b
