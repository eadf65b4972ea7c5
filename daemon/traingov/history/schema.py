"""The tables of STATE/history.sqlite, and how an older file is brought up to date. docs/operating.md explains them.

``PRAGMA user_version`` is the number of steps of ``STEPS`` that a file has seen. To change the tables, append a step;
never change one that was released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        job TEXT NOT NULL, workload TEXT NOT NULL, signature TEXT NOT NULL,
        board TEXT NOT NULL, release TEXT NOT NULL, power_mode TEXT NOT NULL,
        policy TEXT NOT NULL, objective TEXT NOT NULL, batch_sizes TEXT NOT NULL,
        samples_done INTEGER NOT NULL, samples_total INTEGER,
        started_at TEXT NOT NULL, updated_at TEXT NOT NULL, ended_at TEXT, end_reason TEXT,
        elapsed_s REAL NOT NULL, samples INTEGER NOT NULL, steps INTEGER NOT NULL,
        input_energy_j REAL, compute_energy_j REAL,
        above_cap_s REAL NOT NULL, judged_s REAL NOT NULL, gap_s REAL NOT NULL,
        shared INTEGER NOT NULL, guard_steps INTEGER NOT NULL,
        UNIQUE (job, started_at)
    );
    CREATE TABLE points (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        batch_size INTEGER NOT NULL, gpu_frequency_hz INTEGER,
        time_s REAL NOT NULL, samples INTEGER NOT NULL, steps INTEGER NOT NULL,
        input_energy_j REAL, compute_energy_j REAL
    );
    CREATE INDEX points_of_run ON points (run);
    CREATE TABLE caps (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        at TEXT NOT NULL, power_w REAL, window_s REAL, burst_w REAL, source TEXT NOT NULL
    );
    CREATE INDEX caps_of_run ON caps (run);
    CREATE TABLE choices (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        number INTEGER NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
        batch_size INTEGER, gpu_frequency_hz INTEGER,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE runs ADD COLUMN root TEXT;
    ALTER TABLE choices ADD COLUMN reasons TEXT;
    CREATE TABLE notices (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        at TEXT NOT NULL, name TEXT NOT NULL, text TEXT
    );
    CREATE INDEX notices_of_run ON notices (run);
    CREATE TABLE timeline (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        number INTEGER NOT NULL, start_s REAL NOT NULL, width_s REAL NOT NULL, readings INTEGER NOT NULL,
        power_w REAL, least_w REAL, most_w REAL, window_w REAL, cap_w REAL,
        low_hz INTEGER, high_hz INTEGER, batch_size INTEGER NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    """,
)


class NewerSchemaError(Exception):
    """The file was written by a newer traingov: it is neither read nor changed."""


def version_of(connection: Any) -> int:
    """The number of steps that the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: Any, steps: Sequence[str] = STEPS) -> None:
    """Bring the file up to date, each step whole or not at all. Raises NewerSchemaError, or what SQLite raises.

    ``connection`` has ``isolation_level`` None.
    """
    version = version_of(connection)
    if version > len(steps):
        raise NewerSchemaError(f"has schema {version}, and this traingov knows {len(steps)}")
    for number, step in enumerate(steps[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in step.split(";"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number:d}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
