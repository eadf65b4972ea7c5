"""What a report is made of: the history and the tables beside it, or a recording; and the command."""

from __future__ import annotations

import gzip
import itertools
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import traingov
from report_samples import CURVE, LUT, RUN
from traingov.history.curves import CurveStore
from traingov.history.file import HistoryFile
from traingov.history.schema import STEPS, migrate
from traingov.report.stored import from_state
from traingov.store import LutStore
from traingov_policies.values import Board
from traingov_policies.wording import sentences

RECORDING = Path(__file__).parents[2] / "replay" / "demo-profile.jsonl.gz"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    file = HistoryFile(tmp_path / "history.sqlite")
    file.keep(replace(RUN, end_reason=None, ended_s=None, spans=RUN.spans[:20]))
    file.keep(RUN)
    file.keep(replace(RUN, job="digits-2", started_s=2_000.0, root="/virtual"))
    file.close()
    board = Board(RUN.board, RUN.release, RUN.power_mode, ())
    LutStore(tmp_path / "lut").save(board, "digits", LUT)
    CurveStore(tmp_path / "curves").save(board, "digits", replace(CURVE, signature="digits"))
    return tmp_path


def test_a_run_comes_back_from_the_history_as_it_was(state_dir: Path) -> None:
    subject = from_state(state_dir, "digits")
    assert from_state(state_dir, "1").run == RUN
    assert (subject.run.job, subject.virtual) == ("digits-2", True)  # the newest of the workload
    assert subject.lut == LUT
    assert [curve.batch_size for curve in subject.curves] == [8]
    assert list(subject.in_mode0) == [2]  # a simulated run is compared with simulated ones only


