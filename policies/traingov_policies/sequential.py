"""Which batch size to train next on the proxy, and when to stop: one after another, where the choice is undecided.

A relation vector serves boards and caps that the server does not know. A run is therefore judged by a set of *curves*:
each is the time per sample over the batch size on one device under one cap, of which only the shape matters. Without a
table they are a family of device shapes (``device_family``); with one, the board's own under a range of caps
(``lut_curves``). For each curve the choice is the batch size of least T·N; its loss is how much longer the choice
takes than the best. Two figures decide, both means over the curves:

- the expected loss of choosing now: drawn from the posterior of N (``belief``);
- the value of a batch size: by how much its remaining runs are expected to shorten what is chosen afterwards
  (the knowledge gradient of Frazier, Powell and Dayanik, 2009, on log T·N).

Training starts with the smallest, the middle and the largest size and goes on with the size of largest value. It stops
where the expected loss is at most ``tolerance`` or no size is worth more than a fifth of that, or at the limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .belief import Belief, Floats, Runs, learn, reached, usable, worth_trying
from .lut import Lut
from .select import below_cap
from .values import OperatingPoint

HALF_SATURATION = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0)
"""Fixed cost of a step over the cost of the largest batch's samples: from a device that is busy with any batch to one
that would gain a factor two beyond the largest."""
CLOCK_LOSS = (0.0, 0.15, 0.3)
"""Exponent of b by which a cap slows larger batches down, since they draw more power. The paper's ResNet18 at 5 W is
1.32 times as fast at half the batch: 0.4; most cells lie below."""
CHANCE_TO_REACH = 0.5
"""Of a size beside one that missed the target."""
STOP_SHARE = 0.2
_DRAWS = 256
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Limits:
    """At most ``sizes`` batch sizes and ``runs`` runs of each; stop at an expected loss of ``tolerance`` (a share).

    A tolerance of 0 uses up every run that the limits allow.
    """

    sizes: int = 5
    runs: int = 4
    tolerance: float = 0.0005

    def __post_init__(self) -> None:
        if self.sizes < 1 or self.runs < 1 or not 0 <= self.tolerance < 1:
            raise ValueError(
                f"sequential design: at least one size and run, tolerance a share, not {self.sizes}, {self.runs}, "
                f"{self.tolerance}"
            )


@dataclass(frozen=True)
class Step:
    """What to do next: train each of ``batch_sizes`` once more (empty: stop), and ``why``, in words.

    ``expected_loss`` is that of choosing now, a share of time averaged over the curves; None before it can be told.
    """

    batch_sizes: tuple[int, ...]
    why: str
    expected_loss: float | None = None


def device_family(batch_sizes: Sequence[int]) -> Floats:
    """Log time per sample, [curve][B], of the family: a fixed cost per step, and a clock that falls with the batch."""
    share = np.asarray(batch_sizes, dtype=float) / max(batch_sizes)
    return np.array([np.log1p(h / share) + c * np.log(share) for h in HALF_SATURATION for c in CLOCK_LOSS])


def lut_curves(lut: Lut, batch_sizes: Sequence[int], caps_w: Iterable[float | None]) -> Floats:
    """Log T_s of the fastest feasible point, [cap][B]; inf where a size has none. Caps that allow nothing are dropped.

    Raises ValueError where no cap leaves a point.
    """
    rows = []
    for cap_w in caps_w:
        row = []
        for b in batch_sizes:
            cells = [lut.cell(OperatingPoint(b, f)) for f in lut.gpu_frequencies_hz] if b in lut.batch_sizes else []
            times = [c.time_s for c in cells if c.time_s and below_cap(c.peak_power_w, cap_w)]
            row.append(math.log(min(times)) if times else math.inf)
        if min(row) < math.inf:
            rows.append(row)
    if not rows:
        raise ValueError(
            f"the table of {lut.workload} on {lut.board} has no point for {list(batch_sizes)} under any cap"
        )
    return np.array(rows)


def lut_caps_w(lut: Lut, shares: Sequence[float] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)) -> tuple[float | None, ...]:
    """Caps in watts at ``shares`` of the way from the table's lowest peak power to its highest; last, no cap."""
    powers = [p for row in lut.peak_power_w for p in row if p is not None]
    if not powers:
        return (None,)
    low, high = min(powers), max(powers)
    return (*(low + share * (high - low) for share in shares), None)


