"""Recordings of the demonstration replay to the same actions, and real tegrastats lines go through the same loop."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from command_line import traingov
from traingov.data import data_dir
from traingov.replay.log import replay_log
from traingov.replay.recording import read, replay
from traingov.telemetry.rails import RailTable
from traingov_policies.events import JobRegistered
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap, PolicyName

HERE = Path(__file__).parent
SHARED = Path(__file__).parents[3] / "shared" / "data" / "tegrastats" / "lines.jsonl"
RECORDINGS = sorted(HERE.glob("*.jsonl.gz"))
CLOCKS = tuple(76_800_000 * k for k in range(1, 13))


def test_the_demonstrations_recordings_are_here() -> None:
    assert {p.name for p in RECORDINGS} >= {"demo-profile.jsonl.gz", "demo-joint.jsonl.gz", "demo-tree.jsonl.gz"}


SCENARIOS = {
    "cap-step": {"cap", "joint", "guard-up"},
    "cap-walk": {"cap", "joint", "learned"},
    "drift-memory": {"drift", "revalidated"},
    "drift-power-mode": {"board", "joint"},
    "idle": {"idle", "idle-over"},
    "over-current": {"over-current"},
    "two-jobs": {"sharing", "joint"},
}


@pytest.mark.parametrize(("name", "kinds"), SCENARIOS.items())
def test_a_recorded_scenario_holds_the_decisions_that_it_is_named_after(name: str, kinds: set[str]) -> None:
    with gzip.open(HERE / f"scenario-{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        decided = {entry["kind"] for entry in read(file) if entry.get("action") == "Decided"}
    assert kinds <= decided


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.name)
def test_a_recording_gives_the_same_actions_and_holds_every_invariant(path: Path) -> None:
    result = traingov("replay", str(path), "--tolerance", "1e-6", "--json")
    answer = json.loads(result.stdout)
    assert answer["difference"] is None
    assert answer["violations"] == []
    assert (result.exit_code, answer["good"]) == (0, True)
    assert answer["events"] > 500
    assert answer["actions"] > 5


def test_one_changed_action_is_found() -> None:
    with gzip.open(HERE / "demo-profile.jsonl.gz", "rt", encoding="utf-8") as file:
        entries = list(read(file))
    i = next(i for i, e in enumerate(entries) if e.get("action") == "SetGpuBounds")
    entries[i] = {**entries[i], "max_hz": entries[i]["max_hz"] + 76_800_000}
    result = replay(entries)
    assert result.difference is not None
    assert "SetGpuBounds" in result.difference


def log_of(board: str, lines: list[str], cap_w: float | None, policy: PolicyName = PolicyName.OBSERVE):
    table = RailTable.load(data_dir() / "boards")
    settings = Settings(policy=policy, fixed_frequency_hz=CLOCKS[-1], sampling_interval_s=1.0)
    job = JobRegistered(0.0, "log", "log", (8,), 8)
    cap = None if cap_w is None else Cap(cap_w, window_s=2.0)
    return replay_log(lines, Board(board, "R32", "MAXN", CLOCKS), settings, cap, job=job, table=table)


def test_a_bare_tegrastats_log_replays_and_the_guard_acts_on_it() -> None:
    rails = "POM_5V_IN {0}/{0} POM_5V_GPU 1000/1000 POM_5V_CPU 500/500"
    lines = [
        f"RAM 1245/3964MB (lfb 147x4MB) CPU [5%@1479,2%@1479,0%@1479,1%@1479] EMC_FREQ 0%@1600 GR3D_FREQ 99%@921 "
        f"{rails.format(mw)}\n"
        for mw in [4000] * 10 + [6000] * 10
    ]
    result = log_of("nano", [*lines[:5], "something else entirely\n", *lines[5:]], 5.0, PolicyName.FIXED)
    assert (result.lines, result.foreign) == (21, 1)
    assert result.summary.input_energy_j == pytest.approx(9 * 4 + 5 + 9 * 6, rel=0.03)
    downs = [a for _, a in result.actions if type(a).__name__ == "Decided" and a.kind == "guard-down"]
    assert downs


def real_lines() -> list[dict[str, str]]:
    if not SHARED.exists():
        pytest.skip(f"no recorded lines of real boards: {SHARED} is absent")
    return [json.loads(line) for line in SHARED.read_text(encoding="utf-8").splitlines()]


def test_real_lines_of_every_board_replay_through_the_loop() -> None:
    by_board: dict[str, list[str]] = {}
    for entry in real_lines():
        by_board.setdefault(entry["board"], []).append(entry["line"] + "\n")
    powered = 0
    for board, lines in by_board.items():
        result = log_of(board, lines * 5, 1000.0)
        assert result.foreign == 0, board
        assert result.summary.above_cap_s == 0
        powered += result.summary.input_energy_j > 0
    assert powered >= 12


def test_a_log_with_a_gap_of_twenty_hours_is_not_charged_for_it() -> None:
    rails = "VDD_IN 5000mW/5000mW VDD_CPU_GPU_CV 1000mW/1000mW VDD_SOC 1mW/1mW"
    line = f"RAM 1/2MB CPU [0%@729] GR3D_FREQ 0% cpu@42C {rails}\n"
    lines = [f"05-18-2026 00:29:{s:02d} {line}" for s in range(10)] + [
        f"05-18-2026 20:29:{s:02d} {line}" for s in range(10)
    ]
    result = log_of("Orin Nano", lines, None)
    assert result.summary.input_energy_j == pytest.approx(5.0 * 18, rel=0.01)
    assert result.summary.gap_s == pytest.approx(20 * 3600 - 9, rel=0.01)


def test_a_recording_cut_in_its_last_line_is_read_up_to_there_and_garbage_is_named(tmp_path: Path) -> None:
    assert list(read(['{"a": 1}\n', '{"b": 2'])) == [{"a": 1}]
    with pytest.raises(ValueError, match="line 2"):
        list(read(['{"a": 1}\n', "xx\n", '{"b": 2}\n']))
    empty = tmp_path / "e.jsonl"
    empty.write_text("")
    result = traingov("replay", str(empty))
    assert (result.exit_code, "empty" in result.stderr) == (2, True)
