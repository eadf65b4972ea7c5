"""The command line: what it writes, and how it fails."""

from __future__ import annotations

import json
import os

import pytest

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_proxy import cli, files
from traingov_proxy.recipes import digits

QUICK = ["estimate", "digits", "--seeds", "1", "--batch-sizes", "64,128", "--target", "0.8"]


def run(arguments: list[str]) -> int:
    try:
        cli.main(arguments)
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def test_an_estimate_writes_a_relation_that_says_how_it_was_made(tmp_path, capsys):
    out = tmp_path / "r.json"
    assert run([*QUICK, "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed == out.read_text()
    relation = RelationVector.from_json(json.loads(printed))
    assert relation.batch_sizes == (64, 128)
    assert relation.samples_to_accuracy == ((digits.train(64, 0, 0.8),), (digits.train(128, 0, 0.8),))
    assert relation.workload == "digits-mlp"
    command = "traingov-proxy estimate digits --seeds 1 --batch-sizes 64,128 --target 0.8; seeds 0;"
    assert relation.origin is not None
    assert relation.origin.startswith(command)


def test_without_json_a_table_is_printed(capsys):
    assert run(QUICK) == 0
    printed = capsys.readouterr().out
    assert "batch   64" in printed
    assert "batch  128" in printed


def test_seeds_may_start_elsewhere(capsys):
    assert run([*QUICK, "--first-seed", "7", "--json"]) == 0
    relation = RelationVector.from_json(json.loads(capsys.readouterr().out))
    assert relation.samples_to_accuracy[0] == (digits.train(64, 7, 0.8),)
    assert "--first-seed 7" in str(relation.origin)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["estimate"],
        ["estimate", "imagenet"],
        ["estimate", "digits", "--batch-sizes", "4,x"],
        ["estimate", "digits", "--batch-sizes", "4,4"],
        ["estimate", "digits", "--batch-sizes", "0"],
        ["estimate", "digits", "--seeds", "0"],
        ["estimate", "digits", "--jobs", "0"],
        ["estimate", "digits", "--out", "/no/such/folder/r.json"],
        ["guess"],
    ],
)
def test_wrong_input_is_one_line_and_status_2(arguments, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("traingov-proxy: ")


def test_a_target_that_no_run_reaches_is_a_failure_that_says_what_to_do(tmp_path, capsys):
    out = tmp_path / "r.json"
    out.write_text("the old one")
    assert run([*QUICK[:-1], "0.999", "--max-samples", "1000", "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "lower --target or raise --max-samples" in error
    assert out.read_text() == "the old one"


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_replaces_the_file_and_leaves_it_readable(tmp_path):
    path = tmp_path / "r.json"
    path.write_text("old")
    files.write_atomically(path, "new\n")
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o644


def test_help_is_no_error(capsys):
    assert run(["estimate", "--help"]) == 0
    assert "--seeds" in capsys.readouterr().out


def test_full_trains_every_size_and_the_default_says_why_it_stopped(capsys):
    assert run([*QUICK, "--full", "--json"]) == 0
    assert "--full" in str(RelationVector.from_json(json.loads(capsys.readouterr().out)).origin)
    assert run([*QUICK, "-v"]) == 0
    captured = capsys.readouterr()
    assert "stopped: " in captured.out
    assert "next: stop" in captured.err


def test_resume_trains_nothing_twice(tmp_path, capsys, monkeypatch):
    journal = tmp_path / "runs.jsonl"
    assert run([*QUICK, "--json", "--resume", str(journal)]) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(digits, "load_task", lambda name: pytest.fail("trained again"))
    assert run([*QUICK, "--json", "--resume", str(journal)]) == 0
    assert capsys.readouterr().out == first
    assert run([*QUICK[:-1], "0.7", "--resume", str(journal)]) == 2
    assert "target" in capsys.readouterr().err


def test_a_table_must_have_the_batch_sizes(tmp_path, capsys):
    path = tmp_path / "l.json"
    row = ((1.0,),)
    path.write_text(json.dumps(Lut("b", "w", 10, (64,), (300,), row, row, row).to_json()))
    assert run([*QUICK, "--lut", str(path)]) == 2
    assert "has no batch size [128]" in capsys.readouterr().err
    two = ((1.0,), (0.9,))
    path.write_text(json.dumps(Lut("b", "w", 10, (64, 128), (300,), two, two, two).to_json()))
    assert run([*QUICK, "--lut", str(path), "--json"]) == 0
    assert "--lut l.json" in json.loads(capsys.readouterr().out)["origin"]


@pytest.mark.parametrize("more", [["--backend", "dask"], ["--scheduler", "tcp://x:1"], ["--resume", "/no/such/j"]])
def test_options_that_do_not_fit_are_refused_before_training(more, capsys):
    assert run([*QUICK, *more]) == 2
    assert capsys.readouterr().err.count("\n") == 1
