"""CPU of traingovd a sample at 100 samples a second, beside readers that do nothing else, in one run.

    python benchmarks/sample_cost.py [--seconds 30] [--json]

A virtual Nano runs a governed job under a cap. At the same time, each with a `tegrastats` child of its own:

- reader: reads lines with a blocking `for line in pipe` and throws them away
- parser: the same, and parses each line with traingov's parser (the target is 1.5 times this)
- parser on a loop: the same on an asyncio event loop, as the service has to read
- jetson-stats: as parser, with the parser of jetson-stats 3.1.4, where it is there (`pip install jetson-stats==3.1.4`,
  or `--jetson-stats FOLDER` with its unpacked source)

CPU is what the kernel counts for all threads of a process (user and system), children not included; `tegrastats` is the
virtual board's own and says nothing about NVIDIA's. "traingovd" is everything the service does in that time: ticks,
looks at the knob, thermal zones, history. "loop" is the part that a sample itself takes: the thread of the event loop.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from traingov_sim.demo.lab import Lab

# Each counts its lines, and says how many when it is asked by SIGUSR1.
_COUNTED = """
import signal, sys
sys.path[:0] = sys.argv[1:]
{imports}
count = 0
signal.signal(signal.SIGUSR1, lambda *_: print(count, flush=True))
for line in sys.stdin:
    {work}
    count += 1
"""
# The same on an event loop, as the service reads: what the service itself adds is the rest.
_ON_A_LOOP = """
import asyncio, os, signal, sys
from traingov.telemetry.tegrastats import parse_line
count = 0
def read():
    global count
    for line in os.read(0, 65536).decode().splitlines():
        parse_line(line)
        count += 1
signal.signal(signal.SIGUSR1, lambda *_: print(count, flush=True))
loop = asyncio.new_event_loop()
os.set_blocking(0, False)
loop.add_reader(0, read)
loop.run_forever()
"""
_READERS = {
    "reader": _COUNTED.format(imports="", work="pass"),
    "parser": _COUNTED.format(imports="from traingov.telemetry.tegrastats import parse_line", work="parse_line(line)"),
    "parser on a loop": _ON_A_LOOP,
    "jetson-stats": _COUNTED.format(
        imports="from jtop.core.tegrastats import Tegrastats", work="Tegrastats._decode(None, line)"
    ),
}
_JOB = """
import sys, traingov_client
from traingov_sim.gpu import EmulatedGpu
with EmulatedGpu(sys.argv[1]) as gpu, traingov_client.register(
    workload="digits-mlp", batch_sizes=[32], socket=sys.argv[2], sync=gpu.synchronize
) as job:
    while True:
        gpu.submit("digits-mlp", job.batch_size)
        job.step()
"""
_INTERVAL_S, _WARM_UP_S = 0.01, 5.0
TARGET_RATIO = 1.5


def cpu_s(pid: int, main_only: bool = False) -> float:
    """Seconds of CPU of a process so far: of all its threads that live, or of its first alone."""
    tasks = [str(pid)] if main_only else os.listdir(f"/proc/{pid}/task")
    return sum(int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measure(seconds: float, jetson_stats: str | None) -> dict[str, Any]:
    """Microseconds of CPU a sample, by who spent them."""
    with Lab() as lab:
        board = lab.board("nano", "a", 1)
        config = {"cap": {"power_w": 6}, "policy": "fixed", "fixed": {"gpu_frequency_hz": 614_400_000}}
        service = lab.service(board, "a", config)
        processes = {"job": subprocess.Popen([sys.executable, "-c", _JOB, board.gpu, str(service.socket)])}
        tegrastats = [*shlex.split(board.tegrastats), "--interval", "10"]
        feeds = []
        try:
            for name, text in _READERS.items():
                feed = subprocess.Popen(tegrastats, stdout=subprocess.PIPE)
                feeds.append(feed)
                extra = [jetson_stats] if jetson_stats and name == "jetson-stats" else []
                processes[name] = subprocess.Popen(
                    [sys.executable, "-c", text, *extra], stdin=feed.stdout, stdout=subprocess.PIPE, text=True,
                    stderr=subprocess.DEVNULL if name == "jetson-stats" else None,
                )  # fmt: skip
            time.sleep(_WARM_UP_S)
            peer_runs = processes["jetson-stats"].poll() is None
            readers = [name for name in _READERS if name != "jetson-stats" or peer_runs]
            service_pid = service.process.pid
            who = {"traingovd": (service_pid, False), "loop": (service_pid, True)}
            who |= {name: (processes[name].pid, False) for name in readers}

            def look() -> dict[str, tuple[float, int]]:
                seen = int(service.ask("status")["telemetry"]["readings"])
                return {
                    name: (cpu_s(*it), _count(processes[name]) if name in readers else seen) for name, it in who.items()
                }

            before = look()
            time.sleep(seconds)
            after = look()
        finally:
            for process in [*feeds, *processes.values()]:
                process.kill()
                process.wait()
    samples = {name: after[name][1] - before[name][1] for name in who}
    if not min(samples.values()):
        raise SystemExit(f"no samples came ({samples}): the machine is too busy")
    cost = {name: (after[name][0] - before[name][0]) / samples[name] * 1e6 for name in who}
    return {
        "us_per_sample": {name: round(us, 1) for name, us in cost.items()},
        "samples": samples,
        "ratio_loop": round(cost["loop"] / cost["parser"], 2),
        "ratio_traingovd": round(cost["traingovd"] / cost["parser"], 2),
        "jetson_stats": "3.1.4" if peer_runs else "not measured: not installed; see the head of this file",
        "target_ratio": TARGET_RATIO,
        "rate_kept": min(samples.values()) * _INTERVAL_S / seconds,
    }


def _count(reader: subprocess.Popen[str]) -> int:
    """How many lines a reader has read."""
    reader.send_signal(signal.SIGUSR1)
    assert reader.stdout is not None
    return int(reader.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--jetson-stats", metavar="FOLDER", help="where jetson-stats 3.1.4 was unpacked")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.seconds, options.jetson_stats)
    if options.json:
        print(json.dumps(found))
        return
    for name, us in found["us_per_sample"].items():
        print(f"{name:17}{us:8.1f} µs of CPU a sample, {us / 1e6 / _INTERVAL_S:6.2%} of a core")
    print(f"loop / parser {found['ratio_loop']}, traingovd / parser {found['ratio_traingovd']} (target {TARGET_RATIO})")
    if found["rate_kept"] < 0.9:
        print(f"only {found['rate_kept']:.0%} of the samples came: the machine is too busy to judge by this")
    print(f"jetson-stats: {found['jetson_stats']}; {found['samples']['traingovd']} samples")


if __name__ == "__main__":
    main()
