"""One run of the governor in the twin under a changing cap, against true power and the clairvoyant's progress.

First a prelude that is not counted: the job runs under the series' highest, middle and lowest cap for as long as the
governor takes to settle, so that its table holds what an earlier day would have left there, on a warm board.
r is the true one; N(b) = 1 + b / 64 in relative samples (a critical batch size of 64: an assumption).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.values import Cap

from ..board.boardspec import load_board
from ..surface import Surface
from ..surfaces import load
from ..twin import Moment, Twin, settings_for
from .cap_measures import latencies, lost_by, picture, profiling_spans, sensed_above, share_of
from .caps_over_time import CapSeries
from .clairvoyant import best_progress
from .regret import Truth
from .true_power import GRID_S, WINDOW, TruePower

Array = NDArray[np.float64]
CRITICAL_BATCH = 64
PRELUDE_MOST_S = 900.0
PRELUDE_INTERVAL_S = 0.05


@dataclass(frozen=True)
class Setting:
    """A job on a board."""

    board: str
    workload: str
    batch_sizes: tuple[int, ...]

    @property
    def surface(self) -> Surface:
        """The calibrated surface."""
        return load(self.board, self.workload)

    @property
    def samples(self) -> Array:
        """N per batch size, relative."""
        return 1 + np.array(self.batch_sizes) / CRITICAL_BATCH

    @property
    def relation(self) -> RelationVector:
        """r, the true one."""
        n = self.samples
        return RelationVector(self.workload, self.batch_sizes, tuple(float(x) for x in n / n.max()))

    def truth(self) -> Truth:
        """The true surface as tables, at settled temperatures."""
        return Truth.of(self.surface, load_board(self.board), self.batch_sizes, self.samples)

    def cap_range(self) -> tuple[float, float]:
        """A little above the least and the largest settled peak power of any point."""
        peak = self.truth().peak_w
        return 1.05 * float(peak.min()), 1.02 * float(peak.max())


@dataclass(frozen=True)
class _Begun:
    """Where counting began: the moment, the energy used and samples trained by then, decisions made by then."""

    t_s: float
    joules: float
    samples: dict[int, int]
    decisions: int


@dataclass(frozen=True)
class CapRun:
    """What one run came to. Shares are of the counted windows; energies in joules; ``lost`` against the clairvoyant."""

    setting: Setting
    series: str
    seed: int
    seconds: float
    windows: int
    above: float
    steady_windows: int
    steady_above: float
    steady_worst_w: float
    governed_above: float
    profiling_s: float
    sensed_steady_above: float
    overshoot_j: float
    steady_overshoot_j: float
    energy_j: float
    settling_s: tuple[float, ...]
    latencies: tuple[int, ...]
    lost: float
    lost_by_batch: float
    lost_by_clock: float
    lost_staying: float
    clairvoyant_changes: int
    batch_changes: int
    measured: int
    guard_down: int
    guard_up: int
    trace: tuple[tuple[float, float, float, int | None, int | None], ...] = ()


@cache
def learned(setting: Setting, seed: int) -> tuple[Lut | None, float]:
    """The table after the prelude, and the board's temperature at its end. The same for every series of a seed."""
    low_w, high_w = setting.cap_range()
    caps_w = (high_w, (low_w + high_w) / 2, low_w)
    spec = load_board(setting.board)
    twin = Twin(spec, settings_for(spec), Cap(caps_w[0]), seed, PRELUDE_INTERVAL_S)
    thermal = twin.board.thermal
    thermal.board_celsius = thermal.ambient_celsius + spec.thermal.board_kelvin_per_w * sum(caps_w) / len(caps_w)
    twin.add_job(setting.surface, setting.batch_sizes, relation=setting.relation)
    for cap_w in caps_w:
        twin.set_cap(Cap(cap_w))
        twin.run(PRELUDE_MOST_S, until=lambda t: t.settled)
        twin.run(20.0)
        twin.run(PRELUDE_MOST_S, until=lambda t: t.settled)
    return twin.lut, twin.board.thermal.board_celsius


