"""The real service on a virtual Nano, end to end: profiling, choice, cap, failures of every part, and giving back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from rig import FAST, SCRIPT, Lab, board_set, kill, state_of, traingov, training, wait_for

import traingov_client

CAP = {"cap": {"power_w": 4.5}, "profile": FAST}


def test_a_job_is_profiled_chosen_for_and_everything_is_given_back_and_the_recording_replays(lab: Lab) -> None:
    board = lab.board("nano", "a", 1)
    original = board.bounds_hz()
    record = lab.directory / "rec.jsonl"
    service = lab.service(board, "a", CAP, record)
    with training(service, [8, 32, 128]) as trainer:
        wait_for(lambda: state_of(service) == "joint", 60, "profiling ends")
        decision = [d for d in service.ask("explain") if d["kind"] == "joint"][-1]
        chosen = decision["point"]
        wait_for(lambda: trainer.batch == chosen["batch_size"], 5, "the job follows to the chosen batch")
        wait_for(lambda: board.bounds_hz() == (chosen["gpu_frequency_hz"],) * 2, 5, "the clock is pinned")
        wait_for(lambda: (service.ask("status")["input_power_w"] or 9) < 4.5, 5, "power is below the cap")
        assert "candidates under cap 4.5 W" in decision["text"]
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
    assert state_of(service) == "idle"
    (ended,) = service.ask("jobs")["ended"]
    truth = board.truth()
    assert 0.9 * truth["input_j"] < ended["input_energy_j"] < truth["input_j"]
    assert ended["samples"] == sum(int(n) for n in ended["samples_by_batch"].values()) > 0
    lab.stop(service)
    replayed = traingov("replay", str(record), "--json")
    answer = json.loads(replayed.stdout)
    assert (answer["difference"], answer["violations"], answer["good"]) == (None, [], True), replayed.stdout
    assert answer["events"] > 1000

    # The table is kept: the next run of the service begins with it and measures nothing.
    again = lab.service(board, "a", CAP)
    with training(again, [8, 32, 128]) as trainer:
        wait_for(lambda: state_of(again) == "joint", 5, "the stored table is used")
        wait_for(lambda: trainer.batch == chosen["batch_size"], 10, "the job follows")
        assert not [d for d in again.ask("explain") if d["kind"] == "measured"]


def test_sigkill_of_the_service_in_mid_run_then_restore_puts_every_knob_back_and_training_goes_on(lab: Lab) -> None:
    board = lab.board("nano", "a", 2)
    original = board.bounds_hz()
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}})
    with training(service, [32]) as trainer:
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 10, "the clock is pinned")
        kill(service)
        assert board.bounds_hz() == (460_800_000,) * 2
        steps = len(trainer.steps)
        done = traingov("restore", "--root", board.root, "--state-dir", str(service.state_dir))
        assert done.returncode == 0, done.stdout + done.stderr
        assert board.bounds_hz() == original
        wait_for(lambda: len(trainer.steps) > steps + 20, 10, "training goes on without the service")


def test_after_a_sigkill_the_next_start_restores_first_and_the_job_comes_back_with_its_progress(lab: Lab) -> None:
    board = lab.board("nano", "a", 3)
    original = board.bounds_hz()
    config = {"policy": "fixed", "fixed": {"gpu_frequency_hz": 307_200_000}}
    service = lab.service(board, "a", config)
    with training(service, [32]) as trainer:
        wait_for(lambda: board.bounds_hz() == (307_200_000,) * 2, 10, "the clock is pinned")
        kill(service)
        again = lab.service(board, "a", config)
        assert "left over from an earlier run" in again.log.read_text()
        wait_for(lambda: again.ask("status")["jobs"], 15, "the job reconnects")
        (job,) = again.ask("status")["jobs"]
        assert job["samples"] > 0
        wait_for(lambda: board.bounds_hz() == (307_200_000,) * 2, 10, "the clock is pinned again")
        assert trainer.error is None
    wait_for(lambda: board.bounds_hz() == original, 5, "the true originals are given back, not our own pin")


def test_a_stop_under_load_gives_the_clock_back_and_ends_with_status_0(lab: Lab) -> None:
    board = lab.board("nano", "a", 4)
    original = board.bounds_hz()
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}})
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 10, "the clock is pinned")
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(10) == 0
        assert board.bounds_hz() == original


def test_a_job_killed_with_sigkill_gives_the_clock_back(lab: Lab) -> None:
    board = lab.board("nano", "a", 5)
    original = board.bounds_hz()
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}})
    child = os.fork()
    if child == 0:  # a process that registers and then hangs
        traingov_client.register(workload="digits-mlp", batch_sizes=[32], socket=str(service.socket))
        time.sleep(600)
        os._exit(0)
    try:
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 10, "the clock is pinned")
    finally:
        os.kill(child, signal.SIGKILL)
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
    os.waitpid(child, 0)


def test_a_cap_set_lowered_and_lifted_while_training_is_followed(lab: Lab) -> None:
    board = lab.board("nano", "a", 6)
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": 921_600_000}})
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz()[1] == 921_600_000, 10, "the clock is pinned")
        done = traingov("cap", "set", "5.0", "--socket", str(service.socket))
        assert done.stdout.startswith("5 W over 1 s"), done.stderr
        wait_for(lambda: board.bounds_hz()[1] < 921_600_000, 5, "the guard steps down")
        wait_for(lambda: (service.ask("status")["input_power_w"] or 9) < 4.9, 20, "power comes below the cap")
        low = board.bounds_hz()[1]
        assert 76_800_000 < low < 921_600_000
        assert traingov("cap", "clear", "--socket", str(service.socket)).returncode == 0
        wait_for(lambda: board.bounds_hz()[1] == 921_600_000, 10, "without a cap the clock is free again")
        wrong = traingov("cap", "set", "5", "--burst", "4", "--socket", str(service.socket))
        assert (wrong.returncode, "burst_w" in wrong.stderr) == (2, True)


def test_a_cap_set_by_command_is_kept_over_a_restart_until_it_is_cleared(lab: Lab) -> None:
    board = lab.board("nano", "a", 12)
    service = lab.service(board, "a", {"policy": "observe"})
    assert traingov("cap", "set", "4.5", "--window", "2", "--socket", str(service.socket)).returncode == 0
    wait_for((service.state_dir / "cap.json").exists, 5, "the cap is on disk")
    kill(service)
    again = lab.service(board, "a", {"policy": "observe"})
    got = again.ask("status")
    assert got["cap_w"] == 4.5
    shown = traingov("cap", "get", "--socket", str(again.socket)).stdout
    assert shown.startswith("4.5 W over 2 s")
    assert "uid" in shown
    traingov("cap", "clear", "--socket", str(again.socket))
    lab.stop(again)
    assert lab.service(board, "a", {"policy": "observe"}).ask("status")["cap_w"] is None


def test_a_tegrastats_that_hangs_makes_a_capped_board_safe_and_coming_back_is_noticed(lab: Lab) -> None:
    board = lab.board("nano", "a", 7)
    config = {"policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}, "cap": {"power_w": 6.0}}
    service = lab.service(board, "a", config)
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz()[1] == 460_800_000, 10, "the clock is pinned")
        board_set(board, tegrastats="hang")
        wait_for(lambda: board.bounds_hz()[1] == 76_800_000, 5, "the clock becomes the lowest")
        assert "telemetry-stale" in service.ask("status")["conditions"]
        board_set(board, tegrastats="run")
        wait_for(lambda: board.bounds_hz()[1] == 460_800_000, 20, "the clock comes back")
        assert service.ask("status")["conditions"] == {}


def test_a_batch_that_does_not_fit_the_boards_memory_is_found_without_ending_the_run(lab: Lab) -> None:
    board = lab.board("nano", "a", 8)
    config = {"policy": "joint", "cap": {"power_w": 4.0}, "profile": {**FAST, "max_frequencies": 3}}
    service = lab.service(board, "a", config)
    with training(service, [64, 4096], workload="mobilenetv2") as trainer:
        wait_for(lambda: trainer.failed_batches == [4096], 20, "the large batch fails")
        wait_for(lambda: trainer.steps and trainer.batch == 64, 20, "training goes on with a smaller batch")
        wait_for(
            lambda: any(d["kind"] == "batch-dropped" for d in service.ask("explain")), 5, "it leaves the candidates"
        )


def test_another_program_that_changes_the_clock_is_noticed(lab: Lab) -> None:
    board = lab.board("nano", "a", 9)
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": 460_800_000}})
    node = next((Path(board.root) / "sys/class/devfreq").glob("*/max_freq"))
    with training(service, [32]):
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 10, "the clock is pinned")
        node.write_text("921600000\n")
        wait_for(lambda: "foreign-writer" in service.ask("status")["conditions"], 5, "the change is noticed")
        wait_for(lambda: board.bounds_hz() == (460_800_000,) * 2, 5, "it is written again")


def test_observe_writes_nothing(lab: Lab) -> None:
    board = lab.board("nano", "a", 10)
    original = board.bounds_hz()
    service = lab.service(board, "a", {"policy": "observe", "cap": {"power_w": 4.5}})
    with training(service, [8, 32]):
        wait_for(lambda: service.ask("status")["input_power_w"], 10, "it samples")
        (said,) = [d["text"] for d in service.ask("explain") if d["kind"] == "observe"]
        assert "would measure at most" in said
        assert board.bounds_hz() == original
    assert not (service.state_dir / "restore.json").exists()


def test_the_energy_policy_pins_the_trees_clock_on_a_virtual_agx_orin(lab: Lab) -> None:
    board = lab.board("agx-orin", "a", 11)
    service = lab.service(board, "a", {"policy": "energy", "energy": {"reference_window_s": 1}})
    features = {"model_type": "encoder", "layers": 24, "hidden_size": 1024, "seq_len_avg": 70.0}
    with training(service, [32], workload="text-classifier", features=features):
        wait_for(lambda: board.bounds_hz() == (816_000_000,) * 2, 15, "the tree's clock is pinned")
        (decision,) = [d for d in service.ask("explain") if d["kind"] == "tree"]
        assert "layers 24 > 7, seq_len_avg 70 > 53" in decision["text"]


def test_a_wrong_configuration_ends_with_status_2_and_one_line(tmp_path: Path) -> None:
    wrong = tmp_path / "c.yaml"
    wrong.write_text("policy: quick\n")
    done = subprocess.run(
        [SCRIPT.with_name("traingovd"), "--config", wrong], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [f"traingovd: {wrong}:1: policy: 'quick' is not one of "
                                                "['joint', 'energy', 'fixed', 'observe']"]  # fmt: skip
