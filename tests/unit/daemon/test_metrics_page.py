"""The page that Prometheus reads, judged by prometheus-client's own parser."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from traingov.metrics.counts import Histogram
from traingov.metrics.names import METRICS
from traingov.metrics.text import Readings


def parsed(readings: Readings) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = list(text_string_to_metric_families(readings.page().decode()))
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_a_gauge_and_a_counter_with_labels_read_back_as_they_were_put() -> None:
    readings = Readings()
    readings.put("traingov_input_power_watts", 6.125)
    readings.put("traingov_job_samples_total", 12, "net")
    assert parsed(readings) == {
        ("traingov_input_power_watts", ()): 6.125,
        ("traingov_job_samples_total", (("job", "net"),)): 12,
    }


def test_a_reading_that_is_missing_is_not_on_the_page() -> None:
    readings = Readings()
    readings.put("traingov_gpu_utilization_ratio", None)
    readings.put("traingov_gpu_frequency_hertz", 0)  # a gated GPU says 0: that is a reading
    assert parsed(readings) == {("traingov_gpu_frequency_hertz", ()): 0}
    assert b"utilization" not in readings.page()


@pytest.mark.parametrize(
    "name",
    ['quote " here', "back\\slash", "line\nfeed", 'end"} 1\ntraingov_cap_watts 99', "ümläut 机器", "", "\\n"],
)
def test_a_hostile_name_stays_inside_its_label(name: str) -> None:
    readings = Readings()
    readings.put("traingov_job_steps_total", 1, name)
    assert parsed(readings) == {("traingov_job_steps_total", (("job", name),)): 1}


def test_a_lone_surrogate_and_a_very_long_name_do_not_break_the_page() -> None:
    readings = Readings()
    readings.put("traingov_job_steps_total", 1, "\ud800")
    readings.put("traingov_job_steps_total", 2, "x" * 5000)
    labels = [dict(pairs)["job"] for _, pairs in parsed(readings)]
    assert labels[0] == "?"
    assert labels[1] == "x" * 100


def test_a_histogram_is_cumulative_and_ends_with_its_count() -> None:
    histogram = Histogram(0.001, 0.01)
    for value in (0.0005, 0.001, 0.002, 5.0):
        histogram.add(value)
    readings = Readings()
    readings.put_histogram("traingov_sample_lag_seconds", histogram.bounds, histogram.counts, histogram.total)
    got = parsed(readings)
    by_bound = {float(dict(labels)["le"]): value for (name, labels), value in got.items() if name.endswith("_bucket")}
    assert by_bound == {0.001: 2, 0.01: 3, math.inf: 4}
    assert got["traingov_sample_lag_seconds_count", ()] == 4
    assert got["traingov_sample_lag_seconds_sum", ()] == pytest.approx(5.0035)


def test_a_metric_that_nobody_named_or_a_wrong_number_of_labels_is_a_mistake() -> None:
    readings = Readings()
    with pytest.raises(KeyError):
        readings.put("traingov_other", 1)
    with pytest.raises(ValueError, match="zip"):
        readings.put("traingov_job_steps_total", 1)


def test_names_follow_prometheus_rules() -> None:
    units = ("_watts", "_joules", "_hertz", "_celsius", "_seconds", "_bytes", "_ratio", "_info")
    without_unit = {
        "traingov_condition",
        "traingov_telemetry_running",
        "traingov_jobs",
        "traingov_job_batch_size",
        "process_threads",
        "process_open_fds",
        "traingov_cooling_state",
        "traingov_pin_released",
    }
    for metric in METRICS.values():
        assert metric.help.endswith((".", "always 1.")), metric
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric
        if metric.kind != "counter":
            assert metric.name.endswith(units) or metric.name in without_unit, metric


def test_every_metric_is_in_the_documentation_and_no_other() -> None:
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    lines = text.partition("## Every metric")[2].splitlines()
    rows = {line.split("|")[1].strip().strip("`"): line for line in lines if line.startswith("| `")}
    documented = {name.split("{")[0]: (name, row) for name, row in rows.items()}
    assert documented.keys() == METRICS.keys()
    for name, metric in METRICS.items():
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        shown, row = documented[name]
        assert shown == name + labels
        assert row.split("|")[2:4] == [f" {metric.kind} ", f" {metric.help} "], name
