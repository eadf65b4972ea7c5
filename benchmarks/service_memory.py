"""Memory of traingovd on a virtual Nano: at its start, while it profiles a job, after five scrapes of its metrics.

    python benchmarks/service_memory.py [--json]

Resident memory as the kernel says (MiB), with and without metrics; the part that other processes share is told apart.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
import time
import urllib.request

import traingov_client
from traingov_sim.demo.lab import Lab
from traingov_sim.gpu import EmulatedGpu

FAST = {"settle_s": 0.9, "min_window_s": 1.2, "max_frequencies": 4}
TRAINED_S = 15.0


def memory_mib(pid: int) -> dict[str, float]:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        rows = {line.split()[0].rstrip(":"): int(line.split()[1]) / 1024 for line in file.readlines()[1:]}
    shared = rows["Shared_Clean"] + rows["Shared_Dirty"]
    return {"resident": round(rows["Rss"], 1), "shared": round(shared, 1), "private": round(rows["Rss"] - shared, 1)}


def measured(metrics: bool) -> dict[str, dict[str, float]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    with Lab() as lab:
        board = lab.board("nano", "a", 1)
        config = {"cap": {"power_w": 4.5}, "profile": FAST, "metrics": {"listen": listen if metrics else None}}
        service = lab.service(board, "a", config)
        time.sleep(1)
        pid, found = service.process.pid, {}
        found["started"] = memory_mib(pid)
        stopping = threading.Event()

        def train() -> None:
            with EmulatedGpu(board.gpu) as gpu, traingov_client.register(
                workload="digits-mlp", batch_sizes=[16, 128], socket=str(service.socket), sync=gpu.synchronize
            ) as job:  # fmt: skip
                while not stopping.is_set():
                    job.safe_point()
                    gpu.submit("digits-mlp", job.batch_size)
                    job.step()

        thread = threading.Thread(target=train)
        thread.start()
        time.sleep(TRAINED_S)
        found["trained"] = memory_mib(pid)
        for _ in range(5 if metrics else 0):
            urllib.request.urlopen(f"http://{listen}/metrics", timeout=10).read()
            time.sleep(0.2)
        if metrics:
            found["scraped"] = memory_mib(pid)
        stopping.set()
        thread.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {"metrics on": measured(True), "metrics off": measured(False)}
    if options.json:
        print(json.dumps(result))
        return
    for name, steps in result.items():
        for step, mib in steps.items():
            print(f"{name:12} {step:8} {mib['resident']:5.1f} MiB resident, {mib['shared']:4.1f} of it shared")


if __name__ == "__main__":
    main()
