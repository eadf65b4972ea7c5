"""Evidence to verdict: each row of the table, and the words for it."""

from __future__ import annotations

import pytest

from traingov_policies.guarding.diagnosis import Column, Evidence, diagnose, explain, fitting

SET = 900_000_000


def evidence(**known: object) -> Evidence:
    return Evidence(set_hz=SET, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        ({}, None),
        ({"shown_hz": SET, "time_ratio": 1.02, "power_ratio": 0.97}, None),
        ({"over_current": True}, "over-current"),
        ({"over_current": True, "shown_hz": SET // 2, "cooling": "gpu-throttle-alert"}, "over-current"),
        ({"shown_hz": SET // 2, "cooling": "gpu-throttle-alert"}, "thermal-throttling"),
        ({"shown_hz": SET // 2, "to_trip_celsius": -0.5}, "thermal-throttling"),
        ({"time_ratio": 1.3, "power_ratio": 0.8, "to_trip_celsius": 1.0}, "thermal-throttling"),
        ({"cooling": "gpu-throttle-alert"}, "thermal-throttling"),  # nothing shows whether it is slow
        ({"cooling": "gpu-throttle-alert", "shown_hz": SET, "time_ratio": 1.0, "power_ratio": 1.0}, None),
        ({"to_trip_celsius": 1.0, "time_ratio": 1.0}, None),
        ({"shown_hz": SET // 2}, "clock-not-following"),
        ({"shown_hz": SET * 4 // 3}, "clock-not-following"),
        ({"shown_hz": SET * 4 // 3, "cooling": "gpu-throttle-alert"}, "clock-not-following"),  # heat makes nothing fast
        ({"shown_hz": SET, "time_ratio": 0.8, "power_ratio": 1.3, "fits_hz": 1_100_000_000}, "clock-not-following"),
        ({"shown_hz": SET, "time_ratio": 1.2}, "table-off"),
        ({"time_ratio": 1.2, "power_ratio": 1.1}, "table-off"),
        ({"time_ratio": 1.0, "power_ratio": 1.1}, "table-off"),
    ],
)
def test_evidence_has_one_verdict(known: dict[str, object], verdict: str | None) -> None:
    assert diagnose(evidence(**known)) == verdict


def test_the_words_name_the_evidence() -> None:
    hot = evidence(shown_hz=450_000_000, cooling="gpu-throttle-alert")
    assert explain("thermal-throttling", hot) == (
        "900 MHz is set, but telemetry shows 450 MHz: cooling device gpu-throttle-alert is at work"
    )
    fast = evidence(shown_hz=SET, time_ratio=0.8, power_ratio=1.3, fits_hz=1_100_000_000)
    assert explain("clock-not-following", fast) == (
        "900 MHz is set and reads back, but steps take 20 % less and power is 30 % more than in the table; "
        "both fit 1100 MHz"
    )
    assert "over-current counters rise" in explain("over-current", evidence(over_current=True))
    assert explain("table-off", evidence(time_ratio=1.2)) == (
        "the clock is right, but steps take 20 % more than in the table: it no longer fits"
    )


COLUMNS = (
    Column(600_000_000, 12.0, 4.0),
    Column(900_000_000, 9.0, 5.5),
    Column(1_100_000_000, 7.8, 7.0),
)


def test_time_and_power_of_another_column_name_its_clock() -> None:
    assert fitting(COLUMNS, SET, 7.7, 7.1) == 1_100_000_000
    assert fitting(COLUMNS, SET, 12.3, 4.05) == 600_000_000


def test_a_slowdown_at_the_same_power_fits_no_other_clock() -> None:
    assert fitting(COLUMNS, SET, 10.5, 5.5) is None
    assert fitting(COLUMNS, SET, 9.1, 5.4) is None


def test_a_clock_without_a_column_cannot_be_compared() -> None:
    assert fitting(COLUMNS, 700_000_000, 9.0, 5.5) is None
