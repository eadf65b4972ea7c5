"""Energy and window means of a power signal: pure scalar arithmetic over (time, watts) samples.

Times are CLOCK_MONOTONIC seconds, power is watts. A reading that is missing is None; it is never taken as 0 W
and nothing is invented in its place (DESIGN 5.5). Between two samples the signal is taken as a straight line
(trapezoid rule). A sample whose time is not after the one before it adds no area: lines of tegrastats that
arrive together carry one arrival time, and then the last of them counts. A time that runs backwards is ignored.

Plain floats on purpose: this runs at every sample, and NumPy costs more than the sum for one scalar.
"""

from __future__ import annotations

from collections import deque
from math import fsum  # exact, so that a replay on another Python gives the same bits

_BUCKETS = 1024  # a window is kept in at most about this many pieces, however long it is and however fast it fills
_TOLERANCE = 1e-9  # seconds by which rounding may shorten a covered window


class EnergyMeter:
    """Integrates power over time, and says how much of the time it could not see.

    ``expected_interval_s`` is the sampling interval (None: unknown, then ``missed`` counts only samples
    without a reading). A gap between readings longer than ``max_gap_s`` is not integrated.
    Raises ValueError for a ``max_gap_s`` that is not positive.
    """

    __slots__ = (
        "_covered_s",
        "_energy_j",
        "_first_t",
        "_last_power",
        "_last_t",
        "_max_gap_s",
        "_missed",
        "_seen_t",
        "expected_interval_s",
    )

    def __init__(self, expected_interval_s: float | None = 0.01, max_gap_s: float = 1.0) -> None:
        if not max_gap_s > 0:
            raise ValueError(f"energy meter: max_gap_s must be positive, not {max_gap_s!r}")
        self.expected_interval_s = expected_interval_s
        self._max_gap_s = max_gap_s
        self._energy_j = 0.0
        self._covered_s = 0.0
        self._missed = 0
        self._first_t: float | None = None
        self._seen_t = 0.0  # time of the newest sample, with a reading or without
        self._last_t = 0.0  # time of the newest reading
        self._last_power: float | None = None

    def add(self, t_s: float, power_w: float | None) -> None:
        """Take one sample: ``power_w`` watts at ``t_s``, or None where there was no reading."""
        if self._first_t is None:
            self._first_t = self._seen_t = t_s
        elif t_s < self._seen_t:
            return
        else:
            interval = self.expected_interval_s
            since = t_s - self._seen_t
            if interval and since > 1.5 * interval:
                self._missed += round(since / interval) - 1
            self._seen_t = t_s
        if power_w is None:
            self._missed += 1
            self._last_power = None
            return
        if self._last_power is not None:
            elapsed = t_s - self._last_t
            if elapsed <= self._max_gap_s:
                self._energy_j += 0.5 * (self._last_power + power_w) * elapsed
                self._covered_s += elapsed
        self._last_t = t_s
        self._last_power = power_w

    @property
    def energy_j(self) -> float:
        """Joules over the time that was covered. A lower bound of the true energy where ``gap_s`` is not 0."""
        return self._energy_j

    @property
    def covered_s(self) -> float:
        """Seconds that were integrated."""
        return self._covered_s

    @property
    def gap_s(self) -> float:
        """Seconds between the first and the newest sample that were not integrated."""
        if self._first_t is None:
            return 0.0
        return max(0.0, self._seen_t - self._first_t - self._covered_s)

    @property
    def missed(self) -> int:
        """Samples that should have come and did not, or came without a reading."""
        return self._missed

    @property
    def mean_power_w(self) -> float | None:
        """Mean watts over the covered time; None before anything was covered."""
        return self._energy_j / self._covered_s if self._covered_s > 0 else None


