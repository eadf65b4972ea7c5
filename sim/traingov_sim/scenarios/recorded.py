"""One short run of each kind in the twin, as a recording that ``traingov replay`` accepts. Simulated, deterministic.

Each lasts a few minutes. Telemetry is sampled every 50 ms, so that a recording stays small; the governor is the same.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

from traingov_policies.relation import RelationVector
from traingov_policies.settings import Settings
from traingov_policies.values import Cap

from ..board.boardspec import load_board
from ..board.overcurrent import CurrentLimits
from ..board.surroundings import Surroundings
from ..evaluate.caps_over_time import SERIES
from ..surfaces import load
from ..twin import Twin, TwinJob, settings_for

INTERVAL_S = 0.05
_SIZES = (8, 32, 128)
_R = (0.6, 0.8, 1.0)


def cap_step() -> Twin:
    """Profiling under 4.5 W, then other caps, each for a minute."""
    twin = _nano(Cap(4.5), 1)
    for k, watts in enumerate((7.0, 4.0, 5.5, 8.0, 4.5), 1):
        twin.at(60.0 * k, lambda t, w=watts: t.set_cap(Cap(w)))  # type: ignore[misc]
    return twin.run(360.0)


def cap_walk() -> Twin:
    """A random walk of the cap, a step each ten seconds."""
    walk = SERIES["random-walk"](4.0, 7.5, random.Random(3))
    twin = _nano(Cap(walk.at(0.0)), 2)
    for begin, watts in walk.steps[1:24]:
        twin.at(60.0 + begin, lambda t, w=watts: t.set_cap(Cap(w)))  # type: ignore[misc]
    return twin.run(300.0)


def drift_memory() -> Twin:
    """Another process takes three fifths of the memory's bandwidth in mid-run."""
    twin = _nano(Cap(6.6), 3)
    twin.at(150.0, lambda t: t.board.set_surroundings(Surroundings(memory_taken=0.6, other_cpu_w=0.3), t.t_s))
    return twin.run(400.0)


def drift_power_mode() -> Twin:
    """nvpmodel goes to the 5 W mode in mid-run, and back."""
    twin = _nano(None, 4)
    twin.at(120.0, lambda t: t.board.set_power_mode(1, t.t_s))
    twin.at(240.0, lambda t: t.board.set_power_mode(0, t.t_s))
    return twin.run(330.0)


def over_current() -> Twin:
    """An AGX Orin whose GPU rail has a current limit below what its upper clocks draw."""
    spec = load_board("agx-orin")
    twin = Twin(spec, settings_for(spec), None, 5, INTERVAL_S, record=True)
    twin.board.over_current.set_limits({"VDD_GPU_SOC": CurrentLimits(crit_a=0.8)})
    twin.add_job(load("agx-orin", "bert-base/mnli"), (16, 32))
    return twin.run(300.0)


def two_jobs() -> Twin:
    """A second job comes for a minute and a half and goes."""
    twin = _nano(Cap(6.0), 6)
    surface = load("nano", "digits-mlp")
    twin.at(100.0, lambda t: t.add_job(surface, (32,), name="second"))
    twin.at(190.0, lambda t: t.end("second"))
    return twin.run(260.0)


def idle() -> Twin:
    """The job says that it evaluates, and later stops without a word; then it goes on."""
    twin = _nano(Cap(6.0), 7)
    job = twin.jobs["job"]
    twin.at(100.0, _pause(job, "evaluation"))
    twin.at(130.0, lambda t: job.resume(t.t_s))
    twin.at(170.0, _pause(job, None))
    twin.at(210.0, lambda t: job.resume(t.t_s))
    return twin.run(260.0)


SCENARIOS: dict[str, Callable[[], Twin]] = {
    "cap-step": cap_step,
    "cap-walk": cap_walk,
    "drift-memory": drift_memory,
    "drift-power-mode": drift_power_mode,
    "over-current": over_current,
    "two-jobs": two_jobs,
    "idle": idle,
}


def record(folder: Path, names: tuple[str, ...] = tuple(SCENARIOS), say: Callable[[str], None] = print) -> list[Path]:
    """Run and write ``folder/NAME.jsonl.gz``, each whole or not at all. Raises KeyError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in names:
        twin = SCENARIOS[name]()
        for job in list(twin.jobs.values()):
            if job.running:
                twin.end(job.name)
        twin.run(1.0)
        assert twin.recording is not None
        path = folder / f"{name}.jsonl.gz"
        half = path.with_suffix(".part")
        # Without a time stamp the same run gives the same bytes.
        half.write_bytes(gzip.compress("".join(twin.recording.lines()).encode(), 9, mtime=0))
        half.replace(path)
        say(f"{path}: {path.stat().st_size / 1000:.0f} kB, {len(twin.recording.entries)} lines")
        written.append(path)
    return written


def _nano(cap: Cap | None, seed: int, settings: Settings | None = None) -> Twin:
    spec = load_board("nano")
    twin = Twin(spec, settings or settings_for(spec), cap, seed, INTERVAL_S, record=True)
    twin.add_job(load("nano", "digits-mlp"), _SIZES, relation=RelationVector("digits-mlp", _SIZES, _R))
    return twin


def _pause(job: TwinJob, reason: str | None) -> Callable[[Twin], None]:
    return lambda t: job.pause(t.t_s, reason)
