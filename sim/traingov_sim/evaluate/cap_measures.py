"""What a run under a changing cap is judged by, read off its trace: violations, latency, losses. Pure."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from traingov_policies.actions import AdviseBatch, SetGpuBounds

from ..twin import Moment, Twin
from .caps_over_time import CapSeries
from .regret import Truth

Array = NDArray[np.float64]
PICTURE_ROWS = 2880


def share_of(what: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    """The share of ``among`` in which ``what`` holds; 0 of none."""
    return float(what[among].mean()) if among.any() else 0.0


def profiling_spans(twin: Twin, begin_s: float) -> list[tuple[float, float]]:
    """From each advice to profile to the next advice to train, as far as they lie after ``begin_s``."""
    spans: list[tuple[float, float]] = []
    since: float | None = None
    for t_s, action in twin.actions:
        if isinstance(action, AdviseBatch):
            if action.phase == "profile" and since is None:
                since = t_s
            elif action.phase != "profile" and since is not None:
                spans.append((since, t_s))
                since = None
    if since is not None:
        spans.append((since, twin.t_s))
    return [(max(begin, begin_s), end) for begin, end in spans if end > begin_s]


def sensed_above(trace: list[Moment], caps: CapSeries, begin_s: float) -> float:
    """Share of steady windows whose mean of samples is above the cap."""
    times = np.array([m.t_s - begin_s for m in trace])
    watts = np.array([np.nan if m.input_power_w is None else m.input_power_w for m in trace])
    if len(times) < 3:
        return 0.0
    width = max(1, round(1.0 / float(np.median(np.diff(times)))))
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(watts))])
    mean_w = (sums[width:] - sums[:-width]) / width
    ends = times[width - 1 :]
    begins = np.array([b for b, _ in caps.steps])
    levels = np.array([w for _, w in caps.steps])
    index = np.maximum(0, np.searchsorted(begins, ends, side="right") - 1)
    fell = [b for (b, w), (_, v) in zip(caps.steps[1:], caps.steps, strict=False) if w < v]
    last = np.searchsorted(np.array(fell), ends, side="right") - 1
    since = ends - np.where(last >= 0, np.array([*fell, 0.0])[last], -1e9)
    steady = since >= 6.0
    return float((mean_w >= levels[index])[steady].mean()) if steady.any() else 0.0


def latencies(twin: Twin, caps: CapSeries, begin_s: float, trace: list[Moment]) -> list[int]:
    """Samples from a violated window of fresh readings to the guard's next write, one for each violation.

    Violations at the lowest clock are left out: there is nothing to write.
    Fresh: the window of 1 s began after the dead time of the last write, and the cap has not changed since. A
    violation that ends by itself within two samples is none; one that goes on unanswered counts with its length.
    Points that are being measured are left out: there the measurement, not the guard, ends a violation.
    """
    dead_s, floor_hz = twin.settings.guard.dead_time_s, twin.board.clock.table[0]
    writes = [t for t, action in twin.actions if isinstance(action, SetGpuBounds)]
    changes = [begin_s + b for b, _ in caps.steps]
    spans = profiling_spans(twin, begin_s)
    found: list[int] = []
    window: deque[tuple[float, float]] = deque()
    total, w, c, blind_s = 0.0, 0, 0, begin_s
    waiting: int | None = None
    for moment in trace:
        t, watts = moment.t_s, moment.input_power_w
        while w < len(writes) and writes[w] <= t:
            if waiting is not None:
                found.append(waiting)
            waiting, total, w, blind_s = None, 0.0, w + 1, max(blind_s, writes[w] + dead_s)
            window.clear()
        if c < len(changes) and changes[c] <= t:
            waiting, total, c = None, 0.0, c + 1
            window.clear()
        if waiting is not None:
            waiting += 1
        if t < blind_s or watts is None:
            continue
        window.append((t, watts))
        total += watts
        while window[0][0] < t - 1.0 + 1e-9:
            total -= window.popleft()[1]
        full = t - window[0][0] >= 1.0 - 1.5 * twin.settings.sampling_interval_s
        violated = full and total / len(window) >= caps.at(t - begin_s)
        if not violated:
            if waiting is not None and waiting > 2:
                found.append(waiting)
            waiting = None
        elif waiting is None and not any(begin <= t < end for begin, end in spans):
            lowest = moment.gpu_frequency_hz is not None and moment.gpu_frequency_hz <= floor_hz
            waiting = None if lowest else 0
    return found


def lost_by(
    trace: list[Moment], caps: CapSeries, begin_s: float, truth: Truth, rates: Array
) -> tuple[float, float]:  # fmt: skip
    """Shares of the best progress at each moment that are lost by the batch size, and by its clock.

    By the batch size: what its best clock below the cap lacks to the best point below it. By the clock: what the
    present clock lacks to that. The rest of a loss is pauses: changes of the batch size, measuring at rest.
    """
    clocks = np.array(truth.clocks_hz)
    seen = [m for m in trace if m.batch_size is not None and m.gpu_frequency_hz is not None]
    i = np.array([truth.sizes.index(m.batch_size or 0) for m in seen], dtype=int)
    hz = np.array([m.gpu_frequency_hz for m in seen], dtype=float)
    j = np.array([int(np.abs(clocks - x).argmin()) for x in np.unique(hz)])[np.unique(hz, return_inverse=True)[1]]
    levels = np.array([caps.at(m.t_s - begin_s) for m in seen])
    caps_w, which = np.unique(levels, return_inverse=True)
    fits = np.array([np.where(truth.peak_w < w, rates, rates.min(axis=1, keepdims=True)).max(axis=1) for w in caps_w])
    at_batch = fits[which, i]
    best = fits.max(axis=1)[which]
    total = float(best.sum())
    return float((best - at_batch).sum()) / total, float((at_batch - rates[i, j]).sum()) / total


def picture(
    trace: list[Moment], caps: CapSeries, begin_s: float
) -> tuple[tuple[float, float, float, int | None, int | None], ...]:
    """Per half second, at most PICTURE_ROWS of them: time, mean power, cap, clock, batch size."""
    step_s = max(0.5, caps.seconds / PICTURE_ROWS)
    out: list[tuple[float, float, float, int | None, int | None]] = []
    held: list[float] = []
    edge = begin_s + step_s
    for m in trace:
        if m.t_s >= edge and held:
            out.append(
                (round(edge - begin_s, 1), round(float(np.mean(held)), 3), caps.at(edge - step_s / 2 - begin_s),
                 m.gpu_frequency_hz, m.batch_size)
            )  # fmt: skip
            held = []
            edge += step_s
        if m.input_power_w is not None:
            held.append(m.input_power_w)
    return tuple(out)
