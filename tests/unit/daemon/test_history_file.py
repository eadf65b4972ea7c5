"""The history's file: whole after a kill, bounded, damaged files set aside, read while it is written."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from traingov.history.file import HistoryFile, iso
from traingov.history.reading import HistoryError, details, job_names, reading, runs
from traingov.history.records import CapUse, Choice, PointUse, Run
from traingov.history.schema import STEPS, migrate, version_of

RUN = Run(
    job="digits", workload="digits", signature="digits-0a1b", board="Jetson Nano", release="R32.7.1",
    power_mode="MAXN", policy="joint", objective="time", batch_sizes=(8, 32), samples_done=0, samples_total=4000,
    started_s=1_700_000_000.25, updated_s=1_700_000_010.0, ended_s=None, end_reason=None, elapsed_s=9.75, samples=640,
    steps=20, input_energy_j=41.5, compute_energy_j=None, above_cap_s=0.0, judged_s=9.0, gap_s=0.0, shared=False,
    guard_steps=1,
    points=(PointUse(32, None, 2.0, 128, 4, 8.0, None), PointUse(32, 921_600_000, 7.75, 512, 16, 33.5, None)),
    caps=(CapUse(1_700_000_000.25, 7.0, 1.0, None, "configuration"),),
    choices=(Choice(1, 1_700_000_002.0, "joint", "batch 32 at 922 MHz", 32, 921_600_000),),
)  # fmt: skip


def ended(run: Run, at_s: float, reason: str = "end") -> Run:
    return replace(run, updated_s=at_s, ended_s=at_s, end_reason=reason)


def test_a_run_is_read_back_with_its_points_caps_and_choices(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    file.keep(RUN)
    file.keep(ended(RUN, 1_700_000_020.0))
    file.close()
    with reading(file.path) as connection:
        (run,) = runs(connection, None)
        more = details(connection, run["run"])
    assert (run["job"], run["started_at"], run["ended_at"]) == (
        "digits", "2023-11-14T22:13:20.250Z", "2023-11-14T22:13:40.000Z",
    )  # fmt: skip
    assert (run["input_energy_j"], run["compute_energy_j"], run["batch_sizes"]) == (41.5, None, [8, 32])
    assert [(p["gpu_frequency_hz"], p["time_s"], p["input_energy_j"]) for p in more["points"]] == [
        (None, 2.0, 8.0),
        (921_600_000, 7.75, 33.5),
    ]
    assert more["caps"] == [{"at": "2023-11-14T22:13:20.250Z", "power_w": 7.0, "window_s": 1.0, "burst_w": None,
                             "source": "configuration"}]  # fmt: skip
    assert [c["text"] for c in more["choices"]] == ["batch 32 at 922 MHz"]


def test_runs_are_numbered_without_gaps_however_often_their_progress_is_kept(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    for number in range(3):
        for samples in range(5):
            file.keep(replace(RUN, started_s=RUN.started_s + number, samples=samples))
    with reading(file.path) as connection:
        assert [(run["run"], run["samples"]) for run in runs(connection, None)] == [(3, 4), (2, 4), (1, 4)]
    file.close()


def test_it_is_read_while_the_service_writes_it(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    file.keep(RUN)
    with reading(file.path) as connection:
        assert runs(connection, None)[0]["samples"] == 640
        file.keep(replace(RUN, samples=1280))
        assert runs(connection, None)[0]["samples"] == 1280
    file.close()


def test_runs_are_found_by_job_workload_number_and_time(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    for number in range(4):
        job = "digits" if number == 0 else f"digits-{number + 1}"
        file.keep(ended(replace(RUN, job=job, started_s=RUN.started_s + 60 * number), 1_700_001_000.0))
    with reading(file.path) as connection:
        assert [run["job"] for run in runs(connection, "digits", limit=2)] == ["digits-4", "digits-3"]
        assert [run["run"] for run in runs(connection, "digits-2")] == [2]
        assert [run["job"] for run in runs(connection, "3")] == ["digits-3"]
        assert len(runs(connection, None, since=iso(RUN.started_s + 100))) == 2
        assert runs(connection, "nope") == []
        assert job_names(connection) == ["digits-4", "digits-3", "digits-2", "digits"]
    file.close()


def test_a_run_that_was_killed_is_closed_at_the_next_start_and_keeps_what_was_known(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_history_file import RUN; from traingov.history.file import HistoryFile\n"
        "from dataclasses import replace\n"
        "file = HistoryFile(Path(sys.argv[1])); n = 0\n"
        "while True:\n"
        "    n += 1; file.keep(replace(RUN, samples=n, updated_s=RUN.started_s + n))\n"
        "    if n == 20: print('go', flush=True)\n"
    )
    path = tmp_path / "h.sqlite"
    for kill in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(Path(__file__).parent)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"go\n"
            time.sleep(0.003 * kill)  # at another instant each time
            os.kill(process.pid, signal.SIGKILL)
        file = HistoryFile(path)
        file.begin()
        with reading(path) as connection:
            run = runs(connection, None)[0]
            assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        file.close()
        assert run["end_reason"] == "cut short"
        assert run["ended_at"] == run["updated_at"]
        assert run["samples"] >= 20


def test_a_damaged_file_is_set_aside_and_the_running_job_is_kept_in_a_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    path.write_bytes(b"this was a database once\n" * 400)
    file = HistoryFile(path)
    with caplog.at_level(logging.WARNING):
        file.keep(RUN)
    file.close()
    assert (tmp_path / "h.sqlite.damaged-1").read_bytes().startswith(b"this was")
    assert "kept as h.sqlite.damaged-1" in caplog.text
    with reading(path) as connection:
        assert [run["job"] for run in runs(connection, None)] == ["digits"]


def test_pages_that_are_damaged_later_are_found_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    file = HistoryFile(path)
    file.keep(ended(RUN, 1_700_000_020.0))
    file.close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    again = HistoryFile(path)
    again.keep(replace(RUN, job="next"))
    again.close()
    assert (tmp_path / "h.sqlite.damaged-1").exists()
    with reading(path) as connection:
        assert [run["job"] for run in runs(connection, None)] == ["next"]


def test_what_the_disk_refuses_is_told_once_and_written_when_there_is_room_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "state"
    place.write_text("a file where the folder should be")
    file = HistoryFile(place / "h.sqlite")
    with caplog.at_level(logging.ERROR):
        file.keep(RUN)
        file.keep(replace(RUN, samples=900))
    assert caplog.text.count("could not be written") == 1
    place.unlink()
    file.keep(replace(RUN, job="other"))
    file.close()
    with reading(place / "h.sqlite") as connection:
        assert [(run["job"], run["samples"]) for run in runs(connection, None)] == [("other", 640), ("digits", 900)]


def test_a_full_disk_costs_nothing_that_was_kept_and_is_caught_up_with(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    file.keep(RUN)
    full = file._connection.execute("PRAGMA page_count").fetchone()[0]
    file._connection.execute(f"PRAGMA max_page_count = {full}")  # SQLite then says what it says of a full disk
    many = tuple(Choice(n, 1.7e9, "guard-down", "x" * 300, None, None) for n in range(1, 200))
    file.keep(replace(RUN, choices=many))
    with reading(file.path) as connection:
        assert len(details(connection, 1)["choices"]) == 1
    file.keep(replace(RUN, choices=many, samples=700))  # opened anew: there is room now
    file.close()
    with reading(file.path) as connection:
        assert len(details(connection, 1)["choices"]) == 199
        assert runs(connection, None)[0]["end_reason"] is None  # and the run was not taken for one that was cut


def test_the_oldest_runs_are_forgotten_beyond_the_bounds(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite", most_runs=5)
    for number in range(12):
        file.keep(ended(replace(RUN, job=f"j{number}", started_s=RUN.started_s + number), 1_700_001_000.0))
    with reading(file.path) as connection:
        assert [run["job"] for run in runs(connection, None)] == ["j11", "j10", "j9", "j8", "j7"]
        assert connection.execute("SELECT count(*) FROM points").fetchone()[0] == 10
    file.close()


def test_the_file_stays_within_its_size(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite", most_bytes=200_000)
    many = tuple(Choice(n, 1.7e9, "guard-down", "x" * 200, None, None) for n in range(1, 100))
    for number in range(40):
        file.keep(ended(replace(RUN, job=f"j{number}", started_s=RUN.started_s + number, choices=many), 1.7e9))
    file.close()
    assert file.path.stat().st_size < 260_000
    with reading(file.path) as connection:
        assert runs(connection, None)[0]["job"] == "j39"


def test_an_older_file_is_brought_up_to_date_step_by_step_and_a_failed_step_leaves_it_as_it_was(
    tmp_path: Path,
) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    file.keep(ended(RUN, 1_700_000_020.0))
    file.close()
    connection = sqlite3.connect(file.path, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*STEPS, "ALTER TABLE runs ADD COLUMN note TEXT; ALTER TABLE nope ADD COLUMN x TEXT"))
    assert version_of(connection) == len(STEPS)
    assert "note" not in [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    migrate(connection, (*STEPS, "ALTER TABLE runs ADD COLUMN note TEXT"))
    assert version_of(connection) == len(STEPS) + 1
    assert connection.execute("SELECT job, note FROM runs").fetchall() == [("digits", None)]
    connection.close()


def test_a_file_of_a_newer_traingov_is_neither_read_nor_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "h.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("CREATE TABLE later (x)")
    connection.close()
    file = HistoryFile(path)
    file.keep(RUN)
    file.close()
    assert "no history is kept; update traingov" in caplog.text
    with pytest.raises(HistoryError, match="update traingov"), reading(path):
        pass


def test_reading_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="begins with the first registered job"), reading(tmp_path / "none"):
        pass
    (tmp_path / "bad").write_bytes(b"x" * 5000)
    with pytest.raises(HistoryError, match="damaged"), reading(tmp_path / "bad"):
        pass


def test_the_service_loads_sqlite_only_when_it_keeps_a_run() -> None:
    code = "import sys, traingov.service; print('sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_column_of_the_file_is_explained_in_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    connection = sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)
    migrate(connection)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    every = ("runs", "points", "caps", "choices", "notices", "timeline")
    assert set(every) <= set(tables)
    for table in every:
        for column in connection.execute(f"PRAGMA table_info({table})"):
            assert f"`{column[1]}`" in rows[table], f"{table}.{column[1]}"
    connection.close()


def test_a_schema_damaged_by_bytes_that_are_no_text_is_set_aside_and_told_in_one_line(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.sqlite")
    file.keep(ended(RUN, 1_700_000_020.0))
    file.close()
    whole = file.path.read_bytes()
    file.path.write_bytes(whole.replace(b"CREATE TABLE runs (", b"CREATE TABLE ru\xa8s\xa8("))
    with pytest.raises(HistoryError, match="is damaged"), reading(file.path):
        pass
    anew = HistoryFile(file.path)
    anew.begin()
    anew.keep(RUN)
    anew.close()
    assert (tmp_path / "h.sqlite.damaged-1").exists()
    with reading(file.path) as connection:
        assert len(runs(connection, None)) == 1
