"""The text example: learns alone, and reports what the decision tree reads."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[3] / "examples" / "text_classifier.py"


def run_script(*arguments: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
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
    return load_example("text_classifier")


def options(steps: int) -> argparse.Namespace:
    return argparse.Namespace(seed=0, steps=steps, progress=False, workload="text-classifier", policy=None)


def test_alone_it_learns_the_topics_for_real(tmp_path):
    done = run_script("--json", "--progress", tmp_path=tmp_path)
    assert done.returncode == 0, done.stderr
    *progress, result = [json.loads(line) for line in done.stdout.splitlines()]
    assert result["accuracy"] > 0.85  # four topics: guessing gives 0.25
    assert (result["steps"], result["samples"]) == (300, 9600)
    assert progress
    assert all({"samples", "steps", "steps_total", "loss"} == set(line) for line in progress)


def test_untrained_it_does_not_know_the_topics(tmp_path):
    done = run_script("--json", "--steps", "1", tmp_path=tmp_path)
    assert json.loads(done.stdout)["accuracy"] < 0.5


@pytest.mark.parametrize("wrong", [["--steps", "0"], ["--policy", "fastest"]])
def test_options_that_make_no_sense_are_status_2(wrong, example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["text_classifier.py", *wrong])
    with pytest.raises(SystemExit) as ended:
        example.main()
    assert ended.value.code == 2
    assert wrong[1] in capsys.readouterr().err


def test_texts_are_about_forty_words_long_and_vary(example):
    texts = example.make_texts(2000, np.random.default_rng(1))
    assert 36 < texts.lengths.mean() < 44
    assert texts.lengths.min() < 20
    assert texts.lengths.max() > 80
    np.testing.assert_allclose(texts.shares.sum(axis=1), 1.0)


def test_the_measured_length_of_each_batch_is_reported(example, scripted_job, counting_device):
    job, device = scripted_job([32]), counting_device()
    result = example.train(job, device, options(steps=200))
    assert job.steps == [32] * 200
    assert len(set(job.lengths)) > 100  # measured anew in each batch, not a constant
    assert float(np.mean(job.lengths)) == pytest.approx(result["seq_len_avg"], abs=0.01)
    assert device.submitted == [("text-classifier", 32)] * 200
    assert device.in_flight == 0


def test_it_registers_with_the_features_that_the_tree_reads(example, scripted_job, monkeypatch, capsys):
    given = {}

    class Registered(scripted_job):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    def register(**fields):
        given.update(fields)
        return Registered(fields["batch_sizes"])

    monkeypatch.delenv("TRAINGOV_SIM_GPU", raising=False)
    monkeypatch.setattr(example.traingov_client, "register", register)
    monkeypatch.setattr(sys, "argv", ["text_classifier.py", "--steps", "2", "--policy", "energy"])
    assert example.main() == 0
    assert given["policy"] == "energy"
    assert given["batch_sizes"] == [32]
    assert given["features"] == {"model_type": "encoder", "layers": 12, "hidden_size": 768}
    assert "2 steps" in capsys.readouterr().out


def test_a_virtual_board_that_is_not_there_is_one_line_and_no_traceback(tmp_path):
    done = run_script(tmp_path=tmp_path, TRAINGOV_SIM_GPU=str(tmp_path / "no-board.sock"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no-board.sock" in done.stderr