def start_sizes(batch_sizes: Sequence[int], count: int = 3) -> tuple[int, ...]:
    """The smallest, the largest and those nearest to even log spacing between them."""
    sizes = sorted(batch_sizes)
    if len(sizes) <= count:
        return tuple(sizes)
    if count == 1:
        return (sizes[len(sizes) // 2],)
    wanted = np.linspace(math.log(sizes[0]), math.log(sizes[-1]), count)
    chosen: list[int] = []
    for x in wanted:
        chosen.append(min((b for b in sizes if b not in chosen), key=lambda b: abs(math.log(b) - x)))
    return tuple(sorted(chosen))


def next_step(
    batch_sizes: Sequence[int],
    runs: Runs,
    curves: Floats | None = None,
    limits: Limits | None = None,
    *,
    spent: Mapping[int, int] | None = None,
    at_once: int = 1,
) -> Step:
    """What to train next, given the finished ``runs``; at most ``at_once`` runs, to be done side by side.

    ``curves`` is log time per sample, [curve][B] in the order of ``batch_sizes`` (default: ``device_family``).
    ``spent`` counts runs that gave nothing (they raised): they use up runs and sizes, and a size that only ever failed
    is not asked for again. For several at once, runs already asked for are taken to end as expected.
    """
    sizes = tuple(batch_sizes)
    curves = device_family(sizes) if curves is None else np.asarray(curves, dtype=float)
    if curves.ndim != 2 or curves.shape[1] != len(sizes):
        raise ValueError(f"sequential design: curves must be [curve][{len(sizes)}], not {curves.shape}")
    limits = limits or Limits()
    lost = dict(spent or {})
    known: dict[int, list[float | None]] = {b: list(runs[b]) for b in sizes if runs.get(b)}
    planned: list[int] = []
    first: Step | None = None
    while len(planned) < at_once:
        step = _one(sizes, known, curves, limits, lost)
        first = first or step
        if not step.batch_sizes:
            break
        b = step.batch_sizes[0]
        if b in planned and not any(reached(known).values()):
            break
        planned.append(b)
        expected = _expected(sizes, known, b)
        if expected is None:
            lost[b] = lost.get(b, 0) + 1  # nothing known yet: only so that it is not asked for twice
        else:
            known.setdefault(b, []).append(expected)
    assert first is not None
    return Step(tuple(planned), first.why, first.expected_loss)


def _expected(sizes: tuple[int, ...], known: Runs, b: int) -> float | None:
    if not any(reached(known).values()):
        return None
    return math.exp(float(learn(sizes, known).mean[sizes.index(b)]))


def _one(
    sizes: tuple[int, ...],
    runs: Mapping[int, list[float | None]],
    curves: Floats,
    limits: Limits,
    lost: Mapping[int, int],
) -> Step:
    """One step of the design."""
    begun = set(runs) | set(lost)
    for b in start_sizes(sizes, min(3, limits.sizes)):
        if b not in begun:
            return Step((b,), f"batch {b} is one of the sizes to start with")
    by_size = reached(runs)
    left = {b: limits.runs - len(runs.get(b, ())) - lost.get(b, 0) for b in sizes}
    # A size that missed once is settled; one that only failed is given up with its runs.
    candidates = {b for b in begun if left[b] > 0 and by_size.get(b, True)}
    if len(begun) < limits.sizes:
        open_sizes = usable(sizes, by_size) | worth_trying(sizes, by_size)
        candidates |= {b for b in sizes if b not in begun and b in open_sizes}
    if not any(by_size.values()):
        if not by_size:
            return _again(begun, left)
        return _search(sizes, by_size, candidates - begun)
    belief = learn(sizes, runs)
    allowed = usable(sizes, by_size)
    loss = expected_loss(belief, allowed, curves)
    values = {b: _value(belief, b, left[b], by_size, curves) for b in sorted(candidates)}
    if not values:
        return Step((), "every size that the limits allow has all its runs", loss)
    best = max(values, key=lambda b: values[b])
    if limits.tolerance > 0:
        # The loss knows only of sizes that may be chosen now; an untried one beside a missed one may still be better.
        if max(loss, values[best]) <= limits.tolerance:
            return Step((), f"the expected loss of {loss:.2%} is within {limits.tolerance:.2%}", loss)
        if values[best] <= STOP_SHARE * limits.tolerance:
            least = STOP_SHARE * limits.tolerance
            return Step((), f"no size's runs are expected to shorten the choice by {least:.3%}", loss)
    return Step((best,), f"batch {best} is expected to shorten the choice by {values[best]:.2%}", loss)


def _again(begun: set[int], left: Mapping[int, int]) -> Step:
    """No run has ended well yet: another try of a size begun with."""
    retry = [b for b in sorted(begun) if left[b] > 0]
    if not retry:
        return Step((), "no run ended")
    b = max(retry, key=lambda b: left[b])
    return Step((b,), f"no run has ended yet; batch {b} is tried again")


def _search(sizes: tuple[int, ...], by_size: Mapping[int, bool], rest: set[int]) -> Step:
    """Nothing reached the target yet: the size farthest from those that missed it, the larger of two."""
    if not rest:
        return Step((), "no size reached the target in every run")
    far = max(rest, key=lambda b: (min((abs(math.log(b / m)) for m in by_size), default=0.0), b))
    return Step((far,), f"no size reached the target yet; batch {far} is farthest from those that missed it")


def expected_loss(belief: Belief, allowed: set[int], curves: Floats) -> float:
    """How much longer the present choices are expected to take than the best of ``allowed``, mean over the curves."""
    keep = np.array([b in allowed for b in belief.batch_sizes])
    costs = np.where(keep, curves, math.inf)
    costs = costs[np.isfinite(costs).any(axis=1)]
    if not len(costs):
        return math.inf
    chosen = np.argmin(costs + belief.mean, axis=1)
    # Always the same draws: a decision is a function of its inputs.
    normal = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(belief.batch_sizes)))
    eigenvalues, vectors = np.linalg.eigh(belief.covariance)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    draws = belief.mean + np.concatenate([normal, -normal]) @ root.T
    total = costs[:, None, :] + draws[None, :, :]
    of_choice = np.take_along_axis(total, chosen[:, None, None], axis=2)[:, :, 0]
    return float(np.mean(np.expm1(of_choice - total.min(axis=2))))


