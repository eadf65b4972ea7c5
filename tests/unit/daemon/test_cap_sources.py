"""All sources together on the loop: what comes into force when, who is named, conditions, expiry, reload."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from traingov.caps.options import CapOptions
from traingov.caps.sources import CapSources
from traingov.sessions.handler import Refused
from traingov_policies.cap_file import CapFile
from traingov_policies.caps import BatteryRule, Schedule
from traingov_policies.values import Cap

NIGHT = CapOptions(schedule=Schedule.of({"22:00": Cap(5.0), "07:00": None}))


class Board:
    """The sources with a clock that the test sets; what they told, in order."""

    def __init__(self, folder: Path, fixed: Cap | None = None, options: CapOptions | None = None) -> None:
        self.folder, self.now_s, self.time = folder, 1000.0, 12 * 3600
        self.changes: list[tuple[Cap | None, str]] = []
        self.conditions: dict[str, str] = {}
        self.sources = CapSources(
            fixed, options or CapOptions(), str(folder), folder / "cap.json",
            keep=lambda what, write: write(), changed=lambda cap, source: self.changes.append((cap, source)),
            condition=self.tell, clock=lambda: self.now_s, second_of_day=lambda: self.time,
        )  # fmt: skip

    def tell(self, name: str, text: str | None) -> None:
        self.conditions.pop(name, None)
        if text is not None:
            self.conditions[name] = text

    @property
    def powers(self) -> list[float | None]:
        return [None if cap is None else cap.power_w for cap, _ in self.changes]

    def turn(self) -> None:
        """What the timer does."""
        self.sources._turn()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


async def until(what: Callable[[], Any]) -> None:
    while not what():
        await asyncio.sleep(0.01)


def test_the_configured_cap_alone_is_what_the_governor_begins_with_and_no_change(tmp_path: Path) -> None:
    async def test() -> None:
        board = Board(tmp_path, Cap(7.0))
        board.sources.start()
        assert board.changes == []
        answer = board.sources.to_json()
        assert (answer["power_w"], answer["source"], answer["uid"]) == (7.0, "configuration", None)
        assert [s["in_force"] for s in answer["sources"]] == [True]

    run(test)


def test_the_schedule_follows_the_wall_clock_and_a_jump_of_it(tmp_path: Path) -> None:
    async def test() -> None:
        board = Board(tmp_path, Cap(7.0), NIGHT)
        board.sources.start()
        for time in (21 * 3600, 22 * 3600, 23 * 3600, 6 * 3600, 7 * 3600, 23 * 3600, 3600):
            board.time = time
            board.turn()
        assert board.changes == [
            (Cap(5.0), "schedule 22:00"),
            (Cap(7.0), "configuration"),
            (Cap(5.0), "schedule 22:00"),
        ]

    run(test)


def test_a_command_asks_too_the_lowest_holds_and_an_override_holds_alone(tmp_path: Path) -> None:
    async def test() -> None:
        board = Board(tmp_path, Cap(7.0))
        board.sources.start()
        board.sources.set(Cap(9.0), 1000, None, None, override=False)
        assert board.changes == []
        board.sources.set(Cap(6.0), 1000, None, None, override=False)
        board.sources.set(Cap(9.0), 1000, None, None, override=True)
        board.sources.clear(None)
        assert board.changes == [
            (Cap(6.0), "command, uid 1000"), (Cap(9.0), "command, uid 1000"), (Cap(7.0), "configuration")
        ]  # fmt: skip

    run(test)


def test_a_cap_with_a_time_to_live_lapses_unless_it_is_set_again(tmp_path: Path) -> None:
    async def test() -> None:
        board = Board(tmp_path)
        board.sources.start()
        board.sources.set(Cap(5.0), 0, "solar", 30.0, override=False)
        board.now_s += 29
        board.sources.set(Cap(5.0), 0, "solar", 30.0, override=False)
        board.now_s += 29
        board.turn()
        (source,) = board.sources.to_json()["sources"]
        assert (source["source"], source["expires_in_s"], source["uid"]) == ("command solar", 1.0, 0)
        board.now_s += 1
        board.turn()
        assert board.powers == [5.0, None]
        assert board.sources.to_json()["sources"] == []
        assert Board(tmp_path).sources.to_json()["sources"] == [], "nor is it kept"

    run(test)


def test_what_was_set_by_command_is_in_force_again_after_a_restart_with_who_and_when(tmp_path: Path) -> None:
    async def test() -> None:
        first = Board(tmp_path)
        first.sources.start()
        first.sources.set(Cap(5.0, 2.0), 1000, None, None, override=False)
        said = first.sources.to_json()
        again = Board(tmp_path)
        again.sources.start()
        assert again.changes == [(Cap(5.0, 2.0), "command, uid 1000")]
        assert again.sources.to_json() == said
        assert said["set_at"][:2] == "20"

    run(test)


def test_a_named_source_is_cleared_alone_and_the_names_are_bounded(tmp_path: Path) -> None:
    async def test() -> None:
        board = Board(tmp_path)
        board.sources.start()
        for number in range(16):
            board.sources.set(Cap(5.0 + number), 0, f"agent {number}", None, override=False)
        with pytest.raises(Refused) as error:
            board.sources.set(Cap(1.0), 0, "one more", None, override=False)
        assert "clear one first" in error.value.text
        board.sources.set(Cap(4.0), 0, "agent 3", None, override=False)
        board.sources.clear("agent 3")
        board.sources.clear("agent 0")
        assert board.powers == [5.0, 4.0, 5.0, 6.0]

    run(test)


def test_a_file_is_followed_within_a_second_and_its_trouble_is_a_condition(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "cap"
        file.write_text("5\n")
        board = Board(tmp_path, None, CapOptions(file=CapFile(str(file), stale_after_s=10.0)))
        board.sources.start()
        await until(lambda: board.powers == [5.0])
        file.write_text("6\n")
        board.now_s += 0.5
        board.turn()
        await until(lambda: board.powers == [5.0, 6.0])
        file.write_text("{")
        board.now_s += 0.5
        board.turn()
        await until(lambda: "cap-file" in board.conditions)
        assert board.sources.to_json()["problems"] == {"cap-file": board.conditions["cap-file"]}
        board.now_s += 11
        board.turn()
        assert board.powers == [5.0, 6.0, None]

    run(test)


def test_the_timer_turns_by_itself(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "cap"
        file.write_text("5\n")
        board = Board(tmp_path, None, CapOptions(file=CapFile(str(file))))
        board.sources._clock = asyncio.get_running_loop().time
        board.sources.start()
        await until(lambda: board.powers == [5.0])
        file.write_text("6\n")
        await until(lambda: board.powers == [5.0, 6.0])

    run(test)


def test_a_battery_rule_holds_and_a_missing_battery_is_a_condition(tmp_path: Path) -> None:
    async def test() -> None:
        options = CapOptions(rules=(BatteryRule(Cap(5.0), "discharging", 30.0),))
        board = Board(tmp_path, None, options)
        board.sources.start()
        await until(lambda: "cap-battery" in board.conditions)
        folder = tmp_path / "sys/class/power_supply/BAT0"
        folder.mkdir(parents=True)
        for name, text in (("type", "Battery"), ("status", "Discharging"), ("capacity", "25")):
            (folder / name).write_text(f"{text}\n")
        board.now_s += 6
        board.turn()
        await until(lambda: board.changes == [(Cap(5.0), "battery discharging below 30 %")])
        assert board.conditions == {}
        assert board.sources.to_json()["battery"] == {
            "name": "BAT0", "percent": 25.0, "status": "Discharging", "power_w": None
        }  # fmt: skip

    run(test)


def test_a_reload_takes_changed_sources_over_and_leaves_what_was_set_by_command(tmp_path: Path) -> None:
    async def test() -> None:
        board = Board(tmp_path, Cap(7.0))
        board.time = 23 * 3600
        board.sources.start()
        board.sources.set(Cap(6.0), 0, None, None, override=False)
        board.sources.configured(Cap(8.0), NIGHT)
        board.sources.configured(Cap(8.0), CapOptions())
        board.sources.configured(None, CapOptions())
        assert board.powers == [6.0, 5.0, 6.0]

    run(test)


def test_a_reload_that_changes_nothing_of_the_file_does_not_forget_what_it_said(tmp_path: Path) -> None:
    async def test() -> None:
        file = tmp_path / "cap"
        file.write_text("5\n")
        options = CapOptions(file=CapFile(str(file)))
        board = Board(tmp_path, None, options)
        board.sources.start()
        await until(lambda: board.powers == [5.0])
        board.sources.configured(Cap(8.0), options)
        assert board.powers == [5.0]

    run(test)
