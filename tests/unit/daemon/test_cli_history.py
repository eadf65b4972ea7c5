"""`traingov history` and `traingov completion`, and how times are written."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import Result

from command_line import traingov
from traingov.cli import completion as completion_module
from traingov.cli.errors import Failure
from traingov.cli.main import main
from traingov.cli.times import duration, energy
from traingov.history.file import HistoryFile
from traingov.history.records import PointUse, Run

RUN = Run(
    job="digits", workload="digits", signature="digits-0a1b", board="Jetson Nano", release="R32.7.1",
    power_mode="MAXN", policy="joint", objective="time", batch_sizes=(8, 32), samples_done=0, samples_total=4000,
    started_s=1_700_000_000.0, updated_s=1_700_000_060.0, ended_s=1_700_000_060.0, end_reason="end", elapsed_s=60.0,
    samples=4000, steps=125, input_energy_j=250.0, compute_energy_j=None, above_cap_s=0.0, judged_s=0.0, gap_s=0.0,
    shared=False, guard_steps=0, points=(PointUse(32, 460_800_000, 60.0, 4000, 125, 250.0, None),),
)  # fmt: skip


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    file = HistoryFile(tmp_path / "history.sqlite")
    file.keep(RUN)
    file.keep(replace(RUN, job="digits-2", started_s=RUN.started_s + 3600))
    file.keep(replace(RUN, job="other", workload="other", started_s=RUN.started_s + 7200, input_energy_j=None))
    file.close()
    return tmp_path


def history(state_dir: Path, *arguments: str) -> Result:
    return traingov("history", "--state-dir", str(state_dir), *arguments)


def test_the_newest_runs_come_first_with_policy_time_work_energy_and_end(state_dir: Path) -> None:
    lines = history(state_dir).stdout.splitlines()
    assert [text.split()[0] for text in lines] == ["3", "2", "1"]
    assert lines[2].endswith("digits, joint: 1 min, 4000 samples, 250.0 J, end")
    assert "not measured" in lines[0]
    assert len(history(state_dir, "--limit", "1").stdout.splitlines()) == 1


def test_a_job_is_shown_with_its_points(state_dir: Path) -> None:
    out = history(state_dir, "digits").stdout
    assert "run 2: digits-2 (workload digits, signature digits-0a1b)" in out
    assert "batch 32 at 461 MHz: 1 min, 4000 samples, 250.0 J" in out
    assert "earlier:" in out
    assert json.loads(history(state_dir, "digits", "--json").stdout)[1]["points"][0]["batch_size"] == 32


def test_since_takes_dates_and_refuses_what_is_none(state_dir: Path) -> None:
    assert len(history(state_dir, "--since", "2023-11-01").stdout.splitlines()) == 3
    assert history(state_dir, "--since", "2023-12-01").stdout.startswith("no run since 2023-12-01")
    result = history(state_dir, "--since", "yesterday")
    assert (result.exit_code, "--since: 'yesterday' is no time" in result.stderr) == (2, True)


def test_an_unknown_job_is_answered_with_those_there_are(state_dir: Path) -> None:
    result = history(state_dir, "nope")
    assert (result.exit_code, result.stderr) == (
        2, "traingov: no run of 'nope' in the history; its jobs are: other, digits-2, digits\n",
    )  # fmt: skip


def test_without_a_history_one_line_says_when_there_will_be_one(tmp_path: Path) -> None:
    result = history(tmp_path)
    assert (result.exit_code, "begins with the first registered job" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3700, "1 h 1 min"),
     (90_000, "1 d 1 h"), (float("nan"), "—")],
)  # fmt: skip
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_energy_that_was_not_measured_is_not_zero() -> None:
    assert (energy(None), energy(0.0), energy(12_345.0)) == ("not measured", "0.0 J", "12.3 kJ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_one_that_the_shell_takes(shell: str, tmp_path: Path) -> None:
    text = traingov("completion", shell).stdout
    assert "_TRAINGOV_COMPLETE" in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(text)
    done = subprocess.run([program, "-n", str(tmp_path / "script")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def complete(words: list[str], incomplete: str) -> list[str]:
    found = ShellComplete(main, {}, "traingov", "_TRAINGOV_COMPLETE").get_completions(words, incomplete)
    return [item.value for item in found]


def test_jobs_of_the_service_and_of_the_history_are_completed(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> None:
    answer = {"running": [{"job": "digits"}], "ended": [{"job": "bert"}, {"job": "digits-0"}]}
    monkeypatch.setattr(completion_module, "call", lambda *_, **__: answer)
    assert complete(["explain"], "dig") == ["digits", "digits-0"]
    assert complete(["profile", "--job"], "") == ["digits", "digits-0", "bert"]
    assert complete(["history", "--state-dir", str(state_dir)], "dig") == ["digits-2", "digits"]
    assert "doctor" in complete([], "do")


def test_completion_is_silent_where_nobody_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def call(*_: object, **__: object) -> object:
        raise Failure("no service")

    monkeypatch.setattr(completion_module, "call", call)
    assert complete(["explain"], "") == []
    assert complete(["history", "--state-dir", str(tmp_path)], "") == []
