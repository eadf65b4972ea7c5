"""One source of drift in the twin, with the whole governor: what it noticed, what it did, and what that was worth.

The job's table was profiled by the governor in the same twin, under the cap, on a warm board; then ten clean minutes;
then the source begins and lasts. Truth is the disturbed surface, at the temperature each point settles at. Everything
is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from traingov_policies.lut import Lut
from traingov_policies.values import Cap

from ..board.boardspec import BoardSpec, load_board
from ..board.surroundings import StepCosts, Surroundings
from ..surface import Scales
from ..twin import Twin, settings_for
from .cap_run import PRELUDE_MOST_S, Setting
from .regret import Truth

CLEAN_S = 600.0
AFTER_S = 3600.0
INTERVAL_S = 0.1
WARMER_KELVIN = 20.0
DETECTABLE = 0.05  # a shift of time or power at the present point that has to be noticed
WORTH = 0.02  # a choice that would be so much better has to be noticed through probes
NOTHING = 0.01  # shifts and gains below that are nothing
NOTICED = ("drift", "profile", "board")


@dataclass(frozen=True)
class Source:
    """``surroundings`` of a board, ambient kelvin more, or another power mode."""

    name: str
    surroundings: Callable[[BoardSpec], Surroundings] | None = None
    warmer_kelvin: float = 0.0
    power_mode: bool = False


def _emc(spec: BoardSpec) -> Surroundings:
    return Surroundings(emc_hz=spec.emc.frequencies_hz[-2])


SOURCES = (
    Source("none"),
    Source("memory contention", lambda _: Surroundings(memory_taken=0.4, other_cpu_w=0.3)),
    Source("thermal soak", warmer_kelvin=WARMER_KELVIN),
    Source("cache contention", lambda _: Surroundings(cache_spill=1.0, cache_batch_size=16)),
    Source("EMC cap", _emc),
    Source("power mode", power_mode=True),
    Source("library update", lambda _: Surroundings(software=Scales(compute=0.8, launch=0.7, host=0.9))),
    Source("uniform slowdown", lambda _: Surroundings(software=Scales(1.12, 1.0, 1.12, 1.12, 1.12))),
    Source("light memory contention", lambda _: Surroundings(memory_taken=0.05)),
)


@dataclass(frozen=True)
class DriftRun:
    """Times in seconds since the source began; errors and regrets as shares. None: not known or not happened."""

    setting: Setting
    source: str
    seed: int
    shift_time: float
    shift_power: float
    stale_regret: float
    expected: bool | None
    noticed_s: float | None
    results: tuple[str, ...]
    settled_s: float | None
    remeasured: int
    points_share: float
    before_error: float | None
    after_error: float | None
    after_power_error: float | None
    measured_after_error: float | None
    final_regret: float
    lost_s: float
    probe_or_measure_s: float

    @property
    def verdict(self) -> str:
        """Detected or missed; rightly ignored or false alarm; noticed or left, where both are right."""
        noticed = self.noticed_s is not None
        if self.expected is None:
            return "small, noticed" if noticed else "small, left"
        if self.expected:
            return "detected" if noticed else "missed"
        return "false alarm" if noticed else "rightly ignored"


def run(setting: Setting, source: Source, seed: int, after_s: float = AFTER_S) -> DriftRun:
    """The governor before and after ``source`` begins."""
    spec = load_board(setting.board)
    low_w, high_w = setting.cap_range()
    cap_w = low_w + 0.6 * (high_w - low_w)
    twin = Twin(spec, settings_for(spec), Cap(cap_w), seed, INTERVAL_S)
    thermal = twin.board.thermal
    thermal.board_celsius = thermal.ambient_celsius + spec.thermal.board_kelvin_per_w * cap_w
    job = twin.add_job(setting.surface, setting.batch_sizes, relation=setting.relation)
    twin.run(PRELUDE_MOST_S, until=lambda t: t.settled)
    twin.run(CLEAN_S)
    begin_s, said, trained = twin.t_s, len(twin.decisions), dict(job.samples_by_batch)
    old_point, old_table = _point(twin), twin.lut
    _begin(twin, source)
    twin.run(after_s)

    allowed = list(twin.identity.gpu_frequencies_hz)
    calm, disturbed = setting.truth(), disturbed_truth(setting, source)
    i, j = setting.batch_sizes.index(old_point[0]), calm.clocks_hz.index(old_point[1])
    shift_time = float(disturbed.seconds[i, j] / calm.seconds[i, j] - 1)
    shift_power = float(disturbed.peak_w[i, j] / calm.peak_w[i, j] - 1)
    stale = _regret(disturbed, old_point, cap_w, allowed)
    times = [t for t, action in twin.actions if t > begin_s and getattr(action, "kind", None) in NOTICED]
    decisions = twin.decisions[said:]
    results = tuple(str(d.detail.get("result", "kept")) for d in decisions if d.kind == "revalidated")
    ends = [
        t for t, action in twin.actions
        if t > begin_s and getattr(action, "kind", None) in {"revalidated", "profiled"}
    ]  # fmt: skip
    table = twin.lut
    progress = sum(
        (n - trained.get(b, 0)) / float(setting.samples[setting.batch_sizes.index(b)])
        for b, n in job.samples_by_batch.items()
    )
    best = disturbed.best(cap_w, allowed)
    best_rate = 1 / disturbed.at(best)[0] if best else 1 / float(disturbed.seconds.min())
    stalled = spec.power.stalls_per_s * sum(spec.power.stall_s) / 2
    remeasured = sum(d.kind == "measured" for d in decisions)
    cells = len(setting.batch_sizes) * len(allowed)
    return DriftRun(
        setting, source.name, seed, shift_time, shift_power, stale,
        expected=_expected(source, max(abs(shift_time), abs(shift_power)), stale),
        noticed_s=times[0] - begin_s if times else None,
        results=results,
        settled_s=ends[-1] - begin_s if ends else None,
        remeasured=remeasured, points_share=remeasured / cells,
        before_error=table_error(old_table, disturbed, setting, "time"),
        after_error=table_error(table, disturbed, setting, "time"),
        after_power_error=table_error(table, disturbed, setting, "power"),
        measured_after_error=table_error(table, disturbed, setting, "time", measured=True),
        final_regret=_regret(disturbed, _point(twin), cap_w, allowed),
        lost_s=after_s - progress * (1 + stalled) / best_rate,
        probe_or_measure_s=_away_s(twin, begin_s),
    )  # fmt: skip


def _expected(source: Source, shift: float, stale: float) -> bool | None:
    """Whether it has to be noticed; None where it may be."""
    if source.power_mode or shift >= DETECTABLE or stale >= WORTH:
        return True
    return False if shift < NOTHING and stale < NOTHING else None


def disturbed_truth(setting: Setting, source: Source) -> Truth:
    """The true surface while the source lasts."""
    spec = load_board(setting.board)
    costs = StepCosts(spec)
    if source.surroundings is not None:
        costs.surround(source.surroundings(spec), [], spec.gpu.frequencies_hz[-1])
    ambient = spec.thermal.ambient_celsius + source.warmer_kelvin
    warm = replace(spec, thermal=replace(spec.thermal, ambient_celsius=ambient))
    truth = Truth.of(costs.of(setting.surface), warm, setting.batch_sizes, setting.samples)
    return replace(truth, peak_w=truth.peak_w + costs.others_w[0])


def table_error(
    table: Lut | None, truth: Truth, setting: Setting, what: str, *, measured: bool = False
) -> float | None:
    """Mean absolute relative error over the table's cells that hold a value; None where none does."""
    if table is None:
        return None
    errors = []
    for i, b in enumerate(setting.batch_sizes):
        for j, hz in enumerate(truth.clocks_hz):
            if b not in table.batch_sizes or hz not in table.gpu_frequencies_hz:
                continue
            row, column = table.batch_sizes.index(b), table.gpu_frequencies_hz.index(hz)
            if measured and (table.origin is None or table.origin[row][column] != "measured"):
                continue
            value = (table.time_s if what == "time" else table.peak_power_w)[row][column]
            true = float(
                truth.seconds[i, j] / setting.samples[i] * table.samples if what == "time" else truth.peak_w[i, j]
            )
            if value is not None:
                errors.append(abs(value / true - 1))
    return float(np.mean(errors)) if errors else None