class WindowMean:
    """Time-weighted mean of a signal over the last ``window_s`` seconds before the newest sample.

    ``value`` is None until the readings cover ``coverage`` (a share, 0 < coverage ≤ 1) of the window. A sample
    without a reading, and a gap longer than ``max_gap_s`` (default: the window), are not bridged: that time
    is not covered. O(1) amortised per sample and at most about a thousand pieces in memory: pieces shorter than
    1/1024 of the window are joined, which blurs the window's old edge by as much. The running sum is rebuilt
    once per turn of the window, so that rounding cannot add up over days.
    Raises ValueError naming the argument that makes no sense.
    """

    __slots__ = (
        "_area",
        "_covered",
        "_evicted",
        "_last_t",
        "_last_value",
        "_max_gap_s",
        "_needed_s",
        "_piece_s",
        "_pieces",
        "window_s",
    )

    def __init__(self, window_s: float, coverage: float = 0.8, max_gap_s: float | None = None) -> None:
        if not window_s > 0:
            raise ValueError(f"window mean: window_s must be positive, not {window_s!r}")
        if not 0 < coverage <= 1:
            raise ValueError(f"window mean: coverage must lie in (0, 1], not {coverage!r}")
        self.window_s = window_s
        self._needed_s = coverage * window_s - _TOLERANCE
        self._max_gap_s = window_s if max_gap_s is None else max_gap_s
        self._piece_s = window_s / _BUCKETS
        # [begin, end, length that was covered, area]; length ≤ end - begin
        self._pieces: deque[list[float]] = deque()
        self._area = 0.0
        self._covered = 0.0
        self._evicted = 0
        self._last_t: float | None = None
        self._last_value: float | None = None

    def add(self, t_s: float, value: float | None) -> None:
        """Take one sample; None where there was no reading."""
        before_t, before = self._last_t, self._last_value
        if before_t is not None and t_s < before_t:
            return
        self._last_t, self._last_value = t_s, value
        if before_t is None:
            return
        length = t_s - before_t
        if value is not None and before is not None and 0 < length <= self._max_gap_s:
            self._push(before_t, t_s, length, 0.5 * (before + value) * length)
        self._evict(t_s - self.window_s)

    def _push(self, begin: float, end: float, length: float, area: float) -> None:
        pieces = self._pieces
        self._area += area
        self._covered += length
        if pieces:
            newest = pieces[-1]
            if end - newest[0] <= self._piece_s:
                newest[1] = end
                newest[2] += length
                newest[3] += area
                return
        pieces.append([begin, end, length, area])

    def _evict(self, edge: float) -> None:
        """Drop what ended before ``edge``."""
        pieces = self._pieces
        while pieces and pieces[0][1] <= edge:
            old = pieces.popleft()
            self._covered -= old[2]
            self._area -= old[3]
            self._evicted += 1
        if self._evicted > len(pieces):
            self._evicted = 0
            self._covered = fsum(piece[2] for piece in pieces)
            self._area = fsum(piece[3] for piece in pieces)

    @property
    def value(self) -> float | None:
        """The mean over the window that ends at the newest sample; None while too little of it is covered."""
        pieces = self._pieces
        if not pieces or self._last_t is None:
            return None
        covered, area = self._covered, self._area
        begin, end, length, piece_area = pieces[0]
        outside = self._last_t - self.window_s - begin
        if outside > 0:  # the oldest piece straddles the edge: take the share of it that lies inside
            share = outside / (end - begin)
            covered -= share * length
            area -= share * piece_area
        if covered < self._needed_s or covered <= 0:
            return None
        return area / covered

    def mean(self, now_s: float) -> float | None:
        """As ``value``, but None as well when the newest sample is older than what ``coverage`` leaves open."""
        if self._last_t is None or now_s - self._last_t > self.window_s - self._needed_s:
            return None
        return self.value

    def clear(self) -> None:
        """Forget everything, as after a change that must not be mixed with what was before."""
        self._pieces.clear()
        self._area = self._covered = 0.0
        self._evicted = 0
        self._last_t = self._last_value = None


class TimeAbove:
    """How long, how far and by how much energy the window mean of a signal lay above a limit (DESIGN 8, cap).

    ``limit_w`` may be changed or set to None (no limit: the time counts neither as above nor as judged).
    """

    __slots__ = ("_last_t", "above_s", "judged_s", "limit_w", "mean_w", "overshoot_j", "window", "worst_w")

    def __init__(self, limit_w: float | None, window_s: float = 1.0, coverage: float = 0.8) -> None:
        self.limit_w = limit_w
        self.window = WindowMean(window_s, coverage)
        self.above_s = 0.0
        self.judged_s = 0.0
        self.overshoot_j = 0.0
        self.worst_w: float | None = None
        self.mean_w: float | None = None  # of the window that ends at the newest sample
        self._last_t: float | None = None

    def add(self, t_s: float, power_w: float | None) -> None:
        """Take one sample: ``power_w`` watts at ``t_s``, or None where there was no reading."""
        before = self._last_t
        if before is not None and t_s < before:
            return
        self.window.add(t_s, power_w)
        self._last_t = t_s
        mean = self.mean_w = self.window.value
        if before is None or mean is None or power_w is None or self.limit_w is None:
            return
        elapsed = min(t_s - before, self.window.window_s)
        self.judged_s += elapsed
        if self.worst_w is None or mean > self.worst_w:
            self.worst_w = mean
        if mean > self.limit_w:
            self.above_s += elapsed
            self.overshoot_j += (mean - self.limit_w) * elapsed

    @property
    def share(self) -> float | None:
        """Share of the judged time that lay above the limit; None before anything could be judged."""
        return self.above_s / self.judged_s if self.judged_s > 0 else None
