"""Reads the loop's values into ``Readings``, on the loop's thread, once a scrape: no lock, and all of one moment."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .. import __version__
from .counts import JOB_METRICS
from .text import Readings

if TYPE_CHECKING:
    from ..loop import Loop


_PYTHON = ".".join(str(part) for part in sys.version_info[:3])


def collect(loop: Loop) -> Readings:
    """Everything but the process's own figures. Takes some tens of microseconds."""
    readings = Readings()
    snapshot = loop.governor.snapshot()
    _what_runs(loop, snapshot, readings)
    _telemetry(loop, readings)
    _knob(loop, snapshot, readings)
    _cap(loop, readings)
    _drift(snapshot["drift"], readings)
    _jobs(loop, snapshot, readings)
    return readings


def _what_runs(loop: Loop, snapshot: dict[str, Any], out: Readings) -> None:
    board, counts = loop.board, loop.counts
    out.put("traingov_build_info", 1, __version__, _PYTHON)
    out.put("traingov_board_info", 1, board.name, board.release, board.power_mode)
    out.put("traingov_governor_info", 1, snapshot["state"], snapshot["policy"], snapshot["objective"])
    active = {**snapshot["conditions"], **loop.conditions}
    for name in sorted({*active, *counts.conditions}):
        out.put("traingov_condition", float(name in active), name)
    for name, number in counts.conditions.items():
        out.put("traingov_conditions_raised_total", number, name)
    for kind, number in counts.decisions.items():
        out.put("traingov_decisions_total", number, kind)


def _telemetry(loop: Loop, out: Readings) -> None:
    counts, source, sample, reading = loop.counts, loop.source.counters, loop.sample, loop.reading
    out.put("traingov_telemetry_running", float(loop.telemetry[0] == "running"))
    out.put("traingov_telemetry_restarts_total", source.restarts)
    for result in ("readings", "foreign", "oversized", "skipped"):
        out.put("traingov_telemetry_lines_total", getattr(source, result), result)
    out.put_histogram("traingov_sample_lag_seconds", counts.lag.bounds, counts.lag.counts, counts.lag.total)
    interval = counts.interval
    out.put_histogram("traingov_sample_interval_seconds", interval.bounds, interval.counts, interval.total)
    ledger = loop.ledger
    out.put("traingov_samples_missed_total", ledger.input.missed)
    if ledger.input.covered_s > 0:  # a board without such rails has no such energy, which is not an energy of 0
        out.put("traingov_input_energy_joules_total", ledger.input.energy_j)
    if ledger.compute.covered_s > 0:
        out.put("traingov_compute_energy_joules_total", ledger.compute.energy_j)
    if sample is None or reading is None:
        return
    out.put("traingov_sample_age_seconds", max(0.0, loop.clock() - sample.t_s))
    out.put("traingov_input_power_watts", sample.input_power_w)
    out.put("traingov_compute_power_watts", sample.compute_power_w)
    out.put("traingov_gpu_frequency_hertz", sample.gpu_frequency_hz)
    out.put("traingov_gpu_utilization_ratio", sample.gpu_utilization)
    for rail, power_w in reading.rails_w.items():
        if counts.rails.has(rail):
            out.put("traingov_rail_power_watts", power_w, rail)
    for zone, celsius in reading.temperatures_celsius.items():
        if counts.zones.has(zone):
            out.put("traingov_temperature_celsius", celsius, zone)


def _knob(loop: Loop, snapshot: dict[str, Any], out: Readings) -> None:
    counts = loop.counts
    out.put("traingov_gpu_frequency_target_hertz", snapshot["gpu_target_hz"])
    out.put("traingov_gpu_frequency_allowed_hertz", snapshot["gpu_limit_hz"])
    if counts.bounds is not None and snapshot["jobs"]:
        out.put("traingov_gpu_frequency_limit_hertz", counts.bounds.min_hz, "min")
        out.put("traingov_gpu_frequency_limit_hertz", counts.bounds.max_hz, "max")
    for name, number in counts.over_current.items():
        out.put("traingov_over_current_events_total", number, name)
    if snapshot["jobs"]:
        for device, state in counts.cooling:
            if counts.devices.has(device):
                out.put("traingov_cooling_state", state, device)
    out.put("traingov_pin_released", float(snapshot["pin_released"]))
    for name, total in loop.governor.counters.items():
        out.put(f"traingov_{name}_total", total)
    for result, number in counts.knob_writes.items():
        out.put("traingov_knob_writes_total", number, result)
    for result, number in counts.restores.items():
        out.put("traingov_restores_total", number, result)
    for direction, number in counts.guard_steps.items():
        out.put("traingov_guard_steps_total", number, direction)


def _cap(loop: Loop, out: Readings) -> None:
    cap = loop.governor.cap
    if cap is not None:
        out.put("traingov_cap_watts", cap.power_w)
        out.put("traingov_cap_window_seconds", cap.window_s)
        out.put("traingov_cap_burst_watts", cap.burst_w)
        out.put("traingov_cap_info", 1, loop.counts.cap_source)
    account = loop.ledger.cap_account()
    out.put("traingov_cap_exceeded_seconds_total", account.above_s)
    out.put("traingov_cap_judged_seconds_total", account.judged_s)
    out.put("traingov_cap_exceeded_joules_total", account.overshoot_j)


def _drift(counts: dict[str, Any], out: Readings) -> None:
    for by, number in counts["alarms"].items():
        out.put("traingov_drift_alarms_total", number, by)
    for result, number in counts["revalidations"].items():
        out.put("traingov_revalidations_total", number, result)
    out.put("traingov_reprofiles_total", counts["reprofiles"])
    out.put("traingov_drift_probes_total", counts["probes"])
    out.put("traingov_drift_probe_seconds_total", counts["probe_s"])


def _jobs(loop: Loop, snapshot: dict[str, Any], out: Readings) -> None:
    counts = loop.counts
    out.put("traingov_jobs", len(snapshot["jobs"]))
    out.put("traingov_jobs_registered_total", counts.jobs_registered)
    for reason, number in counts.jobs_ended.items():
        out.put("traingov_jobs_ended_total", number, reason)
    for job in snapshot["jobs"]:
        if counts.jobs.shows(job["job"]):
            out.put("traingov_job_batch_size", job["batch_size"], job["job"])
    for label, totals in counts.jobs.by_job(loop.ledger.running(loop.clock())).items():
        for name, value in zip(JOB_METRICS, totals, strict=True):
            out.put(name, value, label)
