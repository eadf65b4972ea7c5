"""``traingov-sim evaluate cap``: changing caps on every virtual board, in the twin. Everything is simulated.

Each row holds one board and one series of caps, over all its seeds. ``kind`` is "predicted": nothing was fitted to
these figures. Short series are sampled every 10 ms, as the service does; a solar day every 200 ms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..board.boardspec import board_names
from ..surfaces import names
from .cap_run import CapRun, Setting, run
from .caps_over_time import SERIES, solar_day
from .statistics import distribution

Say = Callable[[str], None]

TARGETS = {"steady_share_above": 0.001, "guard_samples": 2, "lost_over_a_solar_day": 0.02}
SHORT = ("step", "ramp", "random-walk", "flicker")
DAY_BOARDS = ("nano", "tx2-nx", "agx-orin")  # a day takes a minute; these three surfaces are calibrated
SHORT_INTERVAL_S, DAY_INTERVAL_S = 0.01, 0.2
QUICK_DAY_S = 1800.0
PICTURE = ("nano", "solar-day")


def settings() -> list[Setting]:
    """A job on every board that has a surface: ResNet18 where there is one, else the board's first workload."""
    found = []
    for board in board_names():
        known = names(board)
        workload = "resnet18" if "resnet18" in known else "bert-base/mnli"
        sizes = (8, 16, 32, 64, 128) if workload == "resnet18" else (16, 32, 64)
        found.append(Setting(board, workload, sizes))
    return found


def evaluate_cap(
    seeds: int = 1, *, boards: Sequence[str] | None = None, quick: bool = False, say: Say = lambda _: None
) -> dict[str, Any]:
    """Every comparison as plain values. Raises ValueError for an unknown board."""
    known = settings()
    wanted = [s.board for s in known] if boards is None else list(boards)
    if quick and boards is None:
        wanted = ["nano"]
    unknown = set(wanted) - {s.board for s in known}
    if unknown:
        raise ValueError(f"no virtual board {', '.join(sorted(unknown))}: choose among {', '.join(board_names())}")
    rows: list[dict[str, Any]] = []
    picture: list[Any] = []
    for setting in known:
        if setting.board not in wanted:
            continue
        for name in (*SHORT, "solar-day"):
            if name == "solar-day" and setting.board not in DAY_BOARDS:
                continue
            say(f"{setting.board} {setting.workload}, {name}")
            runs = [_one(setting, name, seed, quick) for seed in range(1 if quick or name == "solar-day" else seeds)]
            rows.append(summary(setting, name, runs))
            if (setting.board, name) == PICTURE:
                picture = [list(row) for row in runs[0].trace]
    return {
        "what": "cap", "simulated": True, "targets": TARGETS, "quick": quick, "rows": rows, "overall": _overall(rows),
        "trace": {"board": PICTURE[0], "series": PICTURE[1],
                  "columns": ["t_s", "power_w", "cap_w", "gpu_frequency_hz", "batch_size"], "rows": picture},
    }  # fmt: skip


def _one(setting: Setting, name: str, seed: int, quick: bool) -> CapRun:
    low_w, high_w = setting.cap_range()
    rng = random.Random(f"{setting.board} {name} {seed}")
    if name == "solar-day":
        caps = solar_day(low_w, high_w, rng, day_s=QUICK_DAY_S) if quick else solar_day(low_w, high_w, rng)
        return run(setting, caps, 100 + seed, DAY_INTERVAL_S, keep_trace=True)
    return run(setting, SERIES[name](low_w, high_w, rng), 100 + seed, SHORT_INTERVAL_S)


def summary(setting: Setting, name: str, runs: Sequence[CapRun]) -> dict[str, Any]:
    """One row: shares over all windows of all runs, energies an hour, distributions over falls of the cap."""

    def share(value: Callable[[CapRun], float], weight: Callable[[CapRun], float]) -> float:
        total = sum(map(weight, runs))
        return round(sum(value(r) * weight(r) for r in runs) / total, 6) if total else 0.0

    seconds = sum(r.seconds for r in runs)
    settled = [s for r in runs for s in r.settling_s]
    waits = [n for r in runs for n in r.latencies]
    return {
        "comparison": "power against a changing cap",
        "kind": "predicted",
        "board": setting.board,
        "workload": setting.workload,
        "series": name,
        "runs": len(runs),
        "seconds": seconds,
        "share_above": share(lambda r: r.above, lambda r: r.windows),
        "steady_share_above": share(lambda r: r.steady_above, lambda r: r.steady_windows),
        "steady_share_above_without_measuring": share(lambda r: r.governed_above, lambda r: r.steady_windows),
        "steady_share_above_by_telemetry": share(lambda r: r.sensed_steady_above, lambda r: r.steady_windows),
        "steady_share_of_windows": round(sum(r.steady_windows for r in runs) / sum(r.windows for r in runs), 4),
        "steady_worst_w": round(max(r.steady_worst_w for r in runs), 3),
        "overshoot_share_of_energy": round(sum(r.overshoot_j for r in runs) / sum(r.energy_j for r in runs), 6),
        "overshoot_j_per_hour": round(3600 * sum(r.overshoot_j for r in runs) / seconds, 2),
        "steady_overshoot_j_per_hour": round(3600 * sum(r.steady_overshoot_j for r in runs) / seconds, 2),
        "settling_s": distribution(settled, 2) if settled else None,
        "guard_samples": {
            "violations": len(waits),
            "within_2": round(float(np.mean([n <= 2 for n in waits])), 4) if waits else None,
            "largest": max(waits, default=None),
        },
        "lost_against_clairvoyant": round(share(lambda r: r.lost, lambda r: r.seconds), 5),
        "lost_by_batch_size": round(share(lambda r: r.lost_by_batch, lambda r: r.seconds), 5),
        "lost_by_clock": round(share(lambda r: r.lost_by_clock, lambda r: r.seconds), 5),
        "clairvoyant_with_one_batch_size_loses": round(share(lambda r: r.lost_staying, lambda r: r.seconds), 5),
        "batch_changes": sum(r.batch_changes for r in runs),
        "clairvoyant_batch_changes": sum(r.clairvoyant_changes for r in runs),
        "points_measured": sum(r.measured for r in runs),
        "measuring_share_of_time": round(sum(r.profiling_s for r in runs) / seconds, 5),
        "guard_steps": {"down": sum(r.guard_down for r in runs), "up": sum(r.guard_up for r in runs)},
    }


def _overall(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per series, over the boards."""
    found = []
    for name in dict.fromkeys(r["series"] for r in rows):
        of = [r for r in rows if r["series"] == name]
        violations = sum(r["guard_samples"]["violations"] for r in of)
        within = sum((r["guard_samples"]["within_2"] or 0) * r["guard_samples"]["violations"] for r in of)
        found.append(
            {
                "comparison": "power against a changing cap, over the boards",
                "kind": "predicted",
                "series": name,
                "boards": len(of),
                **{
                    key: distribution([r[key] for r in of], 5)
                    for key in (
                        *("share_above", "steady_share_above", "steady_share_above_without_measuring"),
                        *("lost_against_clairvoyant", "clairvoyant_with_one_batch_size_loses"),
                    )
                },
                "guard_violations": violations,
                "guard_within_2_samples": round(within / violations, 4) if violations else None,
            }
        )
    return found
