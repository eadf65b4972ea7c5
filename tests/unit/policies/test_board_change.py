"""A power mode that changes in mid-job, and programs that write the clock's bounds."""

from __future__ import annotations

import dataclasses

from bench import CLOCKS, Bench

from traingov_policies.actions import PersistLut, SetGpuBounds
from traingov_policies.codec import decode_event, encode_event
from traingov_policies.events import BoardFound, KnobReadBack, Stored, SweepRequested
from traingov_policies.settings import ProfileSettings, Settings
from traingov_policies.values import Cap, PolicyName

QUICK = Settings(profile=ProfileSettings(max_frequencies=4))
FIXED = Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[5])
TOP = CLOCKS[-1]
LOW = CLOCKS[:6]


def change_mode(bench: Bench, mode: str, clocks: tuple[int, ...], *stored: Stored) -> None:
    bench.board = dataclasses.replace(bench.board, power_mode=mode, gpu_frequencies_hz=clocks)
    bench.feed(BoardFound(bench.now, bench.board, stored))


def looks(bench: Bench, seconds: float) -> None:
    for _ in range(round(seconds)):
        bench.feed(KnobReadBack(bench.now, None, None, *bench.bounds))
        bench.run(1)


def foreign(bench: Bench, low: int, high: int, times: int) -> None:
    """Another program that writes its bounds before each look."""
    for _ in range(times):
        bench.bounds, bench.hz = (low, high), high
        bench.feed(KnobReadBack(bench.now, None, None, low, high))
        bench.run(1)


def conditions(bench: Bench) -> dict[str, str]:
    return dict(bench.governor.snapshot()["conditions"])


# -- power modes ---------------------------------------------------------------------------------------------------
def test_a_new_mode_has_its_own_table_and_the_old_one_is_not_written_to() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(60)
    assert bench.bounds == (TOP, TOP)
    old, begin = bench.lut, bench.now
    change_mode(bench, "1 5W", LOW)
    assert bench.texts("board") == ["power mode is now 1 5W, GPU up to 460.8 MHz: tables of this mode hold"]
    bench.run(90)
    assert bench.governor.snapshot()["state"] == "joint"
    assert bench.bounds == (LOW[-1], LOW[-1])
    later = [a.lut for t, a in bench.log if isinstance(a, PersistLut) and t >= begin]
    assert later
    assert all(lut.power_mode == "1 5W" and max(lut.gpu_frequencies_hz) <= LOW[-1] for lut in later)
    assert old.power_mode == "0 MAXN"


def test_a_table_that_the_store_has_for_the_new_mode_is_used_at_once() -> None:
    other = Bench(QUICK, clocks=LOW)
    other.register()
    other.run(90)
    bench = Bench(QUICK)
    bench.register()
    bench.run(60)
    measured = len(bench.texts("measured"))
    change_mode(bench, "1 5W", LOW, Stored("j1", dataclasses.replace(other.lut, power_mode="1 5W")))
    bench.run(1)
    assert (bench.governor.snapshot()["state"], bench.bounds) == ("joint", other.bounds)
    assert len(bench.texts("measured")) == measured


def test_back_in_the_first_mode_its_table_holds_again() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(60)
    first, measured = bench.lut, len(bench.texts("measured"))
    change_mode(bench, "1 5W", LOW)
    bench.run(1)
    change_mode(bench, "0 MAXN", CLOCKS, Stored("j1", first))
    bench.run(1)
    assert (bench.governor.snapshot()["state"], bench.bounds) == ("joint", (TOP, TOP))
    assert len(bench.texts("measured")) == measured


def test_under_a_cap_a_new_mode_begins_no_higher_than_the_guard_had_come() -> None:
    bench = Bench(dataclasses.replace(FIXED, fixed_frequency_hz=TOP), cap=Cap(3.5))
    bench.register()
    bench.run(30)
    held = bench.bounds[1]
    assert held < TOP
    begin = bench.now
    change_mode(bench, "2 10W", CLOCKS[:-1])
    bench.run(5)
    wanted = [a.max_hz for t, a in bench.log if isinstance(a, SetGpuBounds) and t >= begin]
    assert wanted
    assert max(wanted) <= held


def test_a_mode_that_changes_in_mid_sweep_stops_it() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(2)
    bench.feed(SweepRequested(bench.now, "j1", CLOCKS, duration_s=5.0))
    bench.run(3)
    change_mode(bench, "1 5W", LOW)
    bench.run(5)
    assert bench.governor.sweep.state == "stopped"
    assert "power mode is 1 5W" in bench.governor.sweep.text
    assert bench.bounds == (CLOCKS[5], CLOCKS[5])


def test_the_same_board_told_again_changes_nothing() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(6)
    before = len(bench.log)
    bench.feed(BoardFound(bench.now, bench.board))
    assert len(bench.log) == before + 1


def test_a_change_is_recorded_and_read_back() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(30)
    event = BoardFound(1.0, bench.board, (Stored("j1", bench.lut),))
    assert encode_event(decode_event(encode_event(event))) == encode_event(event)


# -- foreign writers -----------------------------------------------------------------------------------------------
def test_the_condition_names_what_was_found_and_who_usually_sets_it() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(3)
    foreign(bench, TOP, TOP, 1)
    assert conditions(bench)["foreign-writer"] == (
        "another program set 921.6 to 921.6 MHz (as jetson_clocks does); written again (1/3)"
    )
    foreign(bench, TOP, TOP, 3)
    assert conditions(bench)["foreign-writer"] == (
        "another program keeps setting 921.6 to 921.6 MHz (as jetson_clocks does); left so after 3 tries"
    )


def test_bounds_that_open_again_after_the_writer_was_respected_are_governed_at_once() -> None:
    bench = Bench(FIXED)
    bench.register()
    bench.run(3)
    foreign(bench, TOP, TOP, 5)
    assert "left so" in conditions(bench)["foreign-writer"]
    foreign(bench, CLOCKS[0], TOP, 1)  # jetson_clocks --restore
    assert "foreign-writer" not in conditions(bench)
    assert bench.bounds == (CLOCKS[5], CLOCKS[5])


def test_points_at_a_respected_writers_clock_are_neither_measured_nor_marked_failed() -> None:
    bench = Bench(QUICK)
    bench.register()
    bench.run(3)
    foreign(bench, CLOCKS[3], CLOCKS[3], 5)
    measured = len(bench.texts("measured"))
    looks(bench, 50)
    assert len(bench.texts("measured")) == measured
    looks(bench, 60)
    bench.run(60)
    assert bench.governor.snapshot()["state"] == "joint"
    assert not [p for p in bench.lut.points() if bench.lut.cell(p).origin == "failed"]


def test_a_writer_that_keeps_breaking_the_cap_is_answered_with_a_lower_clock_each_time() -> None:
    bench = Bench(dataclasses.replace(FIXED, fixed_frequency_hz=CLOCKS[8]), cap=Cap(4.5))
    bench.register()
    bench.run(60)
    foreign(bench, TOP, TOP, 4)
    for _ in range(20):  # the guard has found the cap broken by then
        bench.bounds, bench.hz = (TOP, TOP), TOP
        bench.feed(KnobReadBack(bench.now, None, None, TOP, TOP))
        bench.run(4)
    begin = bench.now
    foreign(bench, TOP, TOP, 10)
    assert "breaks the cap: a lower clock is set each time" in conditions(bench)["foreign-writer"]
    assert len([a for t, a in bench.log if isinstance(a, SetGpuBounds) and t >= begin]) >= 10
    bench.run(5)
    assert bench.watts() < 4.5
