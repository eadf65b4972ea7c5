"""What is fuzzed: each target takes bytes, and raises where the code under test does what it must not do.

A target allows the one error that its reader is documented to raise, and nothing else. ``TARGETS`` has them by name;
``seeds`` gives real inputs to begin with.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import logging
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from service_desk import talk

from traingov.caps.kept import read_claims
from traingov.cli.check import check
from traingov.cli.errors import WrongInput
from traingov.device.files import SystemFiles
from traingov.device.journal_format import DamagedJournalError, decode
from traingov.device.restore import restore
from traingov.history.curves import CurveStore
from traingov.history.file import HistoryFile
from traingov.history.reading import HistoryError, details, job_names, reading, runs
from traingov.history.records import Run
from traingov.replay.recording import read, replay
from traingov.store import LutStore, load_relations
from traingov.sweeps import SweepStore
from traingov.telemetry.lines import LINE_LIMIT, LineSplitter
from traingov.telemetry.tegrastats import NotTegrastats, parse_line
from traingov_policies.cap_file import parse_cap
from traingov_policies.caps import in_force
from traingov_policies.select import select
from traingov_policies.sweep import COLUMNS
from traingov_policies.tree import Tree
from traingov_policies.values import Board, Objective

REPOSITORY = Path(__file__).resolve().parents[2]
FOUND = Path(__file__).with_name("found")
BOARD = Board("nano", "R32.7", "MAXN", (76_800_000, 460_800_000, 921_600_000))

logging.disable(logging.CRITICAL)  # messages about damaged files are expected here, by the thousand
_folder = Path(tempfile.mkdtemp(prefix="traingov-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))


def _remove() -> None:
    for root, folders, files in os.walk(_folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(root, name))
        for name in folders:
            os.rmdir(os.path.join(root, name))


@contextlib.contextmanager
def _file(name: str, data: bytes) -> Iterator[Path]:
    """A file with ``data`` in an empty folder."""
    path = _folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    try:
        yield path
    finally:
        _remove()


# -- from the board and from its jobs --------------------------------------------------------------------------------
def socket(data: bytes) -> None:
    """What peers send, to the real sessions, desk and governor."""
    talk(data)


def tegrastats(data: bytes) -> None:
    """What tegrastats prints, in pieces, through the splitter and the parser."""
    splitter = LineSplitter()
    step = 1 + (data[0] if data else 0) * 8
    for at in range(1, len(data), step):
        for line in splitter.feed(data[at : at + step], 4):
            assert len(line) <= LINE_LIMIT
            try:
                shown = parse_line(line)
            except NotTegrastats:
                continue
            json.dumps([shown.rails_w, shown.temperatures_celsius, shown.unknown], allow_nan=False)
            for cpu in shown.cpus:
                json.dumps(vars(cpu) if hasattr(cpu, "__dict__") else list(cpu), allow_nan=False)
            assert all(watts >= -1e6 for watts in shown.rails_w.values())


# -- what other programs write ---------------------------------------------------------------------------------------
def cap_file(data: bytes) -> None:
    """The file that another program writes a cap to."""
    with contextlib.suppress(ValueError):
        parse_cap(data)


# -- what the service keeps: it starts with whatever it finds ---------------------------------------------------------
def kept_caps(data: bytes) -> None:
    """STATE/cap.json."""
    with _file("cap.json", data) as path:
        claims = read_claims(path, "boot", 100.0)
        now = in_force(list(claims.values()), 100.0)
        json.dumps([now.source, None if now.cap is None else vars(now.cap)], allow_nan=False)
        for claim in claims.values():
            hash(claim)
            json.dumps([claim.uid, claim.set_at, claim.expires_s], allow_nan=False)


def restore_journal(data: bytes) -> None:
    """STATE/restore.json, read by root."""
    with contextlib.suppress(DamagedJournalError):
        decode(data)
    with _file("state/restore.json", data) as path:
        report = restore(str(_folder / "root"), str(path), io.StringIO(), files=SystemFiles(str(_folder / "root")))
        assert report.status in {"restored", "discarded", "damaged", "failed"}, report


def tables(data: bytes) -> None:
    """STATE/lut: read at the start, and chosen from."""
    with _file("lut/nano/R32.7/MAXN/x.json", data):
        store = LutStore(_folder / "lut", [_folder / "lut/nano/R32.7"])
        lut = store.get(BOARD, "x")
        store.prior(BOARD, "x")
        if lut is not None:
            again = type(lut).from_json(json.loads(json.dumps(lut.to_json(), allow_nan=False)))
            assert again == lut
            lut.overlaid(again)
            for objective in Objective:
                with contextlib.suppress(ValueError):  # a table without a usable point
                    select(lut, None, 5.0, objective)


def relations(data: bytes) -> None:
    """STATE/relations."""
    with _file("relations/x.json", data):
        for relation in load_relations([_folder / "relations"]).values():
            json.dumps(relation.to_json(), allow_nan=False)


def curves(data: bytes) -> None:
    """STATE/curves."""
    with _file("curves/nano/R32.7/MAXN/x-batch-8.json", data):
        store = CurveStore(_folder / "curves")
        for curve in (*store.of(BOARD, "x"), *store.others(BOARD, "x")):
            json.dumps(curve.to_json(), allow_nan=False)
            curve.joined(replace(curve))


def sweeps(data: bytes) -> None:
    """STATE/sweeps."""
    with _file("sweeps/nano/R32.7/MAXN/x.csv", data):
        json.dumps([vars(row) for row in SweepStore(_folder / "sweeps").get(BOARD, "x")], allow_nan=False)


def history(data: bytes) -> None:
    """STATE/history.sqlite, as the service begins with it and as people read it."""
    with _file("history.sqlite", data) as path:
        try:
            with reading(path) as connection:
                found = runs(connection, None)
                json.dumps([{**run, **details(connection, run["run"])} for run in found[:5]])
                job_names(connection)
        except HistoryError:
            pass
        keeper = HistoryFile(path)
        keeper.begin()
        keeper.keep(_run())
        keeper.close()


def _run() -> Run:
    return Run(
        "j", "j", "j", "nano", "R32.7", "MAXN", "joint", "time", (8,), 0, None, 1.0, 2.0, 2.0, "end", 1.0, 8, 1,
        None, None, 0.0, 0.0, 0.0, False, 0, (), (), (), (), (), 0, None,
    )  # fmt: skip


# -- what people give to commands: one line of WrongInput -------------------------------------------------------------
def _checked(name: str) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        with _file(name, data) as path, contextlib.suppress(WrongInput):
            check(str(path))

    return target


def tree(data: bytes) -> None:
    """A decision tree, read and asked."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        found = Tree.from_json(value)
    except (ValueError, TypeError, AttributeError, RecursionError):  # what config.load_tree makes one line of
        return
    for features in ({}, {"layers": 3, "gpu_utilization": 55.0, "model_type": "cnn", "seq_len_avg": 20.0}):
        found.apply(features)
    found.rules()


