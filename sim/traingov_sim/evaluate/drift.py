"""``traingov-sim evaluate drift``: the detector by itself, probing, partial re-profiling, and the whole governor.

The first three come from ``drift_detector``, ``drift_probing`` and ``drift_partial``; a part whose module is not there
is named in ``left_out``. The scenarios are ``drift_run``'s. Everything is simulated.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from .cap_run import Setting
from .drift_run import AFTER_S, SOURCES, DriftRun, Source, run
from .statistics import distribution

Say = Callable[[str], None]
PARTS = ("detector", "probing", "partial", "scenarios")
TARGETS = {"false_alarms_per_1000_h": 1, "delay_mean_s": 30, "delay_p95_s": 60, "points_share": 0.15, "error": 0.03}
SETTINGS = (
    Setting("nano", "resnet18", (8, 16, 32, 64, 128)),
    Setting("tx2-nx", "resnet18", (8, 16, 32, 64, 128)),
    Setting("agx-orin", "bert-base/mnli", (16, 32, 64)),
)
_MODULES = {
    "detector": ("drift_detector", "detector_figures"),
    "probing": ("drift_probing", "probing_figures"),
    "partial": ("drift_partial", "partial_figures"),
}
_QUICK: dict[str, dict[str, Any]] = {
    "detector": {"hours": 30.0, "shifts": 100},
    "probing": {"cases": 2},
    "partial": {"cases": 2},
}
_QUICK_SOURCES = ("none", "memory contention", "power mode")


def evaluate_drift(
    parts: Sequence[str] = PARTS, *, seeds: int = 2, quick: bool = False, say: Say = lambda _: None
) -> dict[str, Any]:
    """Every comparison as plain values. Raises ValueError for an unknown part."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise ValueError(f"no part {', '.join(sorted(unknown))}: use {', '.join(PARTS)}")
    result: dict[str, Any] = {"what": "drift", "simulated": True, "quick": quick, "targets": TARGETS, "left_out": {}}
    for part, (module, function) in _MODULES.items():
        if part not in parts:
            continue
        say(part)
        found = _function(module, function)
        if found is None:
            result["left_out"][part] = f"{module}.{function} is not there"
        else:
            result[part] = found(**_QUICK.get(part, {}) if quick else {})
    if "scenarios" in parts:
        result["scenarios"] = scenarios(seeds, quick=quick, say=say)
    return result


def scenarios(seeds: int, *, quick: bool = False, say: Say = lambda _: None) -> dict[str, Any]:
    """Each source on each board, ``seeds`` times, and what came of it."""
    settings = SETTINGS[:1] if quick else SETTINGS
    sources = [s for s in SOURCES if not quick or s.name in _QUICK_SOURCES]
    runs: list[DriftRun] = []
    for source in sources:
        for setting in settings:
            say(f"scenario {source.name}, {setting.board}")
            runs += [
                run(setting, source, 10 + seed, 900.0 if quick else AFTER_S) for seed in range(1 if quick else seeds)
            ]
    control = {s.board: _mean([r.lost_s for r in runs if r.source == "none" and r.setting == s]) for s in settings}
    return {
        "kind": "predicted",
        "rows": [summary(source, [r for r in runs if r.source == source.name], control) for source in sources],
        "runs": [{**asdict(r), "verdict": r.verdict} for r in runs],
    }


def summary(source: Source, runs: Sequence[DriftRun], control: dict[str, float | None]) -> dict[str, Any]:
    """One source over boards and seeds. ``lost_s`` is beyond what the same board lost without any source."""
    verdicts = [r.verdict for r in runs]
    delays = [r.noticed_s for r in runs if r.noticed_s is not None]
    lost = [r.lost_s - (control[r.setting.board] or 0.0) for r in runs]
    results = [x for r in runs for x in r.results]

    def over(name: str) -> float | None:
        return _mean([x for r in runs if (x := getattr(r, name)) is not None])

    return {
        "comparison": "a source of drift under the whole governor",
        "kind": "predicted",
        "source": source.name,
        "runs": len(runs),
        "verdicts": {v: verdicts.count(v) for v in dict.fromkeys(verdicts)},
        "results": {x: results.count(x) for x in dict.fromkeys(results)},
        "shift_time": over("shift_time"),
        "shift_power": over("shift_power"),
        "delay_s": distribution(delays, 1) if delays else None,
        "remeasured": over("remeasured"),
        "points_share": over("points_share"),
        "time_error_before": over("before_error"),
        "time_error_after": over("after_error"),
        "power_error_after": over("after_power_error"),
        "regret_before": over("stale_regret"),
        "regret_after": over("final_regret"),
        "lost_s": distribution(lost, 1),
        "measuring_s": over("probe_or_measure_s"),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 5) if values else None


def _function(module: str, name: str) -> Callable[..., dict[str, Any]] | None:
    """A part's function, None where its module is not there. The parts load when they are asked for."""
    path = f"{__package__}.{module}"
    if importlib.util.find_spec(path) is None:
        return None
    found: Callable[..., dict[str, Any]] | None = getattr(importlib.import_module(path), name, None)
    return found
