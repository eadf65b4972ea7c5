"""STATE/history.sqlite as people read it: never written, also while the service writes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .schema import STEPS, version_of

_WAIT_S = 3.0


class HistoryError(Exception):
    """The history cannot be read; one line with what to do."""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, opened to read. Raises HistoryError, also for what goes wrong inside the context."""
    if not path.exists():
        raise HistoryError(f"no history at {path}: it begins with the first registered job (or name its --state-dir)")
    connection = None
    try:
        connection = _open(path)
        version = version_of(connection)
        if version > len(STEPS):
            raise HistoryError(f"{path} has schema {version}, and this traingov knows {len(STEPS)}: update traingov")
        if version < len(STEPS):
            raise HistoryError(f"{path} is of an older traingov: the service brings it up to date when it starts")
        yield connection
    except PermissionError:
        raise HistoryError(f"{path}: no permission: join group traingov and log in again") from None
    except sqlite3.OperationalError as error:
        raise HistoryError(f"{path}: cannot be read: {error}") from None
    except sqlite3.DatabaseError as error:
        raise HistoryError(f"{path} is damaged ({error}): the service sets it aside when it next writes") from None
    except (ValueError, TypeError, AttributeError) as error:  # text that is no UTF-8, a number that is text
        raise HistoryError(
            f"{path} is damaged ({' '.join(str(error).split())}): move it away, and a new one is begun"
        ) from None
    finally:
        if connection is not None:
            connection.close()


def _open(path: Path) -> sqlite3.Connection:
    with path.open("rb"):  # SQLite would say only that it is "unable to open database file"
        pass
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if Path(f"{path}-wal").exists():
            raise
        # In WAL mode, nobody writes, and we may make no files beside it: what lies there does not change.
        connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, timeout=_WAIT_S)
    connection.row_factory = sqlite3.Row
    return connection


def runs(
    connection: sqlite3.Connection, job: str | None, *, since: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """Runs, newest first: all, or those of a job, of a workload, or the one with that number.

    ``since`` is UTC text as the file has it.
    """
    where, values = [], []
    if job is not None:
        where.append("(job = ? OR workload = ? OR run = ?)")
        values += [job, job, int(job) if job.isascii() and job.isdigit() and len(job) < 19 else -1]
    if since is not None:
        where.append("started_at >= ?")
        values.append(since)
    text = "SELECT * FROM runs" + (f" WHERE {' AND '.join(where)}" if where else "") + " ORDER BY run DESC LIMIT ?"
    return [_run(row) for row in connection.execute(text, (*values, -1 if limit is None else limit))]


def details(connection: sqlite3.Connection, run: int) -> dict[str, list[dict[str, Any]]]:
    """A run's points, caps, choices and notices (conditions), each in the order in which they came."""
    return {table: rows(connection, table, run) for table in ("points", "caps", "choices", "notices")}


def rows(connection: sqlite3.Connection, table: str, run: int) -> list[dict[str, Any]]:
    """A run's rows of ``table``, one of ``details`` or "timeline", in the order in which they came."""
    order = "number" if table in ("choices", "timeline") else "rowid"
    found = connection.execute(f"SELECT * FROM {table} WHERE run = ? ORDER BY {order}", (run,))
    return [
        {key: row[key] for key in row.keys() if key != "run"}  # noqa: SIM118  a Row iterates over its values
        for row in found
    ]


def job_names(connection: sqlite3.Connection, most: int = 20) -> list[str]:
    """The names of the newest jobs, newest first."""
    text = "SELECT job FROM runs GROUP BY job ORDER BY max(run) DESC LIMIT ?"
    return [row["job"] for row in connection.execute(text, (most,))]


def _run(row: sqlite3.Row) -> dict[str, Any]:
    run = {key: row[key] for key in row.keys()}  # noqa: SIM118
    run["batch_sizes"] = [int(word) for word in run["batch_sizes"].split()]
    run["shared"] = bool(run["shared"])
    return run