def recording(data: bytes) -> None:
    """`traingov replay`: whatever a file holds, the answer is a result or ValueError."""
    with contextlib.suppress(ValueError):
        replay(read(io.StringIO(data.decode("utf-8", "replace"))))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "socket": socket,
    "tegrastats": tegrastats,
    "cap-file": cap_file,
    "kept-caps": kept_caps,
    "restore-journal": restore_journal,
    "tables": tables,
    "relations": relations,
    "curves": curves,
    "sweeps": sweeps,
    "history": history,
    "tree": tree,
    "recording": recording,
    "check-json": _checked("x.json"),
    "check-yaml": _checked("x.yaml"),
    "check-recording": _checked("x.jsonl"),
    "check-recording-gz": _checked("x.jsonl.gz"),
}


# -- seeds ------------------------------------------------------------------------------------------------------------
def seeds(name: str) -> list[bytes]:
    """Real inputs of a target, and those that once broke it (found/NAME)."""
    mine = [path.read_bytes() for path in sorted((FOUND / name).glob("*"))]
    return [*mine, *(_SEEDS[name]() if name in _SEEDS else [])]


def _all(*patterns: str) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for pattern in patterns for path in sorted(REPOSITORY.glob(pattern))]


def _lines(*messages: Any) -> bytes:
    return b"\xff" + b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


def _conversations() -> list[bytes]:
    hello = {"id": 1, "method": "hello", "params": {"protocol": 1, "client": "fuzz/1"}}
    job = {"workload": "x", "batch_sizes": [8, 16, 32], "batch_size": 16, "features": {"layers": 3}, "samples_total": 9}
    steps = {"batch_size": 16, "steps": 2, "samples": 32, "elapsed_s": 0.2, "end_s": 1.0, "synced": True}
    register = {"id": 2, "method": "register", "params": job}
    by_policy = [{**register, "params": {**job, "policy": policy}} for policy in ("energy", "fixed", "observe")]
    told = [
        {"method": "steps", "params": steps},
        {"method": "batch_applied", "params": {"batch_size": 8, "advice": 1}},
        {"method": "batch_failed", "params": {"batch_size": 32, "reason": "out of memory"}},
        {"method": "pause", "params": {"reason": "evaluation"}},
        {"method": "resume"},
        {"method": "end"},
    ]
    asked = [{"id": n, "method": name} for n, name in enumerate(("status", "jobs", "cap.get", "policy.get", "explain"))]
    set_ = [
        {"id": 3, "method": "cap.set", "params": {"power_w": 5.0, "window_s": 1.0, "ttl_s": 9.0, "source": "a"}},
        {"id": 4, "method": "policy.set", "params": {"policy": "fixed", "objective": "edp"}},
        {"id": 5, "method": "cap.clear"},
        {"id": 6, "method": "profile.start", "params": {"clocks_hz": [76_800_000], "steps": 3}},
        {"id": 7, "method": "profile.get"},
        {"id": 8, "method": "profile.stop"},
    ]
    batch = b"\xff" + json.dumps([{"jsonrpc": "2.0", **message} for message in (hello, register, *asked)]).encode()
    return [
        _lines(hello, register, *told, *asked),
        *(_lines(hello, one, *told[:3] * 3, *asked[:1]) for one in by_policy),
        _lines(hello, register, *set_, *told, asked[0]),
        batch + b"\n",
        b"\x03" + _lines(hello, register, *told)[1:],
    ]


