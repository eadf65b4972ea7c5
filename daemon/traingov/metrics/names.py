"""Every metric that the service shows: name, kind, labels and help. The page, its test and docs/metrics.md follow this.

Base units, names and label rules as Prometheus's documentation has them ("Metric and label naming").
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """``kind``: gauge, counter or histogram. ``labels``: names of the labels that each sample has, in order."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


_GAUGES = (
    # What runs, and where.
    ("traingov_build_info", "Version of traingov and of the Python that runs it; always 1.", "version", "python"),
    ("traingov_board_info", "The board as found; always 1.", "board", "release", "power_mode"),
    ("traingov_governor_info", "What the governor does now; always 1.", "state", "policy", "objective"),
    ("traingov_condition", "1 while the condition holds, 0 when it held since the start.", "condition"),
    # Telemetry. A sensor that is not there, and any while sampling is off, has no sample here.
    ("traingov_telemetry_running", "1 while tegrastats gives readings."),
    ("traingov_sample_age_seconds", "Age of the newest sample."),
    ("traingov_input_power_watts", "Power that the whole board draws, newest sample."),
    ("traingov_compute_power_watts", "Power of the GPU and CPU rails, newest sample."),
    ("traingov_rail_power_watts", "Power of one rail as tegrastats names it, newest sample.", "rail"),
    ("traingov_gpu_frequency_hertz", "GPU clock, newest sample."),
    ("traingov_gpu_frequency_limit_hertz", "GPU clock bounds as last read back while a job runs.", "bound"),
    ("traingov_gpu_frequency_target_hertz", "GPU clock that the policy wants."),
    ("traingov_gpu_frequency_allowed_hertz", "GPU clock that target, guard and freshness of telemetry allow together."),
    ("traingov_gpu_utilization_ratio", "GPU utilization from 0 to 1, newest sample."),
    ("traingov_temperature_celsius", "Temperature of a thermal zone, newest sample.", "zone"),
    # Cap.
    ("traingov_cap_watts", "The cap in force: mean input power over its window stays below this."),
    ("traingov_cap_window_seconds", "Window of the cap."),
    ("traingov_cap_burst_watts", "Limit of the 100 ms mean, where the cap has one."),
    ("traingov_cap_info", "What kind of source set the cap in force; always 1.", "source"),
    (
        "traingov_cooling_state",
        "State above 0 of a cooling device that holds something back, while a job runs.",
        "device",
    ),
    # Jobs.
    ("traingov_jobs", "Jobs that are registered now."),
    ("traingov_pin_released", "1 while the clock is given back because no job makes steps."),
    ("traingov_job_batch_size", "Batch size that a running job uses.", "job"),
    # The process, under the names that Prometheus's own clients use.
    ("process_resident_memory_bytes", "Resident memory of traingovd."),
    ("process_threads", "Threads of traingovd."),
    ("process_open_fds", "Open file descriptors of traingovd."),
    ("process_start_time_seconds", "Start of traingovd, seconds since 1970."),
)

_COUNTERS = (
    ("traingov_input_energy_joules_total", "Energy that the whole board drew while it was sampled."),
    ("traingov_compute_energy_joules_total", "Energy of the GPU and CPU rails while they were sampled."),
    ("traingov_samples_missed_total", "Samples that did not come in time or had no input power."),
    ("traingov_telemetry_lines_total", "Lines of tegrastats by what became of them.", "result"),
    ("traingov_telemetry_restarts_total", "How often tegrastats was started again."),
    ("traingov_cap_judged_seconds_total", "Seconds in which the window mean was compared with a cap."),
    ("traingov_cap_exceeded_seconds_total", "Seconds in which the window mean lay above the cap."),
    ("traingov_cap_exceeded_joules_total", "Energy by which the window mean lay above the cap."),
    ("traingov_guard_steps_total", "Corrections of the clock by the guard.", "direction"),
    (
        "traingov_knob_writes_total",
        "Writes of GPU clock bounds: taken, snapped (to another clock) or refused.",
        "result",
    ),
    ("traingov_over_current_events_total", "Over-current events that the board counted, by counter.", "counter"),
    ("traingov_readings_disbelieved_total", "Power readings that were left out as glitches of the sensor."),
    ("traingov_drift_alarms_total", "Times that a table no longer fitted: at the present point, or by a probe.", "by"),
    ("traingov_drift_probes_total", "Short measurements at other points, in search of drift."),
    ("traingov_drift_probe_seconds_total", "Seconds spent at other points for that."),
    ("traingov_revalidations_total", "Tables looked at again after drift, by result.", "result"),
    ("traingov_reprofiles_total", "Tables that were measured anew as a whole after drift."),
    ("traingov_foreign_writers_total", "Times that another program's clock bounds were left in force."),
    ("traingov_pin_releases_total", "Times that the clock was given back because no job made steps."),
    ("traingov_restores_total", "Times that the bounds found at first were given back.", "result"),
    ("traingov_decisions_total", "Decisions by kind, as `traingov explain` shows them.", "kind"),
    ("traingov_conditions_raised_total", "How often a condition was raised.", "condition"),
    ("traingov_jobs_registered_total", "Jobs that registered."),
    ("traingov_jobs_ended_total", "Jobs that ended, by the way they did.", "reason"),
    ("traingov_job_energy_joules_total", "Energy that the whole board drew for a job.", "job"),
    ("traingov_job_compute_energy_joules_total", "Energy of the GPU and CPU rails for a job.", "job"),
    ("traingov_job_duration_seconds_total", "Seconds that a job was registered.", "job"),
    ("traingov_job_idle_seconds_total", "Seconds that a job was paused or made no steps, the GPU without load.", "job"),
    ("traingov_job_idle_energy_joules_total", "Part of a job's energy that belongs to that time, whole board.", "job"),
    ("traingov_job_cap_exceeded_seconds_total", "Seconds above the cap while a job ran.", "job"),
    ("traingov_job_samples_total", "Training samples that a job reported.", "job"),
    ("traingov_job_steps_total", "Training steps that a job reported.", "job"),
    ("process_cpu_seconds_total", "CPU time of traingovd, its children not counted."),
)

_HISTOGRAMS = (
    ("traingov_sample_lag_seconds", "From the arrival of a tegrastats line until its decisions were handed on."),
    ("traingov_sample_interval_seconds", "From the arrival of one sample to the next of a run of samples."),
)


def _table() -> dict[str, Metric]:
    rows = [("gauge", row) for row in _GAUGES] + [("counter", row) for row in _COUNTERS]
    rows += [("histogram", row) for row in _HISTOGRAMS]
    return {name: Metric(name, kind, text, tuple(labels)) for kind, (name, text, *labels) in rows}


METRICS = _table()
