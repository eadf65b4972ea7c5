"""A governed run on a board whose kernel files are served by FUSE: refusals, snapping and order as in a kernel."""

from __future__ import annotations

import json

import pytest
from rig import FAST, Lab, kill, state_of, traingov, training, wait_for

from traingov_sim.kernel.fusefs import unavailable

pytestmark = pytest.mark.system


@pytest.fixture
def fuse_lab():
    reason = unavailable()
    if reason is not None:
        pytest.skip(f"FUSE cannot be used: {reason}")
    with Lab() as lab:
        yield lab


def test_a_governed_run_writes_in_the_kernels_order_and_gives_everything_back(fuse_lab: Lab) -> None:
    board = fuse_lab.board("nano", "a", 21, fuse=True)
    original = board.bounds_hz()
    record = fuse_lab.directory / "rec.jsonl"
    config = {"cap": {"power_w": 4.5}, "profile": {**FAST, "max_frequencies": 4}}
    service = fuse_lab.service(board, "a", config, record)
    with training(service, [16, 128]) as trainer:
        wait_for(lambda: state_of(service) == "joint", 60, "profiling ends")
        (chosen,) = {json.dumps(d["point"]) for d in service.ask("explain") if d["kind"] == "joint"}
        point = json.loads(chosen)
        wait_for(lambda: board.bounds_hz() == (point["gpu_frequency_hz"],) * 2, 5, "the clock is pinned")
        wait_for(lambda: trainer.batch == point["batch_size"], 5, "the job follows")
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
    fuse_lab.stop(service)
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    writes = [e for e in entries if "write" in e]
    assert len(writes) >= 6
    assert all("error" not in e for e in writes), [e for e in writes if "error" in e]
    answer = json.loads(traingov("replay", str(record), "--json").stdout)
    assert answer["good"], answer


def test_sigkill_in_mid_run_then_restore_puts_every_knob_back(fuse_lab: Lab) -> None:
    board = fuse_lab.board("nano", "a", 22, fuse=True)
    original = board.bounds_hz()
    service = fuse_lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}})
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 10, "the clock is pinned")
        kill(service)
        done = traingov("restore", "--root", board.root, "--state-dir", str(service.state_dir))
        assert (done.returncode, board.bounds_hz()) == (0, original), done.stdout + done.stderr
