"""The energy policy on a virtual AGX Orin, live: the tree's clock first, then a search with training steps."""

from __future__ import annotations

import json

import pytest
from rig import Lab, traingov, training, wait_for

CONFIG = {
    "policy": "energy",
    "energy": {"reference_window_s": 1, "window_s": 2, "window_most_s": 3, "probes_most": 3, "loss_s": 30},
}
FEATURES = {"model_type": "encoder", "layers": 24, "hidden_size": 1024, "seq_len_avg": 70.0}


@pytest.mark.slow
def test_the_search_starts_at_the_trees_clock_keeps_what_it_found_and_only_verifies_it_the_next_time(lab: Lab) -> None:
    board = lab.board("agx-orin", "a", 21)
    original = board.bounds_hz()
    record = lab.directory / "rec.jsonl"
    service = lab.service(board, "a", CONFIG, record)
    with training(service, [32], workload="text-classifier", features=FEATURES) as trainer:
        wait_for(lambda: board.bounds_hz() == (816_000_000,) * 2, 15, "the tree's clock is pinned")
        said = wait_for(
            lambda: [d for d in service.ask("explain") if d["kind"] == "searched"], 120, "the search comes to its end"
        )[-1]
        chosen = said["point"]["gpu_frequency_hz"]
        wait_for(lambda: board.bounds_hz() == (chosen,) * 2, 5, "the best clock is pinned")
        readings = [d for d in service.ask("explain") if d["kind"] == "search-reading"]
        assert {d["point"]["gpu_frequency_hz"] for d in readings} >= {816_000_000, chosen}
        assert trainer.error is None
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
    lab.stop(service)
    (path,) = (service.state_dir / "curves").glob("*/*/*/*.json")
    curve = json.loads(path.read_text())
    assert (curve["tree_frequency_hz"], curve["best_frequency_hz"]) == (816_000_000, chosen)
    assert traingov("check", str(path)).returncode == 0
    replayed = json.loads(traingov("replay", str(record), "--json").stdout)
    assert (replayed["difference"], replayed["violations"]) == (None, [])

    again = lab.service(board, "a", CONFIG)
    with training(again, [32], workload="text-classifier", features=FEATURES):
        wait_for(lambda: [d for d in again.ask("explain") if d["kind"] == "searched"], 120, "it is verified")
        kinds = [d["kind"] for d in again.ask("explain")]
        assert kinds.count("search-reading") <= len(readings)
    lab.stop(again)