def _lines_of_boards() -> list[bytes]:
    rows: list[bytes] = []
    for path in sorted((REPOSITORY / "tests/golden/tegrastats").glob("*.jsonl")):
        rows += [json.loads(line)["line"].encode() for line in path.read_text().splitlines()[:2]]
    return [b"\xff" + row + b"\n" for row in rows] or [b"\xff"]


def _recordings() -> list[bytes]:
    rows = gzip.decompress((REPOSITORY / "tests/replay/demo-joint.jsonl.gz").read_bytes()).splitlines(keepends=True)
    kinds: dict[str, bytes] = {}
    for row in rows[1:]:
        if len(row) < 3000:
            entry = json.loads(row)
            kinds.setdefault(str(entry.get("event") or entry.get("action") or "write"), row)
    return [b"".join([rows[0], *kinds.values()]), b"".join(rows[:1]), b"".join(rows[:40])]


def _old_history() -> list[bytes]:
    with _file("history.sqlite", b"") as path:
        path.unlink()
        keeper = HistoryFile(path)
        keeper.keep(_run())
        keeper.close()
        connection = sqlite3.connect(path)
        connection.execute("VACUUM")
        connection.close()
        return [path.read_bytes()]


def _sweep() -> list[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([("x", "cnn", 3, 64, 20.5, 70, hz, 1.5, 2.5, "") for hz in ("mode0", 76_800_000)])
    return [text.getvalue().encode()]


def _journal() -> list[bytes]:
    node = "/sys/devices/57000000.gpu/devfreq/57000000.gpu"
    knobs = [
        {"path": f"{node}/{kind}_freq", "kind": kind, "original": hz, "written": ["460800000"], "pending": True}
        for kind, hz in (("min", "76800000"), ("max", "921600000"))
    ]
    head = {"schema": "traingov.journal/1", "boot_id": "b", "power_mode": "MAXN", "written_at": ""}
    return [json.dumps({**head, "knobs": knobs}).encode()]


def _caps() -> list[bytes]:
    claim = {"source": "command a", "cap": {"power_w": 5.0, "window_s": 1.0, "burst_w": None}, "uid": 0,
             "set_at": "2026-01-31 12:00:00", "override": False, "ttl_s": 60.0, "expires_s": 160.0}  # fmt: skip
    return [
        json.dumps({"schema": "traingov.caps/1", "boot": "boot", "claims": [claim]}).encode(),
        json.dumps({"boot": "boot", "cap": {"power_w": 5.0}}).encode(),
    ]


def _table() -> list[bytes]:
    cells = [[1.0, 2.0, None], [3.0, 4.0, 5.0]]
    table = {
        "schema": "traingov.lut/1", "board": "nano", "workload": "x", "samples": 4096, "batch_sizes": [8, 16],
        "gpu_frequencies_hz": list(BOARD.gpu_frequencies_hz), "time_s": cells, "peak_power_w": cells,
        "mean_power_w": cells, "conditions": {}, "measured_at": None,
        "origin": [["measured", "measured", "infeasible"], ["predicted"] * 3],
    }  # fmt: skip
    return [json.dumps(table).encode()]


def _curve() -> list[bytes]:
    from traingov_policies.search.curves import SCHEMA  # noqa: PLC0415

    base = {"schema": SCHEMA, "board": "nano", "workload": "x", "signature": "x", "batch_size": 8}
    return [json.dumps({**base, "points": [{"gpu_frequency_hz": 76_800_000, "cost": 1.0}]}).encode()]


_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "socket": _conversations,
    "tegrastats": _lines_of_boards,
    "cap-file": lambda: [b"5.5\n", b"null", b'{"power_w": 5, "window_s": 1, "burst_w": 6}', *_caps()],
    "kept-caps": _caps,
    "restore-journal": _journal,
    "tables": lambda: [*_table(), *_all("etc/luts/*.json")()],
    "relations": _all("etc/relations/*.json"),
    "curves": _curve,
    "sweeps": _sweep,
    "history": _old_history,
    "tree": _all("etc/trees/*.json"),
    "recording": _recordings,
    "check-json": lambda: [*_table(), *_curve(), *_all("etc/trees/*.json", "etc/relations/*.json")()],
    "check-yaml": _all("etc/traingov.yaml", "etc/boards/*.yaml", "etc/examples/*.yaml"),
    "check-recording": _recordings,
    "check-recording-gz": lambda: [gzip.compress(data, 1) for data in _recordings()],
}
