"""How long traingovd takes from its start until it answers on the socket, and how long its commands take.

    python benchmarks/start_up.py [--runs 5] [--json]

Wall-clock seconds, the least and the median of the runs, on a virtual Nano. The service is ready when `hello` can be
said to it. `traingov restore` needs the standard library only and `traingov status` asks the service.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from traingov_sim.demo.lab import Lab


def seconds_of(command: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return time.perf_counter() - begun


def measure(runs: int) -> dict[str, dict[str, float]]:
    names = ("python alone", "traingovd", "traingov restore", "traingov status")
    found: dict[str, list[float]] = {name: [] for name in names}
    script = str(Path(sys.executable).with_name("traingov"))
    with Lab() as lab:
        board = lab.board("nano", "board", 1)
        for run in range(runs):
            found["python alone"].append(seconds_of([sys.executable, "-c", "pass"]))
            label = f"service{run}"
            (lab.directory / label).mkdir()
            begun = time.perf_counter()
            service = lab.service(board, label, {})
            found["traingovd"].append(time.perf_counter() - begun)
            found["traingov status"].append(seconds_of([script, "status", "--socket", str(service.socket)]))
            lab.stop(service)
            found["traingov restore"].append(
                seconds_of([script, "restore", "--root", board.root, "--state-dir", str(service.state_dir)])
            )
    return {name: {"least_s": min(all_s), "median_s": statistics.median(all_s)} for name, all_s in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.runs)
    if options.json:
        print(json.dumps(found))
        return
    for name, row in found.items():
        print(
            f"{name:18} {row['least_s']:6.3f} s at least, {row['median_s']:6.3f} s in the middle of {options.runs} runs"
        )


if __name__ == "__main__":
    main()
