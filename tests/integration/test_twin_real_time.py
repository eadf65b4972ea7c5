"""The twin against what it stands for: the real service, a real client and a virtual board, all in real time."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from rig import FAST, Lab, state_of, training, wait_for

from traingov_policies.values import Cap, PolicyName
from traingov_sim.board.boardspec import load_board
from traingov_sim.surface import step_time_s
from traingov_sim.surfaces import load
from traingov_sim.twin import Twin, settings_for

SIZES = [8, 32, 128]
CAP_W = 4.5
TRAIN_S = 25.0


@pytest.mark.slow
def test_the_twin_chooses_as_good_a_point_and_spends_the_same_energy_a_sample_as_in_real_time(lab: Lab) -> None:
    board = lab.board("nano", "a", 11)
    service = lab.service(board, "a", {"cap": {"power_w": CAP_W}, "profile": FAST})
    with training(service, SIZES) as trainer:
        wait_for(lambda: state_of(service) == "joint", 120, "profiling ends")
        chosen = [d for d in service.ask("explain") if d["kind"] == "joint"][-1]["point"]
        wait_for(lambda: trainer.batch == chosen["batch_size"], 5, "the job follows")
        time.sleep(3)
        real = _spent(board.truth, TRAIN_S)

    twin = Twin(load_board("nano"), _fast(), Cap(CAP_W), seed=11)
    twin.add_job(load("nano", "digits-mlp"), SIZES)
    twin.run(120, until=lambda t: t.settled)
    decision = twin.decided("joint")
    assert decision is not None
    assert decision.point is not None
    # Two points may be as good as one another, so what is compared is what the choices cost.
    surface = load("nano", "digits-mlp")
    here, there = (chosen["batch_size"], chosen["gpu_frequency_hz"]), vars(decision.point).values()
    costs = [step_time_s(surface, b, hz) / b for b, hz in (here, there)]
    assert costs[0] == pytest.approx(costs[1], rel=0.06)

    fixed = replace(_fast(), policy=PolicyName.FIXED, fixed_frequency_hz=here[1])
    twin = Twin(load_board("nano"), fixed, Cap(CAP_W), seed=11)
    twin.add_job(surface, [here[0]])
    twin.run(20)  # as warm as the real one is by now
    before = twin.board.truth(twin.t_s)
    twin.run(TRAIN_S)
    after = twin.board.truth(twin.t_s)
    per_sample = (after.input_j - before.input_j) / (after.samples - before.samples)
    assert per_sample == pytest.approx(real["joules"] / real["samples"], rel=0.02)
    assert (after.samples - before.samples) / TRAIN_S == pytest.approx(real["samples"] / real["seconds"], rel=0.03)


def _fast() -> Any:
    settings = settings_for(load_board("nano"))
    return replace(settings, profile=replace(settings.profile, **FAST))


def _spent(truth: Any, seconds: float) -> dict[str, float]:
    before = truth()
    time.sleep(seconds)
    after = truth()
    return {
        "joules": after["input_j"] - before["input_j"],
        "samples": after["samples"] - before["samples"],
        "seconds": after["t"] - before["t"] if "t" in after else after["t_s"] - before["t_s"],
    }
