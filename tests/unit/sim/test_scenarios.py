"""The recorded scenarios: each shows what it is there for, replays to the same actions, and stays small."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from traingov.replay.recording import read, replay
from traingov_sim.scenarios.recorded import SCENARIOS, record

MOST_BYTES = 300_000
SHOWN = {
    "cap-step": lambda e: e.get("kind") == "cap",
    "cap-walk": lambda e: e.get("kind") == "cap",
    "drift-memory": lambda e: e.get("kind") == "revalidated",
    "drift-power-mode": lambda e: e.get("event") == "BoardFound",
    "over-current": lambda e: e.get("event") == "OverCurrentCounted",
    "two-jobs": lambda e: e.get("event") == "JobRegistered" and e.get("job") == "second",
    "idle": lambda e: e.get("action") == "JobIdle",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_shows_its_trouble_replays_the_same_and_holds_every_invariant(name: str, tmp_path: Path) -> None:
    said: list[str] = []
    (path,) = record(tmp_path, (name,), said.append)
    assert path.stat().st_size < MOST_BYTES
    assert said[0].startswith(str(path))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        entries = list(read(file))
    assert sum(bool(SHOWN[name](e)) for e in entries) >= 1
    result = replay(entries)
    assert (result.difference, result.violations) == (None, ())


@pytest.mark.slow
def test_the_same_scenario_gives_the_same_bytes(tmp_path: Path) -> None:
    first = record(tmp_path / "a", ("over-current",), lambda _: None)[0].read_bytes()
    assert first == record(tmp_path / "b", ("over-current",), lambda _: None)[0].read_bytes()
    header = json.loads(gzip.decompress(first).split(b"\n", 1)[0])
    assert header["schema"].startswith("traingov.recording/")
