"""The passive drift detector against simulated seconds: false alarms in clean hours, delay after a shift.

The noise is ``drift_noise``'s, which does not share the detector's assumptions. Seeds below ``TUNING`` were used to set
the detector's constants; the figures are from others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from traingov_policies.drift.detector import THRESHOLD, Array, Detector
from traingov_policies.drift.settings import DriftSettings

from .drift_noise import Jobs, Noise

TUNING = 1000  # seeds below are for tuning
SEED = 2026
_CHAIN_H = 6.0
_LIMIT_S = 900
_THRESHOLDS = (4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, THRESHOLD)


def detector_figures(hours: float = 3000.0, seed: int = SEED, shifts: int = 2000) -> dict[str, Any]:
    """False alarms an hour over ``hours`` clean hours, and delays of a 5 % shift, over ``shifts`` jobs each.

    Keys: ``clean`` (hours, false_alarms, per_1000_h, upper_95 per 1,000 h), ``delay`` (time and power: mean_s, p95_s,
    missed), ``noise`` (the same delays and false alarms by noise level), ``shift`` (delays by size of the shift),
    ``thresholds`` (false alarms a 1,000 h and mean delay by threshold). Kind: "predicted" (simulated data).
    """
    settings = DriftSettings()
    noise = Noise()
    few = max(200, shifts // 4)
    return {
        "kind": "predicted",
        "seed": seed,
        "threshold": THRESHOLD,
        "autocorrelation": round(noise.correlation, 3),
        "clean": clean_hours(hours, settings, noise, seed),
        "delay": {q: delays(shifts, settings, noise, seed + 1, quantity=q) for q in ("time", "power")},
        "noise": [
            {
                "sd": sd,
                **clean_hours(hours / 10, settings, replace(noise, sd=sd), seed + 2),
                **delays(few, settings, replace(noise, sd=sd), seed + 3),
            }
            for sd in (0.0025, 0.005, 0.01, 0.015, 0.02, 0.03)
        ],
        "shift": [
            {"shift": size, **delays(few, settings, noise, seed + 4, size=size)}
            for size in (0.03, 0.04, 0.05, 0.07, 0.1, 0.2)
        ],
        "thresholds": [
            {
                "threshold": h,
                **clean_hours(hours / 10, settings, noise, seed + 5, threshold=h),
                **delays(few, settings, noise, seed + 6, threshold=h),
            }
            for h in _THRESHOLDS
        ],
    }


def clean_hours(
    hours: float, settings: DriftSettings, noise: Noise, seed: int, threshold: float = THRESHOLD
) -> dict[str, Any]:
    """Alarms (of time or power, up or down) while nothing changed. After an alarm a job's detector begins anew."""
    jobs = max(1, round(hours / _CHAIN_H))
    seconds = round(hours / jobs * 3600)
    rng = np.random.default_rng(seed)
    source, detector = Jobs(jobs, noise, rng), Detector(settings, 2 * jobs, threshold)
    alarms = 0
    for _ in range(seconds):
        found = detector.step(source.second().ravel())
        if found.any():
            alarms += int((found.reshape(2, jobs) != 0).any(axis=0).sum())
            detector.up[found != 0] = detector.down[found != 0] = 0.0
    ran_h = jobs * seconds / 3600
    return {
        "hours": round(ran_h, 1),
        "false_alarms": alarms,
        "per_1000_h": round(1000 * alarms / ran_h, 3),
        "upper_95_per_1000_h": round(1000 * _poisson_upper(alarms) / ran_h, 3),
    }


def delays(
    jobs: int,
    settings: DriftSettings,
    noise: Noise,
    seed: int,
    *,
    size: float = 0.05,
    quantity: str = "time",
    threshold: float = THRESHOLD,
) -> dict[str, Any]:
    """Seconds from a lasting shift of ``quantity`` by ±``size`` to its alarm; ``missed`` after fifteen minutes.

    The shift comes 5 to 15 minutes after the job began.
    """
    rng = np.random.default_rng(seed)
    source, detector = Jobs(jobs, noise, rng), Detector(settings, 2 * jobs, threshold)
    at = rng.integers(300, 900, jobs).astype(float)
    sign = rng.choice([-1, 1], jobs)
    row = 0 if quantity == "time" else 1
    by = np.log1p(sign * size)
    found_at = np.full(jobs, np.nan)
    for t in range(900 + _LIMIT_S):
        x = source.second()
        x[row] += np.where(t >= at, by, 0.0)
        found = detector.step(x.ravel()).reshape(2, jobs)[row]
        new = np.isnan(found_at) & (t >= at) & (found == sign) & (t < at + _LIMIT_S)
        found_at[new] = t
        early = (found != 0) & (t < at)
        if early.any():
            mask = np.zeros((2, jobs), bool)
            mask[row] = early
            detector.up[mask.ravel()] = detector.down[mask.ravel()] = 0.0
    delay: Array = found_at - at + 1  # the second of the shift itself counts
    seen = delay[np.isfinite(delay)]
    if not len(seen):
        return {"mean_s": None, "p95_s": None, "missed": jobs, "jobs": jobs}
    return {
        "mean_s": round(float(seen.mean()), 1),
        "p95_s": round(float(np.quantile(seen, 0.95)), 1),
        "largest_s": round(float(seen.max()), 1),
        "missed": int(jobs - len(seen)),
        "jobs": jobs,
    }


def _poisson_upper(count: int) -> float:
    """The largest mean for which so few events have a chance of 5 % (Wilson and Hilferty; within 1 %): 3.0 for none."""
    n = count + 1
    root = 1 - 1 / (9 * n) + 1.645 / (3 * float(n) ** 0.5)
    return float(n * root**3)
