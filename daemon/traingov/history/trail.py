"""A run's timeline as the loop keeps it: second by second, in long runs coarser, and never more than ``MOST_SPANS``.

Coarser stretches keep the least and the largest reading, so that no peak is lost. A sample costs a few additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from traingov_policies.events import Sample

from .records import Span

MOST_SPANS = 1440
_SECOND_S = 1.0

_Number = TypeVar("_Number", int, float)


class Trail:
    """A run's stretches: about ``2 ** merges`` seconds each, and fewer than ``MOST_SPANS``."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.merges = 0
        self._open: Span | None = None  # shorter than the others are

    def add(self, span: Span) -> None:
        """Take the next second, or a silence."""
        last = self._open
        if last is not None and (last.readings > 0) != (span.readings > 0):
            self._keep(last)
            last = None
        self._open = span if last is None else joined(last, span)
        if self._open.width_s >= 0.99 * _SECOND_S * 2**self.merges:
            self.end()

    def end(self) -> None:
        """The last stretch is no longer than it is."""
        if self._open is not None:
            self._keep(self._open)
            self._open = None

    def _keep(self, span: Span) -> None:
        self.spans.append(span)
        if len(self.spans) >= MOST_SPANS:
            self.spans = coarser(self.spans)
            self.merges += 1


class Second:
    """What the samples of the present second showed; the same for every running job."""

    __slots__ = ("_count", "_high", "_least", "_low", "_most", "_sum", "_window", "since_s", "until_s")

    def __init__(self) -> None:
        self.since_s = 0.0
        self.begin(float("-inf"))

    def begin(self, t_s: float) -> None:
        """Forget what was seen: the next stretch begins at ``t_s``."""
        self.since_s, self.until_s = t_s, t_s + _SECOND_S
        self._count, self._sum, self._least, self._most = 0, 0.0, float("inf"), float("-inf")
        self._window: float | None = None
        self._low: int | None = None
        self._high: int | None = None

    def add(self, sample: Sample, window_w: float | None) -> None:
        """Take a sample and the mean over the cap's window up to it."""
        power, hz = sample.input_power_w, sample.gpu_frequency_hz
        if power is not None:
            self._count += 1
            self._sum += power
            if power < self._least:  # noqa: PLR1730  min() costs three times as much
                self._least = power
            if power > self._most:  # noqa: PLR1730
                self._most = power
            if window_w is not None and (self._window is None or window_w > self._window):
                self._window = window_w
        if hz is not None and hz != self._high:
            self._low = hz if self._low is None or hz < self._low else self._low
            self._high = hz if self._high is None or hz > self._high else self._high

    def span(self, began_s: float, now_s: float, *, cap_w: float | None, clock_hz: int | None, batch_size: int) -> Span:
        """The stretch up to ``now_s`` of a run that began at ``began_s``."""
        start_s = max(self.since_s, began_s)
        seen = self._count > 0
        return Span(
            start_s - began_s, now_s - start_s, self._count, self._sum / self._count if seen else None,
            self._least if seen else None, self._most if seen else None, self._window, cap_w,
            clock_hz if self._low is None else self._low, clock_hz if self._high is None else self._high, batch_size,
        )  # fmt: skip


def coarser(spans: Sequence[Span]) -> list[Span]:
    """About half as many stretches: neighbours in pairs.

    One without a reading stays apart from one with readings, as long as that leaves few enough.
    """
    pairs = [(spans[i], spans[i + 1] if i + 1 < len(spans) else None) for i in range(0, len(spans), 2)]
    out: list[Span] = []
    for one, two in pairs:
        if two is None:
            out.append(one)
        elif (one.readings > 0) == (two.readings > 0):
            out.append(joined(one, two))
        else:
            out += [one, two]
    if len(out) <= 3 * len(spans) // 4:
        return out
    return [one if two is None else joined(one, two) for one, two in pairs]


def joined(one: Span, two: Span) -> Span:
    """Two neighbours as one stretch."""
    readings = one.readings + two.readings
    power = None
    if readings:
        power = ((one.power_w or 0.0) * one.readings + (two.power_w or 0.0) * two.readings) / readings
    return Span(
        one.start_s, two.start_s + two.width_s - one.start_s, readings, power, _of(min, one.least_w, two.least_w),
        _of(max, one.most_w, two.most_w), _of(max, one.window_w, two.window_w), two.cap_w,
        _of(min, one.low_hz, two.low_hz), _of(max, one.high_hz, two.high_hz), two.batch_size,
    )  # fmt: skip


def _of(which: Callable[..., _Number], one: _Number | None, two: _Number | None) -> _Number | None:
    known = [value for value in (one, two) if value is not None]
    return which(known) if known else None
