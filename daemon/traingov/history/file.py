"""STATE/history.sqlite as the service writes it, from the keeper's thread alone.

SQLite in WAL mode, a run's record in one transaction, so that the file is whole after a SIGKILL at any instant.
Nothing that goes wrong here stops anything: a damaged file is set aside, a full or absent disk is tried again with the
next record, a file of a newer traingov is left alone. ``sqlite3`` is imported at the first use, in that thread.
"""

from __future__ import annotations

import contextlib
import logging
import time
from pathlib import Path
from typing import Any

from ..store import set_aside
from .records import Run
from .schema import NewerSchemaError, migrate

log = logging.getLogger("traingov.history")

CUT_SHORT = "cut short"
MOST_RUNS = 2000
MOST_BYTES = 32 << 20
_MOST_WAITING = 64  # records held in memory while the disk refuses them
_COMPANIONS = ("-wal", "-shm")


class HistoryFile:
    """Keeps records of runs in ``path``: at most ``most_runs`` and about ``most_bytes``, the oldest go first.

    Not thread-safe: made anywhere, used from one thread.
    """

    def __init__(self, path: Path, most_runs: int = MOST_RUNS, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self._most_runs, self._most_bytes = most_runs, most_bytes
        self._connection: Any = None
        self._off = False
        self._begun = False
        self._waiting: dict[tuple[str, float], Run] = {}
        self._saved: dict[tuple[str, float], int] = {}  # the number of the last choice on disk
        self._drawn: dict[tuple[str, float], tuple[int, int]] = {}  # merges and number of the spans on disk
        self._said: str | None = None

    def begin(self) -> None:
        """Close the runs that a killed service left open. Does nothing where there is no file yet."""
        if self.path.exists():
            self._flush()

    def keep(self, run: Run) -> None:
        """Keep ``run``, over what was kept of it before."""
        self._waiting.pop((run.job, run.started_s), None)
        self._waiting[run.job, run.started_s] = run
        while len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._flush()

    def close(self) -> None:
        """Write what waits, and leave one file that others can read without a right to write."""
        if self._waiting:
            self._flush()
        self._drop(tidy=True)

    def _flush(self) -> None:
        if self._off:
            return
        import sqlite3  # noqa: PLC0415  see the module's text

        for attempt in (1, 2):
            try:
                if self._connection is None:
                    self._open()
                while self._waiting:
                    key = next(iter(self._waiting))
                    self._save(key, self._waiting[key])
                    del self._waiting[key]
                self._said = None
                return
            except NewerSchemaError as error:
                log.error("%s %s: no history is kept; update traingov, or move the file away", self.path, error)
                self._off = True
                self._drop()
                return
            except (sqlite3.OperationalError, OSError) as error:  # full, read-only, locked: it may pass
                self._tell(str(error))
                self._drop()
                return
            except sqlite3.DatabaseError as error:
                self._drop()
                if type(error) is not sqlite3.DatabaseError:  # a subclass: the record is at fault, not the file
                    log.error("a run could not be kept in %s: %s", self.path, error)
                    self._waiting.pop(next(iter(self._waiting), ("", 0.0)), None)
                    return
                self._set_aside(str(error))
                if attempt == 2:
                    self._tell(str(error))
            except UnicodeDecodeError:  # what SQLite says of a damaged schema quotes the damage
                self._drop()
                self._set_aside("holds text that is no UTF-8")

    def _open(self) -> None:
        import sqlite3  # noqa: PLC0415

        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=2.0, isolation_level=None, check_same_thread=False)
        self._connection = connection
        self._saved.clear()
        self._drawn.clear()
        connection.execute("PRAGMA cache_size = -256")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first table, or it has no effect
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("fails its own integrity check")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 100")
        connection.execute("PRAGMA journal_size_limit = 1048576")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)
        if not self._begun:  # whoever writes holds the service's socket: what is open now, nobody runs any more
            connection.execute(
                "UPDATE runs SET ended_at = updated_at, end_reason = ? WHERE ended_at IS NULL", (CUT_SHORT,)
            )
            self._begun = True

    def _save(self, key: tuple[str, float], run: Run) -> None:
        connection = self._connection
        # The beginning and the end of a run outlive a power cut; its progress outlives a kill.
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if key in self._saved and not run.end_reason else 'FULL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            number = _put_run(connection, run)
            for table in ("points", "caps", "notices"):
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
            connection.executemany(
                "INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(number, p.batch_size, p.gpu_frequency_hz, p.time_s, p.samples, p.steps, p.input_energy_j,
                  p.compute_energy_j) for p in run.points],
            )  # fmt: skip
            connection.executemany(
                "INSERT INTO caps VALUES (?, ?, ?, ?, ?, ?)",
                [(number, iso(c.at_s), c.power_w, c.window_s, c.burst_w, c.source) for c in run.caps],
            )
            connection.executemany(
                "INSERT INTO notices VALUES (?, ?, ?, ?)", [(number, iso(n.at_s), n.name, n.text) for n in run.notices]
            )
            self._save_spans(key, number, run)
            saved = self._saved.get(key, 0)
            connection.executemany(
                "INSERT OR REPLACE INTO choices VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(number, c.number, iso(c.at_s), c.kind, c.text, c.batch_size, c.gpu_frequency_hz, c.reasons)
                 for c in run.choices if c.number > saved],
            )  # fmt: skip
            if run.choices:  # what fell out of memory falls out of the file
                connection.execute("DELETE FROM choices WHERE run = ? AND number < ?", (number, run.choices[0].number))
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                connection.execute("ROLLBACK")
            raise
        if run.end_reason is None:
            self._saved[key] = run.choices[-1].number if run.choices else 0
            self._drawn[key] = run.merges, len(run.spans)
        else:
            self._saved.pop(key, None)
            self._drawn.pop(key, None)
            self._prune()

    def _save_spans(self, key: tuple[str, float], number: int, run: Run) -> None:
        """Add the timeline's new stretches: each is written once, and all anew only when they were merged."""
        merges, count = self._drawn.get(key, (-1, 0))
        if merges != run.merges:
            self._connection.execute("DELETE FROM timeline WHERE run = ?", (number,))
            count = 0
        self._connection.executemany(
            "INSERT INTO timeline VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, place, s.start_s, s.width_s, s.readings, s.power_w, s.least_w, s.most_w, s.window_w, s.cap_w,
              s.low_hz, s.high_hz, s.batch_size) for place, s in enumerate(run.spans[count:], count)],
        )  # fmt: skip

    def _prune(self) -> None:
        """Forget the oldest ended runs until the file is within its bounds."""
        connection = self._connection
        ended = "SELECT run FROM runs WHERE ended_at IS NOT NULL ORDER BY run LIMIT"
        over = connection.execute("SELECT count(*) FROM runs").fetchone()[0] - self._most_runs
        if over > 0:
            connection.execute(f"DELETE FROM runs WHERE run IN ({ended} ?)", (over,))
        while self._bytes() > self._most_bytes:  # timelines of old runs go before the runs
            drawn = "SELECT DISTINCT run FROM timeline ORDER BY run LIMIT"
            count = connection.execute("SELECT count(DISTINCT run) FROM timeline").fetchone()[0]
            if count <= 1:
                break
            connection.execute(f"DELETE FROM timeline WHERE run IN ({drawn} ?)", (max(1, count // 20),))
        while self._bytes() > self._most_bytes:
            count = connection.execute("SELECT count(*) FROM runs WHERE ended_at IS NOT NULL").fetchone()[0]
            if count <= 1:
                break
            connection.execute(f"DELETE FROM runs WHERE run IN ({ended} ?)", (max(1, count // 20),))
        connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _bytes(self) -> int:
        pages, free, size = (
            int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def _drop(self, *, tidy: bool = False) -> None:
        if self._connection is None:
            return
        with contextlib.suppress(Exception):
            if tidy:  # a file in WAL mode can be opened only by those who may make files beside it
                self._connection.execute("PRAGMA journal_mode = DELETE")
        with contextlib.suppress(Exception):
            self._connection.close()
        self._connection = None

    def _set_aside(self, why: str) -> None:
        aside = set_aside(self.path, why)
        for end in _COMPANIONS:
            companion = Path(f"{self.path}{end}")
            with contextlib.suppress(OSError):
                if aside is None:
                    companion.unlink(missing_ok=True)
                elif companion.exists():
                    companion.rename(f"{aside}{end}")

    def _tell(self, why: str) -> None:
        """Once for each reason, not with each record."""
        if why != self._said:
            log.error("history %s could not be written (%s): tried again with the next record", self.path, why)
            self._said = why


def _put_run(connection: Any, run: Run) -> int:
    values = {
        "job": run.job, "workload": run.workload, "signature": run.signature, "board": run.board,
        "release": run.release, "power_mode": run.power_mode, "policy": run.policy, "objective": run.objective,
        "batch_sizes": " ".join(map(str, run.batch_sizes)), "samples_done": run.samples_done,
        "samples_total": run.samples_total, "started_at": iso(run.started_s), "updated_at": iso(run.updated_s),
        "ended_at": None if run.ended_s is None else iso(run.ended_s), "end_reason": run.end_reason,
        "elapsed_s": run.elapsed_s, "samples": run.samples, "steps": run.steps,
        "input_energy_j": run.input_energy_j, "compute_energy_j": run.compute_energy_j,
        "above_cap_s": run.above_cap_s, "judged_s": run.judged_s, "gap_s": run.gap_s, "shared": run.shared,
        "guard_steps": run.guard_steps, "root": run.root,
    }  # fmt: skip
    key = (run.job, values["started_at"])
    changes = ", ".join(f"{name} = ?" for name in values)
    done = connection.execute(f"UPDATE runs SET {changes} WHERE job = ? AND started_at = ?", (*values.values(), *key))
    if done.rowcount == 0:  # not INSERT … ON CONFLICT, which would use up a number each time
        places = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO runs ({', '.join(values)}) VALUES ({places})", tuple(values.values()))
    found = connection.execute("SELECT run FROM runs WHERE job = ? AND started_at = ?", key).fetchone()
    return int(found[0])


def iso(at_s: float) -> str:
    """Seconds since 1970 as UTC text with milliseconds, which sorts as time does."""
    whole_ms = round(at_s * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole_ms // 1000))}.{whole_ms % 1000:03d}Z"
