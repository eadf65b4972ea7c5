"""An estimate that is killed goes on where it stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_proxy import Journal, JournalError, Run, estimate

IDENTITY = {"recipe": "r", "target": 0.9}


def law(batch_size: int, seed: int, target: float) -> float:
    return 1000.0 + 50.0 * batch_size + 7.0 * seed


def vector(train, journal, full=False):
    return estimate(
        train, (4, 8, 16, 32, 64), 0.9, range(4), workload="w", dataset="d", full=full, journal=journal
    )  # fmt: skip


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("after", [0, 1, 7])
def test_after_a_crash_only_the_rest_is_trained_and_the_vector_is_the_same(tmp_path, after, full):
    path, count = tmp_path / "runs.jsonl", 0

    def dying(batch_size, seed, target):
        nonlocal count
        if count == after:
            raise KeyboardInterrupt
        count += 1
        return law(batch_size, seed, target)

    journal = Journal(path, IDENTITY)
    with pytest.raises(KeyboardInterrupt):
        vector(dying, journal, full)
    journal.close()
    trained = []

    def rest(batch_size, seed, target):
        trained.append((batch_size, seed))
        return law(batch_size, seed, target)

    journal = Journal(path, IDENTITY)
    done = {(run.batch_size, run.seed) for run in journal.runs}
    assert len(done) == after
    resumed = vector(rest, journal, full)
    journal.close()
    assert resumed == vector(law, None, full)
    assert not done & set(trained)


def test_a_process_that_is_killed_loses_no_finished_run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import time, pathlib\n"
        "from traingov_proxy import Journal, estimate\n"
        "def train(b, seed, target):\n"
        "    if (b, seed) == (8, 1):\n"
        "        print('there', flush=True)\n"
        "        time.sleep(600)\n"
        "    return 100.0 * b + seed\n"
        f"journal = Journal(pathlib.Path({str(tmp_path / 'runs.jsonl')!r}), {IDENTITY!r})\n"
        "estimate(train, (4, 8), 0.9, (0, 1), workload='w', dataset='d', full=True, journal=journal)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    journal = Journal(tmp_path / "runs.jsonl", IDENTITY)
    assert journal.runs == [Run(4, 0, 400.0), Run(4, 1, 401.0), Run(8, 0, 800.0)]
    journal.close()


@given(cut=st.integers(0, 400))
def test_whatever_of_the_last_line_is_on_the_disk_the_whole_lines_before_it_count(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("journal") / "runs.jsonl"
    journal = Journal(path, IDENTITY)
    runs = [Run(4, 0, 100.0), Run(8, 0, None), Run(16, 3, 250.5)]
    for run in runs:
        journal.add(run)
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    again = Journal(path, IDENTITY)
    lines = whole[:cut].count(b"\n")
    assert again.runs == runs[: max(0, lines - 1)]
    again.add(Run(32, 0, 1.0))
    again.close()
    last = Journal(path, IDENTITY)
    assert last.runs == [*runs[: max(0, lines - 1)], Run(32, 0, 1.0)]
    last.close()


def test_a_failed_run_is_noted_and_trained_again(tmp_path):
    journal = Journal(tmp_path / "j", IDENTITY)
    journal.add(Run(4, 0, None, "RuntimeError: disk full"))
    journal.close()
    assert "disk full" in (tmp_path / "j").read_text()
    again = Journal(tmp_path / "j", IDENTITY)
    assert again.runs == []
    again.close()


def test_a_journal_of_something_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "j"
    Journal(path, IDENTITY).close()
    with pytest.raises(JournalError, match=r"its runs have target 0\.9, not 0\.8"):
        Journal(path, {**IDENTITY, "target": 0.8})
    for text in ("[1]\n", "precious\n", json.dumps({"schema": "x"}) + "\n", "\xff\n"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(JournalError, match="name another file"):
            Journal(path, IDENTITY)
        assert path.read_text(encoding="latin-1") == text


def test_two_estimates_do_not_share_a_journal(tmp_path):
    first = Journal(tmp_path / "j", IDENTITY)
    with pytest.raises(JournalError, match="another estimate"):
        Journal(tmp_path / "j", IDENTITY)
    first.close()
