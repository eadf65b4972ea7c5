"""The example scripts, as a user starts them, under the real service on virtual boards."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install -r tests/frameworks.txt")
from rig import FAST, Lab, Service, kill, state_of, wait_for  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
CAP = {"cap": {"power_w": 4.5}, "profile": FAST}


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as it:
        yield it


def start(script: str, *arguments: str, service: Service | None = None, path: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "TRAINGOV_SOCKET": path or "/nonexistent"}
    if service is not None:
        environment.update(TRAINGOV_SOCKET=str(service.socket), TRAINGOV_SIM_GPU=service.board.gpu)
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / script), *arguments], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def seldom(what: Callable[[], Any]) -> Callable[[], Any]:
    """``what`` once a second: each look starts a process, and the training beside it needs the processors."""

    def look() -> Any:
        time.sleep(1)
        return what()

    return look


def result(process: subprocess.Popen[str], seconds: float = 120) -> tuple[dict[str, Any], str]:
    """The last line, and what was said on stderr."""
    out, said = process.communicate(timeout=seconds)
    assert process.returncode == 0, said[-2000:]
    return json.loads(out.splitlines()[-1]), said


def saved(file: Path) -> dict[str, Any]:
    """The loop's state in a checkpoint; {} where it is half written or not there yet."""
    try:
        return dict(torch.load(file)["loop"])
    except Exception:
        return {}


def test_a_pytorch_loop_is_governed_outlives_the_service_and_goes_on_from_its_checkpoint(
    lab: Lab, tmp_path: Path
) -> None:
    board = lab.board("nano", "a", 31)
    service = lab.service(board, "a", CAP)
    file = tmp_path / "digits.pt"
    arguments = ["--batch-sizes", "8,32,128", "--every", "2", "--checkpoint", str(file)]
    training = start("torch_loop.py", *arguments, "--epochs", "100000", service=service)
    try:
        wait_for(seldom(lambda: state_of(service) == "joint" or training.poll()), 150, "profiling ends")
        (job,) = service.ask("status")["jobs"]
        assert job["workload"] == "digits-mlp"
        chosen = [d for d in service.ask("explain") if d["kind"] == "joint"][-1]["point"]["batch_size"]
        (running,) = service.ask("jobs")["running"]
        assert len(running["samples_by_batch"]) >= 2, "several batch sizes were measured"
        wait_for(seldom(lambda: saved(file).get("batch_size") == chosen), 20, "the job follows to the chosen batch")
        kill(service)
        done = saved(file)["samples_done"]
        wait_for(seldom(lambda: saved(file).get("samples_done", 0) > done), 20, "training goes on without the service")
    finally:
        training.send_signal(signal.SIGTERM)
        training.communicate(timeout=20)
    before = saved(file)
    again = lab.service(board, "a", CAP)
    training = start("torch_loop.py", *arguments, "--epochs", str(before["epoch"] + 4), service=again)
    try:
        wait_for(
            seldom(lambda: sum(job["samples"] for job in again.ask("status")["jobs"]) >= before["samples_done"] > 0),
            120,
            "the service is told of the progress",
        )
    finally:
        after, _ = result(training)
    assert after["epochs"] == before["epoch"] + 4
    assert after["samples"] == before["samples_done"] + 4 * 1497
    assert after["accuracy"] > 0.9
    assert not [d for d in again.ask("explain") if d["kind"] == "measured"], "the table was kept"


def test_lightning_changes_its_batch_between_epochs_as_the_service_advises(lab: Lab) -> None:
    board = lab.board("nano", "a", 32)
    original = board.bounds_hz()
    service = lab.service(board, "a", CAP)
    training = start("lightning_trainer.py", "--epochs", "8", "--batch-sizes", "32,128", service=service)
    after, _ = result(training)
    assert len(after["batch_sizes"]) == 8
    assert len(set(after["batch_sizes"])) >= 2
    assert after["accuracy"] > 0.85
    (ended,) = service.ask("jobs")["ended"]
    assert set(ended["samples_by_batch"]) == {str(size) for size in set(after["batch_sizes"])}
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")


def test_the_trainers_clock_is_set_by_the_tree_for_the_models_own_features(lab: Lab) -> None:
    board = lab.board("agx-orin", "a", 33)
    original = board.bounds_hz()
    energy = {"reference_window_s": 1, "window_s": 2, "window_most_s": 3, "probes_most": 1, "loss_s": 30}
    service = lab.service(board, "a", {"policy": "energy", "energy": energy})
    training = start("huggingface_trainer.py", "--steps", "80", service=service)
    try:
        wait_for(
            lambda: board.bounds_hz()[0] == board.bounds_hz()[1] or training.poll() is not None, 60, "it is pinned"
        )
        pinned = [d for d in service.ask("explain") if d["kind"] == "tree"]
    finally:
        after, _ = result(training)
    assert pinned
    assert after["steps"] == 80
    assert after["accuracy"] > 0.3
    (ended,) = service.ask("jobs")["ended"]
    assert ended["samples"] >= 70 * 32
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")


def test_a_service_that_never_answers_does_not_hold_a_training_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen(8)
        after, said = result(start("torch_loop.py", "--epochs", "1", path=str(tmp_path / "s")))
    assert after["samples"] == 1497
    assert said.count("no answer within 1 s; training goes on without waiting") == 1


def test_the_plain_loop_needs_nothing_but_the_client() -> None:
    after, said = result(start("plain_loop.py", "--epochs", "3"))
    assert after["accuracy"] > 0.95
    assert after["governed"] is False
    assert said.count("training goes on ungoverned") == 1