def run(setting: Setting, caps: CapSeries, seed: int, interval_s: float, *, keep_trace: bool = False) -> CapRun:
    """The governor under ``caps``."""
    lut, warm = learned(setting, seed)
    spec = load_board(setting.board)
    twin = Twin(spec, settings_for(spec), Cap(caps.at(0.0)), seed + 1, interval_s, trace=True)
    twin.board.thermal.board_celsius = warm
    job = twin.add_job(setting.surface, setting.batch_sizes, relation=setting.relation, lut=lut)
    twin.run(30.0)
    begun = _Begun(
        twin.t_s, twin.board.truth(twin.t_s).input_j, dict(job.samples_by_batch), len(twin.decisions)
    )  # fmt: skip
    power = TruePower(twin, caps.at(0.0))
    power.start()

    def change(watts: float) -> Any:
        def due(t: Twin) -> None:
            power.cap_w = watts
            t.set_cap(Cap(watts))

        return due

    for at_s, watts in caps.steps[1:]:
        twin.at(begun.t_s + at_s, change(watts))
    twin.run(caps.seconds)
    power.stop()
    trained = {b: n - begun.samples.get(b, 0) for b, n in job.samples_by_batch.items()}
    found = _account(setting, caps, seed, twin, trained=trained, power=power, begun=begun)
    return replace(found, trace=picture(_counted(twin, begun.t_s), caps, begun.t_s)) if keep_trace else found


def _counted(twin: Twin, begin_s: float) -> list[Moment]:
    return [m for m in twin.trace or [] if m.t_s >= begin_s]


def _account(
    setting: Setting, caps: CapSeries, seed: int, twin: Twin, *,
    trained: dict[int, int], power: TruePower, begun: _Begun,
) -> CapRun:  # fmt: skip
    mean_w, cap_w, steady = power.windows()
    above = mean_w >= cap_w
    spans = profiling_spans(twin, begun.t_s)
    ends_s = begun.t_s + WINDOW * GRID_S + GRID_S * np.arange(len(mean_w))
    profiling = np.zeros(len(mean_w), dtype=bool)
    for begin, end in spans:
        profiling |= (ends_s > begin) & (ends_s - WINDOW * GRID_S < end)
    trace = _counted(twin, begun.t_s)
    sensed = sensed_above(trace, caps, begun.t_s)
    truth = setting.truth()
    progress = sum(n / float(setting.samples[setting.batch_sizes.index(b)]) for b, n in trained.items())
    spec = twin.board.spec.power
    # Stalls strike the clairvoyant as often: a share of its time.
    stalled = spec.stalls_per_s * sum(spec.stall_s) / 2
    rates = 1 / truth.seconds / (1 + stalled)
    best, changes = best_progress(rates, truth.peak_w, caps, batch_change_s=spec.batch_change_s)
    staying, _ = best_progress(rates, truth.peak_w, caps, batch_change_s=spec.batch_change_s, stay=True)
    by_batch, by_clock = lost_by(trace, caps, begun.t_s, truth, rates)
    overshoot, steady_overshoot = power.overshoot_j()
    decisions = twin.decisions[begun.decisions :]
    batches = [m.batch_size for m in trace if m.batch_size is not None]
    return CapRun(
        setting, caps.name, seed, caps.seconds,
        windows=len(mean_w), above=float(above.mean()),
        steady_windows=int(steady.sum()), steady_above=share_of(above, steady),
        steady_worst_w=float(np.max((mean_w - cap_w)[steady], initial=0.0)),
        governed_above=share_of(above & steady, steady & ~profiling),
        profiling_s=sum(end - begin for begin, end in spans),
        sensed_steady_above=sensed,
        overshoot_j=overshoot, steady_overshoot_j=steady_overshoot,
        energy_j=twin.board.truth(twin.t_s).input_j - begun.joules,
        settling_s=tuple(power.settling_s()),
        latencies=tuple(latencies(twin, caps, begun.t_s, trace)),
        lost=1 - progress / best, lost_by_batch=by_batch, lost_by_clock=by_clock,
        lost_staying=1 - staying / best, clairvoyant_changes=changes,
        batch_changes=sum(a != b for a, b in pairwise(batches)),
        measured=sum(d.kind == "measured" for d in decisions),
        guard_down=sum(d.kind == "guard-down" for d in decisions),
        guard_up=sum(d.kind == "guard-up" for d in decisions),
    )  # fmt: skip
