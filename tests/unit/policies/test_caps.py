"""Which cap holds of all that are asked for; the schedule; the battery's rules with their hysteresis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.caps import (
    Battery,
    BatteryRule,
    BatteryRules,
    Claim,
    InForce,
    Schedule,
    battery_of,
    in_force,
    second_of_day,
)
from traingov_policies.values import Cap

SEVEN = Claim("configuration", Cap(7.0, 1.0, 9.0))
FIVE = Claim("schedule 22:00", Cap(5.0, 10.0))


def test_the_lowest_power_holds_with_the_shortest_window_and_the_lowest_burst_of_all() -> None:
    assert in_force([SEVEN, FIVE], 0.0) == InForce(Cap(5.0, 1.0, 9.0), "schedule 22:00")
    assert in_force([SEVEN], 0.0) == InForce(Cap(7.0, 1.0, 9.0), "configuration")


def test_without_a_claim_there_is_no_cap() -> None:
    assert in_force([], 0.0) == InForce(None, "no source")


def test_an_override_holds_alone_and_of_two_the_lower_one() -> None:
    high = Claim("command", Cap(12.0), uid=0, override=True)
    assert in_force([SEVEN, FIVE, high], 0.0) == InForce(Cap(12.0), "command")
    other = Claim("command boss", Cap(11.0), uid=0, override=True)
    assert in_force([SEVEN, FIVE, high, other], 0.0) == InForce(Cap(11.0), "command boss")


def test_a_claim_that_lapsed_counts_no_more() -> None:
    agent = Claim("command solar", Cap(3.0), expires_s=100.0)
    assert in_force([SEVEN, agent], 99.9).cap == Cap(3.0, 1.0, 9.0)
    assert in_force([SEVEN, agent], 100.0).cap == Cap(7.0, 1.0, 9.0)


CAPS = st.builds(
    lambda power, window, more: Cap(power, window, None if more is None else power + more),
    st.floats(0.5, 50), st.floats(0.05, 100), st.one_of(st.none(), st.floats(0, 20)),
)  # fmt: skip


@given(st.lists(CAPS, min_size=1, max_size=5))
def test_what_holds_is_at_least_as_strict_as_every_source(caps: list[Cap]) -> None:
    held = in_force([Claim(str(i), cap) for i, cap in enumerate(caps)], 0.0).cap
    assert held is not None
    for cap in caps:
        assert held.power_w <= cap.power_w
        assert held.window_s <= cap.window_s
        assert cap.burst_w is None or (held.burst_w is not None and held.burst_w <= cap.burst_w)


# -- schedule --------------------------------------------------------------------------------------------------------


DAY = Schedule.of({"22:00": Cap(5.0), "07:00": None, "12:30": Cap(9.0)})


@pytest.mark.parametrize(
    ("time", "power", "source"),
    [
        ("00:00", 5.0, "schedule 22:00"),  # over midnight
        ("06:59", 5.0, "schedule 22:00"),
        ("07:00", None, None),
        ("12:29", None, None),
        ("12:30", 9.0, "schedule 12:30"),
        ("21:59", 9.0, "schedule 12:30"),
        ("22:00", 5.0, "schedule 22:00"),
        ("23:59", 5.0, "schedule 22:00"),
    ],
)
def test_the_last_entry_that_began_holds_over_midnight_too(time: str, power: float | None, source: str | None) -> None:
    claim = DAY.at(second_of_day(time))
    assert (claim and claim.cap.power_w, claim and claim.source) == (power, source)


def test_a_schedule_of_one_entry_holds_all_day_and_an_empty_one_asks_for_nothing() -> None:
    always = Schedule.of({"12:00": Cap(4.0)})
    assert {always.at(second).source for second in range(0, 86_400, 600)} == {"schedule 12:00"}  # type: ignore[union-attr]
    assert Schedule().at(0) is None


@pytest.mark.parametrize("label", ["24:00", "7", "07:60", "7:5", "-1:00", "12:00:00", "noon", "", ":", "١٢:٠٠"])
def test_a_time_that_is_none_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="is no time of day"):
        Schedule.of({label: Cap(5.0)})


def test_the_same_time_written_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="07:00 stands there twice"):
        Schedule.of({"7:00": None, "07:00": Cap(5.0)})


# -- battery ---------------------------------------------------------------------------------------------------------


def rules(*which: BatteryRule) -> BatteryRules:
    return BatteryRules(which, hysteresis_percent=3.0)


LOW = BatteryRule(Cap(5.0), "discharging", 30.0)


def test_a_rule_holds_below_its_charge_and_is_left_only_above_the_hysteresis() -> None:
    watch = rules(LOW)
    held = []
    for percent in (31, 30, 29, 30, 32, 32.9, 33, 31, 29.5):
        watch.see(Battery("b", percent, "Discharging"))
        held.append(bool(watch.claims()))
    assert held == [False, False, True, True, True, True, False, False, True]


def test_a_rule_for_discharging_is_left_at_once_when_the_charger_is_plugged_in() -> None:
    watch = rules(LOW)
    watch.see(Battery("b", 20, "Discharging"))
    assert [claim.source for claim in watch.claims()] == ["battery discharging below 30 %"]
    watch.see(Battery("b", 20, "Charging"))
    assert watch.claims() == []
    watch.see(Battery("b", 20, "Not charging"))
    assert watch.claims() == []


@pytest.mark.parametrize(
    "unknown", [Battery("b"), Battery("b", None, "Discharging"), Battery("b", 50, "Unknown"), None]
)
def test_a_missing_reading_changes_nothing(unknown: Battery | None) -> None:
    watch = rules(LOW)
    watch.see(unknown)
    assert watch.claims() == []
    watch.see(Battery("b", 20, "Discharging"))
    watch.see(unknown)
    held = bool(watch.claims())
    assert held is (unknown is None or unknown.percent is None)  # 50 % is known to be more than 30 %


def test_every_rule_that_holds_asks_and_the_lowest_wins() -> None:
    watch = rules(
        BatteryRule(Cap(8.0), "discharging"),
        BatteryRule(Cap(5.0), below_percent=40),
        BatteryRule(Cap(20.0), "charging"),
    )
    watch.see(Battery("b", 35, "Discharging"))
    assert [str(claim.source) for claim in watch.claims()] == ["battery discharging", "battery below 40 %"]
    assert in_force(watch.claims(), 0.0).cap == Cap(5.0)
    watch.see(Battery("b", 100, "Full"))
    assert [claim.source for claim in watch.claims()] == ["battery charging"]


def test_several_batteries_count_as_their_lowest_and_discharging_where_one_is() -> None:
    both = battery_of([Battery("a", 80, "Full", 0.0), Battery("b", 35, "Discharging", 7.5), Battery("c")])
    assert both == Battery("a, b, c", 35, "Discharging", 7.5)
    assert battery_of([]) is None
    assert battery_of([Battery("a")]) == Battery("a")


def test_what_the_rules_need_and_the_board_does_not_show_is_named() -> None:
    watch = rules(LOW)
    assert "no battery is shown" in (watch.missing(None) or "")
    assert "does not show its charge" in (watch.missing(Battery("BAT0", None, "Full")) or "")
    assert "whether it is discharging" in (watch.missing(Battery("BAT0", 50, "Unknown")) or "")
    assert watch.missing(Battery("BAT0", 50, "Full")) is None
    assert rules().missing(None) is None
