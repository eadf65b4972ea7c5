from __future__ import annotations

from pathlib import Path

import pytest

from traingov.replay.recording import read, replay
from traingov_policies.relation import RelationVector
from traingov_policies.values import Cap
from traingov_sim.board.boardspec import load_board
from traingov_sim.board.observed import Contention
from traingov_sim.surfaces import load
from traingov_sim.twin import Steps, Twin

SIZES = (8, 32, 128)


def eventful(seed: int) -> Twin:
    """Profiling, a choice, other caps, contention, a fault, a second job, and the end of all."""
    twin = Twin(load_board("nano"), cap=Cap(4.5), seed=seed, record=True)
    surface = load("nano", "digits-mlp")
    twin.add_job(surface, SIZES, relation=RelationVector("digits-mlp", SIZES, (0.6, 0.8, 1.0)))
    twin.at(60.0, lambda t: t.set_cap(Cap(6.0)))
    twin.at(90.0, lambda t: setattr(t.board, "contention", Contention(1.2, 1.1)))
    twin.at(100.0, lambda t: t.board.sensor.set_fault("missing"))
    twin.at(102.0, lambda t: t.board.sensor.set_fault(None))
    twin.at(110.0, lambda t: t.add_job(surface, (32,), name="second", progress=Steps(100)))
    twin.at(130.0, lambda t: t.set_cap(None))
    twin.run(140)
    twin.end()
    return twin.run(1)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_recording_of_the_twin_replays_to_the_same_actions_and_holds_every_invariant(
    seed: int, tmp_path: Path
) -> None:
    twin = eventful(seed)
    assert twin.recording is not None
    path = tmp_path / "twin.jsonl"
    twin.recording.save(path)
    result = replay(read(path.open(encoding="utf-8")))
    assert result.difference is None
    assert result.violations == ()
    assert result.events > 5000
    assert result.actions == len(twin.actions)


def test_a_recording_that_was_tampered_with_does_not_replay() -> None:
    twin = eventful(1)
    assert twin.recording is not None
    entries = list(twin.recording.entries)
    index = next(i for i, e in enumerate(entries) if e.get("action") == "SetGpuBounds")
    entries[index] = {**entries[index], "max_hz": 921_600_000}
    assert replay(entries).difference is not None


def test_writes_are_recorded_in_an_order_that_never_crosses() -> None:
    twin = eventful(1)
    assert twin.recording is not None
    writes = [e for e in twin.recording.entries if "write" in e]
    assert len(writes) >= 4
    bounds = {"min_freq": 76_800_000, "max_freq": 921_600_000}
    for write in writes:
        assert write["saved"]
        assert "error" not in write
        bounds[write["write"].rsplit("/", 1)[1]] = int(write["value"])
        assert bounds["min_freq"] <= bounds["max_freq"]