def _begin(twin: Twin, source: Source) -> None:
    board = twin.board
    if source.surroundings is not None:
        board.set_surroundings(source.surroundings(board.spec), twin.t_s)
    board.thermal.ambient_celsius += source.warmer_kelvin
    if source.power_mode:
        board.set_power_mode(board.spec.power_modes[-1].id, twin.t_s)


def _point(twin: Twin) -> tuple[int, int]:
    """The point that was chosen last."""
    chosen = [d.point for d in twin.decisions if d.kind == "joint" and d.point is not None]
    if not chosen:
        raise RuntimeError("the governor chose no point")
    return chosen[-1].batch_size, chosen[-1].gpu_frequency_hz


def _regret(truth: Truth, point: tuple[int, int], cap_w: float, allowed: list[int]) -> float:
    """Time of the point, as the guard would hold it, over the best allowed point's, less 1."""
    best = truth.best(cap_w, allowed)
    held = truth.held_back((point[0], min(point[1], max(allowed))), cap_w, allowed)
    return 0.0 if best is None else truth.at(held)[0] / truth.at(best)[0] - 1


def _away_s(twin: Twin, begin_s: float) -> float:
    """Seconds in which a point was measured or probed rather than trained at."""
    away, since = 0.0, None
    for t_s, action in twin.actions:
        kind = type(action).__name__
        if kind in {"SetGpuBounds", "AdviseBatch"}:
            measuring = any(word in str(getattr(action, "reason", "")) for word in ("measuring", "probing"))
            if measuring and since is None:
                since = max(t_s, begin_s)
            elif not measuring and since is not None:
                away, since = away + max(0.0, t_s - max(since, begin_s)), None
    return away + (0.0 if since is None else twin.t_s - since)
