"""What ``job.step()`` costs, beside a bare function call, in one run and with a live server.

    python benchmarks/client_step.py [--seconds 5] [--json]

The server runs in a process of its own. Three figures, in microseconds: the median over calls (the target is at most
3 µs), the mean (reports every 100 ms included) and the 99.99th percentile. A call is timed by itself; the cost of the
clock, measured in the same way around nothing, is given too and not taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import traingov_client
from traingov.sessions.handler import JobSession, RegisterReply, RegisterRequest, StepsReport
from traingov.sessions.peer import Access, Peer
from traingov.sessions.server import SessionServer

BLOCK = 10_000


class Counting:
    """A handler that counts."""

    def __init__(self) -> None:
        self.reports = 0
        self.steps_seen = 0

    def register(self, session: JobSession, request: RegisterRequest) -> RegisterReply:
        return RegisterReply("j1", request.batch_size)

    def steps(self, session: JobSession, report: StepsReport) -> None:
        self.reports += 1
        self.steps_seen += report.steps

    def batch_applied(self, session: JobSession, batch_size: int, advice: int | None) -> None:
        pass

    def batch_failed(self, session: JobSession, batch_size: int, reason: str) -> None:
        pass

    def ended(self, session: JobSession, reason: str) -> None:
        pass

    def query(self, method: str, params: dict[str, Any]) -> object:
        return {"reports": self.reports, "steps": self.steps_seen}

    def command(self, method: str, params: dict[str, Any], who: Peer) -> object:
        return None


def serve(path: str, ready: Any, stop: Any, result: Any) -> None:
    async def main() -> None:
        handler = Counting()
        server = SessionServer(Path(path), handler, access=Access(os.geteuid()))
        await server.start()
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.05)
        await server.close()
        result.put((handler.reports, handler.steps_seen))

    asyncio.run(main())


def timed(call: Callable[[], Any], seconds: float) -> list[int]:
    """Nanoseconds of each call, for at least ``seconds``."""
    out: list[int] = []
    clock = time.perf_counter_ns
    end = clock() + int(seconds * 1e9)
    while clock() < end:
        for _ in range(BLOCK):
            begin = clock()
            call()
            out.append(clock() - begin)
    return out


def figures(samples: list[int]) -> dict[str, float]:
    ordered = sorted(samples)
    return {
        "median_us": statistics.median(ordered) / 1e3,
        "mean_us": statistics.fmean(ordered) / 1e3,
        "p9999_us": ordered[int(0.9999 * (len(ordered) - 1))] / 1e3,
        "calls": len(ordered),
    }


def bare() -> None:
    """A function that does nothing."""


def measure(seconds: float) -> dict[str, Any]:
    context = multiprocessing.get_context("fork")
    ready, stop, result = context.Event(), context.Event(), context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "traingov.sock")
        server = context.Process(target=serve, args=(path, ready, stop, result))
        server.start()
        if not ready.wait(30):
            raise SystemExit("the server did not start within 30 s")
        job = traingov_client.register(workload="benchmark", batch_sizes=[16], socket=path)
        if not job.connected:
            raise SystemExit("the job was not registered: nothing to measure")
        out: dict[str, Any] = {
            "bare_call": figures(timed(bare, seconds / 5)),
            "job_step": figures(timed(job.step, seconds)),
            "job_safe_point": figures(timed(job.safe_point, seconds / 5)),
        }
        job.end()
        time.sleep(0.2)
        stop.set()
        reports, steps = result.get(timeout=30)
        server.join(30)
    gone = traingov_client.register(workload="benchmark", batch_sizes=[16], socket=path)
    out["job_step_without_daemon"] = figures(timed(gone.step, seconds / 5))
    out["server"] = {"reports": reports, "steps": steps}
    out["median_ratio_to_bare"] = out["job_step"]["median_us"] / out["bare_call"]["median_us"]
    # All but the first step, which is not measured: the figures are those of a client that reported.
    if steps != out["job_step"]["calls"] - 1:
        raise SystemExit(f"the server saw {steps} steps of {out['job_step']['calls']}: the figures do not count")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    out = measure(options.seconds)
    if options.json:
        print(json.dumps(out, indent=2))
        return
    for name in ("bare_call", "job_step", "job_safe_point", "job_step_without_daemon"):
        row = out[name]
        print(
            f"{name:24} median {row['median_us']:7.3f} µs  mean {row['mean_us']:7.3f} µs  "
            f"p99.99 {row['p9999_us']:8.2f} µs  ({row['calls']} calls)"
        )
    print(f"server: {out['server']['reports']} reports, {out['server']['steps']} steps")


if __name__ == "__main__":
    main()