def test_a_timeline_that_was_merged_meanwhile_replaces_the_finer_one(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history.sqlite")
    file.keep(replace(RUN, end_reason=None, ended_s=None))
    coarse = tuple(replace(s, start_s=2.0 * n, width_s=2.0) for n, s in enumerate(RUN.spans[:30]))
    file.keep(replace(RUN, end_reason=None, ended_s=None, spans=coarse, merges=1))
    file.keep(replace(RUN, spans=(*coarse, replace(coarse[0], start_s=60.0)), merges=1))
    file.close()
    assert [s.start_s for s in from_state(tmp_path, None).run.spans] == [2.0 * n for n in range(31)]


def test_a_history_of_the_first_schema_keeps_its_runs_and_has_no_timeline(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, STEPS[:1])
    names = ("job", "workload", "signature", "board", "release", "power_mode", "policy", "objective")
    connection.execute(
        f"INSERT INTO runs ({', '.join(names)}, batch_sizes, samples_done, started_at, updated_at, ended_at, "
        "elapsed_s, samples, steps, above_cap_s, judged_s, gap_s, shared, guard_steps) VALUES "
        "('old', 'w', 's', 'b', 'r', 'm', 'joint', 'time', '8', 0, '2026-01-31T12:00:00.000Z', "
        "'2026-01-31T12:01:00.000Z', '2026-01-31T12:01:00.000Z', 60, 5, 1, 0, 0, 0, 0, 0)"
    )
    connection.close()
    file = HistoryFile(path)
    file.begin()
    file.close()
    subject = from_state(tmp_path, "old")
    assert (subject.run.samples, subject.run.spans, subject.run.root) == (5, (), None)


def test_timelines_of_old_runs_make_room_before_the_runs_do(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    file = HistoryFile(path, most_bytes=200_000)
    for n in range(60):
        file.keep(replace(RUN, job=f"j{n}", started_s=1_000.0 + n))
    file.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 60
    drawn = [row[0] for row in connection.execute("SELECT DISTINCT run FROM timeline ORDER BY run")]
    assert 0 < len(drawn) < 60
    assert drawn == list(range(61 - len(drawn), 61))  # the newest


def test_a_recording_gives_the_same_account_as_the_service_did() -> None:
    report = json.loads(traingov("report", "--recording", str(RECORDING), "--json").stdout)
    run = report["run"]
    entries = [json.loads(text) for text in gzip.decompress(RECORDING.read_bytes()).decode().splitlines()]
    events: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        events.setdefault(entry.get("event") or entry.get("action") or "", []).append(entry)
    first, last = events["JobRegistered"][0]["t_s"], events["JobEnded"][0]["t_s"]
    power = [(e["t_s"], e["input_power_w"]) for e in events["Sample"]
             if first <= e["t_s"] <= last and "input_power_w" in e]  # fmt: skip
    trapezoids = sum((t1 - t0) * (p0 + p1) / 2 for (t0, p0), (t1, p1) in itertools.pairwise(power))
    assert run["input_energy_j"] == pytest.approx(trapezoids, rel=0.01)
    assert sum(s["power_w"] * s["width_s"] for s in run["spans"] if s["readings"]) == pytest.approx(
        trapezoids, rel=0.03
    )
    assert max(s["most_w"] or 0 for s in run["spans"]) == max(watts for _, watts in power)
    assert sum(s["width_s"] for s in run["spans"]) == pytest.approx(last - first)
    assert run["samples"] == sum(e["samples"] for e in events["StepsReported"])
    assert [(c["kind"], c["text"]) for c in run["choices"]] == [(e["kind"], e["text"]) for e in events["Decided"]]
    chosen = next(e for e in reversed(events["Decided"]) if e["kind"] == "joint")
    assert run["choices"][-1]["reasons"] == "\n".join(sentences(chosen["detail"]))
    assert report["lut"]["time_s"] == events["PersistLut"][-1]["lut"]["time_s"]
    assert (report["kind"], run["job"]) == ("simulated" if "root" in entries[0] else "unknown", "digits-mlp")


def test_a_recording_that_a_crash_cut_is_reported_up_to_there(tmp_path: Path) -> None:
    whole = gzip.decompress(RECORDING.read_bytes()).decode().splitlines(keepends=True)
    path = tmp_path / "cut.jsonl"
    path.write_text("".join(whole[: len(whole) // 2]) + '{"event":"Sam')
    result = traingov("report", "--recording", str(path))
    assert (result.exit_code, "the recording ends before the job" in result.stdout) == (0, True)


def test_the_page_is_written_and_its_size_told(state_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    result = traingov("report", "digits", "--state-dir", str(state_dir), "--html", str(out))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{out}: run 2 of ")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_text_has_the_words_the_points_and_the_reasons(state_dir: Path) -> None:
    out = traingov("report", "1", "--state-dir", str(state_dir)).stdout
    for part in ("Measured on this board", "batch 8 at 300 MHz: 40.0 s, 3000 samples, 150.0 J", "      Second: none.",
                 "guard-low: held low", "power over time, up to 4.50 W"):  # fmt: skip
        assert part in out, part


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nope", "--state-dir", "{state}"], 2, "no run of 'nope' in the history; its jobs are: digits-2, digits"),
        (["--state-dir", "{state}/none"], 1, "begins with the first registered job"),
        (["nope", "--recording", "{recording}"], 2, "no job 'nope' in the recording; its jobs are: digits-mlp"),
        (["--recording", "{state}/none.jsonl"], 2, "cannot be read: No such file or directory"),
        (["--recording", "{state}/empty.jsonl"], 2, "recording: empty"),
        (["--recording", "{state}/text.jsonl"], 2, "line 1 is not JSON"),
        (["--recording", "{state}/other.jsonl"], 2, "schema is 'x', expected"),
        (["--recording", "{state}/text.jsonl.gz"], 2, "cannot be read"),
        (["--state-dir", "{state}", "--html", "{state}/history.sqlite/r.html"], 2, "there is no folder"),
        (["--state-dir", "{state}", "--html", "{state}/absent/deep/r.html"], 2, "there is no folder"),
        (["--state-dir", "{state}", "--html", "{state}/" + 300 * "r"], 1, "cannot be written"),
    ],
)  # fmt: skip
def test_what_cannot_be_reported_is_one_line(state_dir: Path, arguments: list[str], status: int, said: str) -> None:
    (state_dir / "empty.jsonl").write_text("")
    (state_dir / "text.jsonl").write_text("hello\nhello\n")
    (state_dir / "text.jsonl.gz").write_text("hello\n")
    (state_dir / "other.jsonl").write_text('{"schema": "x"}\n')
    result = traingov("report", *(a.format(state=state_dir, recording=RECORDING) for a in arguments))
    assert (result.exit_code, said in result.stderr, result.stderr.count("\n")) == (status, True, 1), result.stderr
    assert not (state_dir / "absent").exists()


def test_a_damaged_table_is_passed_over_and_left_for_the_service(state_dir: Path) -> None:
    path = LutStore.place(state_dir / "lut", Board(RUN.board, RUN.release, RUN.power_mode, ()), "digits")
    path.write_text('{"schema": 1')
    assert from_state(state_dir, "1").lut is None
    assert path.exists()
