"""Does the service stay the same over an hour? A virtual Nano at 100 samples/s, governed, watched every ten seconds.

    nice python benchmarks/soak.py --seconds 3600 --out build/soak.jsonl     # the run; a line every ten seconds
    python benchmarks/soak.py --show build/soak.jsonl                        # its figures, also of a run under way
    nice python benchmarks/soak.py --simulated 24 --out build/soak-simulated.jsonl     # a simulated day, see below

Meanwhile the job ends and registers anew every five minutes, the cap changes every ten, metrics are scraped at each
line. Power and step times are the virtual board's (simulated); memory, descriptors, CPU time and lags are measured.
A *bystander* thread of this script asks to be woken every 50 ms: how late it is woken tells what the machine, at the
same priority, does to anybody. Lags of samples are to be read beside it.

`--simulated HOURS` runs the governor and the board in the discrete-event twin instead, at 100 samples/s of simulated
time, one job of an hour after another and a cap that changes every five minutes, and counts memory and Python objects.
The twin keeps what the governor answers; that list is emptied at each look, as the service keeps none.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import socket
import statistics
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import traingov_client
from traingov_policies.values import Cap
from traingov_sim.board.boardspec import load_board
from traingov_sim.demo.lab import Lab, Service, _traingov
from traingov_sim.gpu import EmulatedGpu
from traingov_sim.surfaces import load
from traingov_sim.twin import Twin

EVERY_S, JOB_S, CAP_S = 10.0, 300.0, 600.0
CAPS_W = (4.5, 6.0)
BYSTANDER_S = 0.05
SAMPLE_S = 0.01
COUNTERS = ("traingov_samples_missed_total", "traingov_telemetry_restarts_total", "process_cpu_seconds_total")
HISTOGRAMS = ("traingov_sample_lag_seconds", "traingov_sample_interval_seconds")


class Bystander(threading.Thread):
    """Sleeps, and notes by how much it is woken too late (seconds)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.late_s: list[float] = []

    def run(self) -> None:
        while True:
            begin_s = time.monotonic()
            time.sleep(BYSTANDER_S)
            self.late_s.append(time.monotonic() - begin_s - BYSTANDER_S)

    def take(self) -> list[float]:
        taken, self.late_s = self.late_s, []
        return sorted(taken)


class Trainer(threading.Thread):
    """Trains; a new job every ``JOB_S`` seconds."""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self.service, self.stopping, self.jobs, self.steps = service, threading.Event(), 0, 0

    def run(self) -> None:
        with EmulatedGpu(self.service.board.gpu) as gpu:
            while not self.stopping.is_set():
                self.jobs += 1
                until_s = time.monotonic() + JOB_S
                with traingov_client.register(
                    workload="resnet18", batch_sizes=[16, 32], socket=str(self.service.socket), sync=gpu.synchronize
                ) as job:
                    while not self.stopping.is_set() and time.monotonic() < until_s:
                        job.safe_point()
                        gpu.submit("resnet18", job.batch_size)
                        job.step()
                        self.steps += 1


def process(pid: int) -> dict[str, Any]:
    """Memory (MiB), descriptors, threads and children of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    threads = list(Path(f"/proc/{pid}/task").iterdir())
    children = sum(len((thread / "children").read_text().split()) for thread in threads)
    return {
        "rss_mib": int(status["VmRSS"].split()[0]) / 1024,
        "anonymous_mib": int(status["RssAnon"].split()[0]) / 1024,
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(threads),
        "children": children,
    }


def scraped(listen: str) -> dict[str, Any]:
    """Counters, and histograms as {upper bound: count}, of the metrics page."""
    page = urllib.request.urlopen(f"http://{listen}/metrics", timeout=20).read().decode()
    rows = [line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#")]
    found: dict[str, Any] = {name: float(value) for name, value in rows if name in COUNTERS}
    for histogram in HISTOGRAMS:
        start = f'{histogram}_bucket{{le="'
        found[histogram] = {name[len(start) : -2]: float(value) for name, value in rows if name.startswith(start)}
    return found


def run(seconds: float, out: Path) -> None:
    """Run the soak; ``out`` gets a line of JSON every ten seconds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    with Lab() as lab, out.open("w") as lines:
        board = lab.board("nano", "soak", 1)
        config = {"cap": {"power_w": CAPS_W[0]}, "metrics": {"listen": listen}}
        service = lab.service(board, "soak", config)
        trainer, bystander = Trainer(service), Bystander()
        trainer.start()
        bystander.start()
        begin_s, caps = time.monotonic(), 0
        while (at_s := time.monotonic() - begin_s) < seconds:
            late_s = bystander.take()
            line = {
                "t_s": round(at_s, 1),
                **process(service.process.pid),
                **scraped(listen),
                "load": os.getloadavg()[0],
                "bystander_late_ms": [round(1e3 * quantile(late_s, q), 2) for q in (0.5, 0.99, 1)] if late_s else None,
                "bystander_late_by_10ms": sum(late > SAMPLE_S for late in late_s),
                "bystander_wakes": len(late_s),
                "jobs": trainer.jobs,
                "steps": trainer.steps,
                "state_kib": sum(f.stat().st_size for f in service.state_dir.rglob("*") if f.is_file()) / 1024,
            }
            lines.write(json.dumps(line) + "\n")
            lines.flush()
            if at_s > (caps + 1) * CAP_S:
                caps += 1
                _traingov("cap", "set", str(CAPS_W[caps % 2]), "--socket", str(service.socket), "--json")
            time.sleep(max(0.0, begin_s + (int(at_s / EVERY_S) + 1) * EVERY_S - time.monotonic()))
        trainer.stopping.set()
        trainer.join(20)
        lab.stop(service)
        said = [text for text in service.log.read_text().splitlines() if "ERROR" in text or "Traceback" in text]
        lines.write(json.dumps({"end": True, "status": service.process.returncode, "errors": said[:20]}) + "\n")


