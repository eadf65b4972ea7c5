"""How fast a recording replays: events a second, and how many times faster than it was recorded.

    python benchmarks/replay_speed.py [FILE ...] [--json]

Without files, the recordings of the tests. Each is replayed to the same actions, or the benchmark fails; reading and
unpacking the file is told apart from the governor's own time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

from traingov.replay.recording import read, replay

RECORDINGS = Path(__file__).parents[1] / "tests" / "replay"


def measure(file: Path) -> dict[str, Any]:
    begun = time.perf_counter()
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    entries = list(read(text.splitlines()))
    read_s = time.perf_counter() - begun
    begun = time.perf_counter()
    result = replay(entries)
    replay_s = time.perf_counter() - begun
    times = [entry["t_s"] for entry in entries if "t_s" in entry] or [
        e["event"]["t_s"] for e in entries if "event" in e
    ]
    return {
        "file": file.name,
        "good": result.good,
        "events": len(times),
        "recorded_s": max(times) - min(times),
        "read_s": read_s,
        "replay_s": replay_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(file) for file in options.files or sorted(RECORDINGS.glob("*.jsonl.gz"))]
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(
                f"{row['file']:34} {row['events']:7} events of {row['recorded_s']:7.1f} s in {row['replay_s']:6.2f} s "
                f"({row['replay_s'] / row['events'] * 1e6:5.1f} µs each, {row['recorded_s'] / row['replay_s']:6.0f} × "
                f"real time), reading {row['read_s']:5.2f} s"
            )
    if not all(row["good"] for row in rows):
        raise SystemExit("a recording did not replay to the same actions: the figures do not count")


if __name__ == "__main__":
    main()