def _value(belief: Belief, b: int, runs_left: int, by_size: Mapping[int, bool], curves: Floats) -> float:
    """By what share the remaining runs of ``b`` are expected to shorten what is chosen afterwards; mean over curves."""
    sizes = belief.batch_sizes
    i = sizes.index(b)
    before = usable(sizes, by_size)
    after = usable(sizes, {**by_size, b: True})
    now = _least(belief.mean[None, :], before, sizes, curves)
    spread = belief.covariance[:, i] / math.sqrt(belief.covariance[i, i] + belief.noise_sd[i] ** 2 / runs_left)
    later = _least(belief.mean + _NODES[:, None] * spread, after, sizes, curves)
    with np.errstate(invalid="ignore"):  # inf − inf where a curve has no usable size before and after
        gain = np.where(np.isfinite(now[0]), now[0] - _WEIGHTS @ later, np.where(np.isfinite(later[0]), 1.0, 0.0))
    chance = 1.0 if b in before else CHANCE_TO_REACH
    return chance * float(np.mean(np.maximum(gain, 0.0)))


def _least(means: Floats, allowed: set[int], sizes: tuple[int, ...], curves: Floats) -> Floats:
    """Least log T·N over the ``allowed`` sizes for each row of ``means`` [n][B] and each curve: [n][curve]."""
    keep = np.array([b in allowed for b in sizes])
    costs = np.where(keep, curves, math.inf)
    out: Floats = (costs[None, :, :] + means[:, None, :]).min(axis=2)
    return out