def run_simulated(hours: float, out: Path) -> dict[str, Any]:
    """Run the twin; a line of ``out`` for each simulated quarter of an hour."""
    twin, jobs, rows = Twin(load_board("nano"), cap=Cap(CAPS_W[0]), seed=1), 0, []
    with out.open("w") as lines:
        for quarter in range(round(hours * 4) + 1):
            gc.collect()
            row = {
                "hours": quarter / 4,
                "objects": len(gc.get_objects()),
                "rss_mib": process(os.getpid())["rss_mib"],
                "descriptors": process(os.getpid())["descriptors"],
                "actions": len(twin.actions),
                "cpu_s": time.process_time(),
                "jobs": jobs,
            }
            rows.append(row)
            lines.write(json.dumps(row) + "\n")
            lines.flush()
            twin.actions.clear()
            if quarter % 4 == 0:
                if jobs:
                    twin.end(f"job{jobs}")
                jobs += 1
                twin.add_job(load("nano", "resnet18"), (8, 16, 32), name=f"job{jobs}")
            for half in range(3):
                twin.set_cap(Cap(CAPS_W[(quarter + half) % 2]))
                twin.run(300.0)
    settled = [row for row in rows if row["hours"] >= hours / 4]
    return {
        "simulated_hours": rows[-1]["hours"],
        "jobs": jobs,
        "objects": [settled[0]["objects"], settled[-1]["objects"], max(row["objects"] for row in settled)],
        "rss_mib": [settled[0]["rss_mib"], settled[-1]["rss_mib"], max(row["rss_mib"] for row in settled)],
        "descriptors": sorted({row["descriptors"] for row in rows}),
        "times_real_time": 3600 * rows[-1]["hours"] / (rows[-1]["cpu_s"] - rows[0]["cpu_s"]),
    }


def quantile(values: list[float], q: float) -> float:
    """Of sorted values."""
    return values[min(len(values) - 1, int(q * len(values)))]


def show(file: Path) -> dict[str, Any]:
    """The figures of a run."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    end = rows.pop() if rows and rows[-1].get("end") else None
    first, last = rows[0], rows[-1]
    settled = [row for row in rows if row["t_s"] >= min(600.0, last["t_s"] / 2)]
    seconds = last["t_s"] - first["t_s"]

    def counted(name: str, since: dict[str, Any] = first) -> float:
        return float(last[name] - since.get(name, 0.0))

    def histogram(name: str) -> dict[str, float]:
        return {le: count - first[name].get(le, 0.0) for le, count in last[name].items()}

    lag, interval = (histogram(name) for name in HISTOGRAMS)
    times = [row["t_s"] for row in settled]
    slope = statistics.linear_regression(times, [row["rss_mib"] for row in settled]).slope if len(times) > 2 else None
    return {
        "seconds": seconds,
        "samples": lag["+Inf"],
        "samples_per_s": lag["+Inf"] / seconds,
        "missed": counted("traingov_samples_missed_total"),
        "telemetry_restarts": counted("traingov_telemetry_restarts_total"),
        "lag_at_most_s": lag,
        "interval_at_most_s": interval,
        "cpu_share": counted("process_cpu_seconds_total") / seconds,
        "cpu_us_per_sample": 1e6 * counted("process_cpu_seconds_total") / lag["+Inf"],
        "rss_mib": {"first": first["rss_mib"], "settled": settled[0]["rss_mib"], "last": last["rss_mib"],
                    "largest": max(row["rss_mib"] for row in rows)},
        "rss_slope_kib_per_h": None if slope is None else slope * 1024 * 3600,
        "descriptors": sorted({row["descriptors"] for row in settled}),
        "threads": sorted({row["threads"] for row in settled}),
        "children": sorted({row["children"] for row in settled}),
        "state_kib": {"settled": settled[0]["state_kib"], "last": last["state_kib"]},
        "jobs": last["jobs"],
        "steps": last["steps"],
        "load": {"mean": statistics.mean(row["load"] for row in rows), "largest": max(row["load"] for row in rows)},
        "bystander_late_by_10ms": sum(row["bystander_late_by_10ms"] for row in rows)
        / max(1, sum(row["bystander_wakes"] for row in rows)),
        "end": end,
    }  # fmt: skip


def main() -> None:
    """Run, or show what a run found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--out", type=Path, default=Path("build/soak.jsonl"))
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show the figures of this run")
    parser.add_argument("--simulated", type=float, metavar="HOURS", help="run so many simulated hours in the twin")
    options = parser.parse_args()
    if options.simulated is not None:
        print(json.dumps(run_simulated(options.simulated, options.out), indent=1))
        return
    if options.show is None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        run(options.seconds, options.out)
    print(json.dumps(show(options.show or options.out), indent=1))


if __name__ == "__main__":
    main()
