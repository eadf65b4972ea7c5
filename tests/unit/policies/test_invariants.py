"""The invariants catch what they say they catch; each line of a good recording that is broken is noticed."""

from __future__ import annotations

from typing import Any

import pytest
from bench import CLOCKS, Bench

from traingov_policies.actions import SetGpuBounds
from traingov_policies.codec import encode, encode_action, encode_event
from traingov_policies.events import OverCurrentCounted
from traingov_policies.guarding.options import GuardSettings
from traingov_policies.invariants import violations
from traingov_policies.settings import Settings
from traingov_policies.values import Cap, PolicyName

NODE = "/sys/class/devfreq/57000000.gpu"


def recording() -> list[dict[str, Any]]:
    bench = Bench(cap=Cap(4.5))
    bench.register()
    bench.run(60)
    bench.end()
    entries: list[dict[str, Any]] = [{"schema": "traingov.recording/1", "board": encode(bench.board),
                                      "settings": encode(bench.settings), "cap": encode(Cap(4.5))}]  # fmt: skip
    for _, entry in bench.log:
        entries.append(encode_event(entry) if hasattr(entry, "t_s") else encode_action(entry))
    return entries


GOOD = recording()


def test_a_good_recording_violates_nothing() -> None:
    assert violations(GOOD) == []


def index_of(kind: str, entries: list[dict[str, Any]] = GOOD, last: bool = False) -> int:
    hits = [i for i, e in enumerate(entries) if kind in (e.get("event"), e.get("action"))]
    return hits[-1] if last else hits[0]


def test_bounds_not_given_back_are_noticed() -> None:
    broken = [e for e in GOOD if e.get("action") != "RestoreGpuBounds"]
    assert any("not given back" in v for v in violations(broken))


def test_a_write_without_a_saved_original_is_noticed() -> None:
    entry = {"write": f"{NODE}/max_freq", "value": "307200000", "saved": False, "t_s": 1.0}
    assert any("no original was saved" in v for v in violations([*GOOD, entry]))


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [
        (("min_freq", 614400000), ("max_freq", 614400000), True),
        (("max_freq", 614400000), ("min_freq", 614400000), False),
    ],
)
def test_the_wrong_order_of_writes_is_noticed(first: tuple[str, int], second: tuple[str, int], wrong: bool) -> None:
    writes = [("max_freq", 307200000), ("min_freq", 307200000), first, second]
    entries = [{"write": f"{NODE}/{n}", "value": str(v), "saved": True, "t_s": 1.0} for n, v in writes]
    assert bool([v for v in violations([*GOOD, *entries]) if "was above" in v]) is wrong


def test_an_answer_that_never_came_is_noticed() -> None:
    i = index_of("SetGpuBounds")
    broken = GOOD[: i + 1] + [e for e in GOOD[i + 1 :] if e.get("event") != "KnobReadBack"]
    assert any("were not read back" in v for v in violations(broken))


def test_advice_that_nothing_came_of_is_noticed() -> None:
    def is_about(e: dict[str, Any]) -> bool:
        return e.get("event") in ("BatchApplied", "StepsReported") or e.get("action") == "AdviseBatch"

    i = next(i for i, e in enumerate(GOOD) if e.get("action") == "AdviseBatch" and e["batch_size"] != 32)
    tick = {"event": "Tick", "t_s": GOOD[index_of("JobEnded")]["t_s"] + 100}
    broken = GOOD[: i + 1] + [e for e in GOOD[i + 1 :] if not is_about(e) and e.get("event") != "JobEnded"] + [tick]
    assert any("nothing came of it" in v for v in violations(broken))


def test_a_job_that_pauses_has_its_time_to_follow_afterwards() -> None:
    def is_about(e: dict[str, Any]) -> bool:
        return e.get("event") in ("BatchApplied", "StepsReported") or e.get("action") == "AdviseBatch"

    i = next(i for i, e in enumerate(GOOD) if e.get("action") == "AdviseBatch" and e["batch_size"] != 32)
    rest = [e for e in GOOD[i + 1 :] if not is_about(e) and e.get("event") != "JobEnded"]
    end_s = GOOD[index_of("JobEnded")]["t_s"] + 100
    pause = {"event": "JobPaused", "t_s": GOOD[i - 1].get("t_s", 100.0), "job": "j1", "reason": "evaluation"}
    tick = {"event": "Tick", "t_s": end_s}
    assert not any("nothing came" in v for v in violations([*GOOD[: i + 1], pause, *rest, tick]))
    later = [{"event": "JobResumed", "t_s": end_s, "job": "j1"}, {"event": "Tick", "t_s": end_s + 70}]
    assert any("nothing came" in v for v in violations([*GOOD[: i + 1], pause, *rest, tick, *later]))


def test_advice_of_a_batch_size_the_job_cannot_use_is_noticed() -> None:
    i = index_of("AdviseBatch")
    broken = [*GOOD[:i], {**GOOD[i], "batch_size": 77}, *GOOD[i + 1 :]]
    assert any("batch 77, which it cannot use" in v for v in violations(broken))


def test_standing_above_the_cap_is_noticed() -> None:
    end = index_of("JobEnded")
    begin = GOOD[end - 1]["t_s"]
    above = [{"event": "Sample", "t_s": begin + k / 100, "input_power_w": 5.5} for k in range(1, 2000)]
    assert any("has been at or above the cap" in v for v in violations([*GOOD[:end], *above]))


def test_bounds_off_the_clock_table_and_lost_lines_are_noticed() -> None:
    i = index_of("SetGpuBounds")
    broken = [*GOOD[:i], {**GOOD[i], "max_hz": CLOCKS[3] + 1}, *GOOD[i + 1 :], {"lost": 3}]
    found = violations(broken)
    assert any("not steps of the clock table" in v for v in found)
    assert any("3 lines" in v for v in found)


def over_current(seconds: float, limit: int, avoid: bool = True) -> list[dict[str, Any]]:
    """A recording of policy fixed at the highest clock, where counters rise above clock index ``limit``."""
    guard = GuardSettings(avoid_over_current=avoid)
    bench = Bench(Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[-1], guard=guard))
    bench.register()
    for _ in range(round(5 * seconds)):
        bench.run(0.2)
        if bench.hz > CLOCKS[limit]:
            bench.feed(OverCurrentCounted(bench.now, (("oc3", 2),)))
    bench.end()
    header = {"schema": "traingov.recording/1", "board": encode(bench.board), "settings": encode(bench.settings)}
    return [header, *(encode_event(e) if hasattr(e, "t_s") else encode_action(e) for _, e in bench.log)]


def test_a_recording_with_over_current_that_was_avoided_violates_nothing() -> None:
    assert violations(over_current(150, 8)) == []


def test_counters_that_rise_on_and_on_without_a_lower_clock_are_noticed() -> None:
    entries = over_current(20, 8, avoid=False)
    assert violations(entries) == []
    entries[0]["settings"]["guard"]["avoid_over_current"] = True
    assert any("over-current counters have risen for" in v for v in violations(entries))


def test_a_clock_at_which_the_counters_rose_asked_for_again_too_soon_is_noticed() -> None:
    entries = over_current(40, 8)
    broken, last = [], 0.0
    for entry in entries:
        last = entry.get("t_s", last)
        broken.append(entry)
        if entry.get("event") == "Tick" and 128 < last < 128.15:  # 28 s after the job began, the clock long found
            broken.append(encode_action(SetGpuBounds(CLOCKS[-1], CLOCKS[-1], "too soon")))
    assert any("although over-current counters rose" in v for v in violations(broken))
