"""What the real service says of its choice, and what its store shows of the table behind it."""

from __future__ import annotations

import json
from pathlib import Path

from rig import FAST, Lab, state_of, traingov, training, wait_for

RELATION = Path(__file__).parents[2] / "etc" / "relations" / "digits-mlp.json"
CAP = {"cap": {"power_w": 4.5}, "profile": FAST}


def test_a_governed_jobs_choice_is_explained_in_words_and_agrees_with_its_stored_table(lab: Lab) -> None:
    board = lab.board("nano", "a", 9)
    service = lab.service(board, "a", CAP)
    with training(service, [8, 32]):
        wait_for(lambda: state_of(service) == "joint", 60, "profiling ends")
        said = traingov("explain", "--socket", str(service.socket))
        values = json.loads(traingov("explain", "--json", "--socket", str(service.socket)).stdout)
    decision = [d for d in values if d["kind"] == "joint"][-1]
    point = decision["point"]
    place = f"batch {point['batch_size']} at {point['gpu_frequency_hz'] / 1e6:.0f} MHz"
    assert f"Chosen: {place}, the least time to accuracy of" in said.stdout, said.stderr
    assert "that stay below 4.5 W" in said.stdout
    assert decision["explanation"][0].strip() in said.stdout
    assert decision["detail"]["chosen"]["origin"] == "measured"
    assert decision["detail"]["chosen"]["violation_probability"] < 0.05

    (entry,) = json.loads(traingov("lut", "list", "--json", "--state-dir", str(service.state_dir)).stdout)
    assert (entry["kind"], entry["workload"]) == ("table", "digits-mlp")
    chosen = json.loads(
        traingov("select", "--lut", entry["path"], "--relation", str(RELATION), "--cap", "4.5",
                 "--measured-only", "--json").stdout
    )  # fmt: skip
    assert (chosen["batch_size"], chosen["gpu_frequency_hz"]) == (point["batch_size"], point["gpu_frequency_hz"])
