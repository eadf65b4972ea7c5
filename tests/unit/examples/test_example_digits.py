"""The digits example: trains to its target alone, and does what a governed job must."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from traingov_proxy.recipes import digits

SCRIPT = Path(__file__).parents[3] / "examples" / "digits.py"


def run_script(*arguments: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The example as a process, with neither a daemon nor a virtual board."""
    environment = {k: v for k, v in os.environ.items() if k != "TRAINGOV_SIM_GPU"}
    environment.update(variables)
    environment["TRAINGOV_SOCKET"] = str(tmp_path / "no-daemon.sock")
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def example(load_example):
    return load_example("digits")


def options(example, *arguments: str):
    return example.parse(list(arguments))


def test_alone_it_reaches_its_target_by_real_training(tmp_path):
    done = run_script("--json", "--batch-sizes", "32", tmp_path=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["reached"]
    assert result["accuracy"] >= result["target"] == digits.TARGET_ACCURACY["target"]
    assert result["samples_by_batch_size"] == {"32": result["samples_to_accuracy"]}
    assert result["seconds"] > 0
    accuracies = [accuracy for _, accuracy in result["history"]]
    assert accuracies[0] < 0.8 < accuracies[-1]
    assert [n for n, _ in result["history"]] == list(range(512, result["samples"] + 1, 512))


def test_it_stops_at_max_samples_and_says_that_the_target_was_missed(tmp_path):
    done = run_script("--json", "--progress", "--max-samples", "1024", tmp_path=tmp_path)
    assert done.returncode == 1
    *progress, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["reached"] is False
    assert last["samples_to_accuracy"] is None
    assert last["samples"] == 1024
    assert progress
    assert all(set(line) == {"samples", "accuracy", "target"} for line in progress)


@pytest.mark.parametrize("wrong", [["--batch-sizes", "4,x"], ["--seed", "x"]])
def test_options_that_make_no_sense_are_status_2(wrong, example, capsys):
    with pytest.raises(SystemExit) as ended:
        example.parse(wrong)
    assert ended.value.code == 2
    assert wrong[1] in capsys.readouterr().err


def test_what_the_client_refuses_is_one_line_and_status_2(tmp_path):
    done = run_script("--batch-sizes", "0,4", tmp_path=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "batch_sizes" in done.stderr


@pytest.mark.parametrize("batch_size", [16, 128])
def test_it_needs_the_samples_that_the_recipes_own_loop_needs_on_the_same_data(
    batch_size, example, scripted_job, counting_device
):
    result = example.train(scripted_job([batch_size]), counting_device(), options(example, "--seed", "3"))
    expected = digits.train(batch_size, 3, digits.TARGET_ACCURACY["target"], task_name="target")
    assert result["samples_to_accuracy"] == expected


def test_the_learning_rate_follows_the_batch_size(example, scripted_job, counting_device):
    job = scripted_job([8, 32, 128], advice={3: 8, 10: 32})
    result = example.train(job, counting_device(), options(example, "--max-samples", "1000"))
    assert job.steps[:4] == [128, 128, 128, 8]
    assert job.steps[9:11] == [8, 32]
    assert job.rates == pytest.approx([digits.LEARNING_RATE * math.sqrt(b / 128) for b in (128, 8, 32)])
    assert result["samples_by_batch_size"] == {128: 384, 8: 56, 32: sum(job.steps[10:])}


def test_the_learning_rate_of_a_job_that_names_one_batch_size_is_that_of_the_reference(
    example, scripted_job, counting_device
):
    job = scripted_job([4])
    example.train(job, counting_device(), options(example, "--max-samples", "100"))
    assert job.rates == pytest.approx([digits.LEARNING_RATE * math.sqrt(4 / digits.REFERENCE_BATCH)])


def test_a_change_of_batch_size_on_the_way_still_reaches_the_target(example, scripted_job, counting_device):
    job = scripted_job([8, 32, 128], advice={20: 8, 200: 32})
    result = example.train(job, counting_device(), options(example))
    assert result["reached"]
    assert set(result["samples_by_batch_size"]) == {8, 32, 128}
    assert sum(result["samples_by_batch_size"].values()) == result["samples"] == sum(job.steps)


def test_evaluation_waits_for_the_device_and_is_not_training_time(example, scripted_job, counting_device, monkeypatch):
    job, device = scripted_job([128]), counting_device()
    now, seen = [0.0], []

    def accuracy(network, inputs, labels):
        seen.append((job.paused, device.in_flight))
        now[0] += 100.0
        return 0.1

    monkeypatch.setattr("traingov_proxy.recipes.mlp.Mlp.accuracy", accuracy)
    monkeypatch.setattr(example.time, "monotonic", lambda: now[0])
    result = example.train(job, device, options(example, "--max-samples", "2048"))
    assert seen == [(True, 0)] * 4
    assert result["seconds"] == 0.0


def test_every_step_goes_through_the_device_under_the_jobs_workload(example, scripted_job, counting_device):
    job, device = scripted_job([64]), counting_device()
    example.train(job, device, options(example, "--workload", "mine", "--max-samples", "640"))
    assert device.submitted == [("mine", 64)] * 10
    assert job.steps == [64] * 10
    assert device.in_flight == 0


def test_a_batch_size_that_does_not_fit_is_given_up_without_losing_a_sample(example, scripted_job, counting_device):
    job, device = scripted_job([32, 64, 128]), counting_device(largest=40)
    result = example.train(job, device, options(example, "--max-samples", "640"))
    assert job.steps == [32] * 20
    assert result["samples"] == 640
    assert job.rates[-1] == pytest.approx(digits.LEARNING_RATE * 0.5)


def test_when_no_batch_size_fits_the_devices_own_error_is_raised(example, scripted_job, counting_device):
    with pytest.raises(MemoryError):
        example.train(scripted_job([32, 64]), counting_device(largest=8), options(example))


def test_profile_only_ends_when_profiling_ends_even_past_the_target(example, scripted_job, counting_device):
    job = scripted_job([128], phases={2: "profile", 400: "train"})
    result = example.train(job, counting_device(), options(example, "--profile-only"))
    assert result["profiled"]
    assert result["samples_to_accuracy"] is None
    assert len(job.steps) == 401  # the step at whose safe point the advice came
    assert max(accuracy for _, accuracy in result["history"]) >= 0.96


def test_profile_only_does_not_wait_for_ever_for_a_daemon(example, scripted_job, counting_device, monkeypatch, capsys):
    monkeypatch.setattr(example, "PROFILE_STARTS_WITHIN_S", 0.0)
    result = example.train(scripted_job([128]), counting_device(), options(example, "--profile-only"))
    assert not result["profiled"]
    assert result["samples"] < 60_000
    assert "traingovd" in capsys.readouterr().err


def test_a_virtual_board_that_is_not_there_is_one_line_and_no_traceback(tmp_path):
    done = run_script(tmp_path=tmp_path, TRAINGOV_SIM_GPU=str(tmp_path / "no-board.sock"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no-board.sock" in done.stderr
