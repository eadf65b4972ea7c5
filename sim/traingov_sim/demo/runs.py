"""What the demonstration runs, and what it measures of each run.

Nano, under the published cap of 4.5 W: the joint policy against the paper's two baselines (method A): the largest
batch, and the batch that needs the fewest samples by the relation vector, both at 307.2 MHz, which the paper found
safe for every model. AGX Orin: the decision tree against mode 0 (method B). All power and time is the virtual boards'.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .lab import Lab, Service, relation_of

CAP_W = 4.5
SAFE_HZ = 307_200_000  # the paper's clock for 4.5 W on the Nano, safe for all its models
WORKLOAD = "digits-mlp"
_PROFILE = {"settle_s": 1.0}  # the virtual Nano's clock switches in 0.65 s

Show = Callable[[str, float, str], None]
"""(run, share done 0..1, what it does now)"""


@dataclass
class Result:
    """What was measured of one run: sums over its seeds. Energies in joules, from the service's telemetry."""

    title: str
    point: str = ""
    seconds: list[float] = field(default_factory=list)
    input_energy_j: list[float] = field(default_factory=list)
    compute_energy_j: list[float] = field(default_factory=list)
    true_input_j: float = 0.0
    above_cap_s: float | None = None
    put_back: bool = False
    samples_to_accuracy: list[int] = field(default_factory=list)

    @property
    def mean_s(self) -> float:
        """Mean seconds over seeds."""
        return sum(self.seconds) / len(self.seconds)

    @property
    def mean_input_j(self) -> float:
        """Mean input energy over seeds."""
        return sum(self.input_energy_j) / len(self.input_energy_j)

    @property
    def mean_compute_j(self) -> float:
        """Mean GPU + CPU energy over seeds."""
        return sum(self.compute_energy_j) / len(self.compute_energy_j)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **vars(self),
            "mean_s": self.mean_s,
            "mean_input_energy_j": self.mean_input_j,
            "mean_compute_energy_j": self.mean_compute_j,
        }


@dataclass(frozen=True)
class Job:
    """One line of the table: a board, a configuration, a script and what it is called with, once for each seed."""

    label: str
    title: str
    board: str
    config: dict[str, Any]
    script: str
    arguments: list[str]
    seeds: tuple[int, ...]
    tables_from: str | None = None


def run_all(lab: Lab, show: Show, seeds: tuple[int, ...], steps: int, record: Path | None) -> dict[str, Result]:
    """All runs side by side, each on a board of its own; the joint run waits for its table. Results by label."""
    largest, fewest = baseline_batches(lab.directory)
    digits, texts = "digits.py", "text_classifier.py"
    chains = [
        [
            Job("profile", "profiling (once)", "nano", _nano("joint"), digits, ["--profile-only"], (0,)),
            Job("joint", "traingov joint", "nano", _nano("joint"), digits, [], seeds, tables_from="profile"),
        ],
        [
            Job("baseline1", "baseline 1", "nano", _nano("fixed"), digits,
                ["--batch-sizes", str(largest)], seeds),
        ],
        [
            Job("baseline2", "baseline 2", "nano", _nano("fixed"), digits,
                ["--batch-sizes", str(fewest)], seeds),
        ],
        [
            Job("mode0", "mode 0", "agx-orin", {"policy": "observe"}, texts,
                ["--steps", str(steps)], (0,)),
        ],
        [
            Job("tree", "traingov energy", "agx-orin", {"policy": "energy"}, texts,
                ["--steps", str(steps)], (0,)),
        ],
    ]  # fmt: skip
    results: dict[str, Result] = {}
    with ThreadPoolExecutor(len(chains)) as pool:
        futures = [pool.submit(_chain, lab, chain, show, record) for chain in chains]
        try:
            for future in as_completed(futures):
                results.update(future.result())
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)  # the threads wait for processes: those end first, undisturbed
            print("traingov-sim demo: stopping …", file=sys.stderr, flush=True)
            lab.close()
            raise
        except BaseException:
            lab.close()
            raise
    return results


def _chain(lab: Lab, jobs: list[Job], show: Show, record: Path | None) -> dict[str, Result]:
    return {job.label: _run(lab, job, show, record) for job in jobs}


def _nano(policy: str) -> dict[str, Any]:
    config: dict[str, Any] = {"policy": policy, "cap": {"power_w": CAP_W}, "profile": _PROFILE}
    if policy == "fixed":
        config["fixed"] = {"gpu_frequency_hz": SAFE_HZ}
    return config


def baseline_batches(folder: Path) -> tuple[int, int]:
    """The largest batch size, and the one that needs the fewest samples by the committed proxy run."""
    relation = relation_of(WORKLOAD, folder / "state")
    pairs = [
        (r, b) for b, r in zip(relation["batch_sizes"], relation["relative_samples"], strict=True) if r is not None
    ]
    return max(b for _, b in pairs), min(pairs)[1]


def _run(lab: Lab, job: Job, show: Show, record: Path | None) -> Result:
    show(job.label, 0.0, "starting a virtual board")
    board = lab.board(job.board, job.label, seed=sum(map(ord, job.label)))
    if job.tables_from is not None:
        shutil.copytree(lab.directory / job.tables_from / "state" / "lut", lab.directory / job.label / "state" / "lut")
    original = board.bounds_hz()
    file = None if record is None else record / f"{job.label}.jsonl"
    service = lab.service(board, job.label, job.config, file)
    result = Result(job.title)
    for number, seed in enumerate(job.seeds):
        before = board.truth()["input_j"]

        def progress(line: dict[str, Any], done: int = number) -> None:
            show(job.label, (done + _share(line)) / len(job.seeds), _words(line))

        script = lab.train(service, job.script, [*job.arguments, "--seed", str(seed)], progress)
        result.true_input_j += board.truth()["input_j"] - before
        result.seconds.append(script["seconds"])
        if script.get("samples_to_accuracy") is not None:
            result.samples_to_accuracy.append(script["samples_to_accuracy"])
    _account(service, result, job)
    lab.stop(service)
    result.put_back = board.bounds_hz() == original
    show(job.label, 1.0, f"{result.point}, {result.mean_s:.1f} s")
    return result


def _account(service: Service, result: Result, job: Job) -> None:
    ended = service.ask("jobs")["ended"]
    result.input_energy_j = [summary["input_energy_j"] for summary in ended]
    result.compute_energy_j = [summary["compute_energy_j"] for summary in ended]
    if "cap" in job.config:
        result.above_cap_s = sum(summary["above_cap_s"] for summary in ended)
    decisions = service.ask("explain")
    measured = sum(d["kind"] == "measured" for d in decisions)
    chosen = [d["point"] for d in decisions if d["kind"] in ("joint", "fixed", "tree")]
    if job.label == "profile":
        result.point = f"{measured} points"
    elif chosen:
        result.point = f"{chosen[-1]['batch_size']} @ {chosen[-1]['gpu_frequency_hz'] / 1e6:.0f} MHz"
    else:
        result.point = "follows load"


def _share(line: dict[str, Any]) -> float:
    if "steps" in line and "of" in line:
        return float(min(1.0, line["steps"] / line["of"]))
    if line.get("accuracy") is not None and line.get("target"):
        return float(min(1.0, max(0.0, line["accuracy"] / line["target"]) ** 8))
    return 0.0


def _words(line: dict[str, Any]) -> str:
    accuracy = line.get("accuracy")
    parts = [f"{line['samples']} samples"] if "samples" in line else []
    parts += [f"accuracy {accuracy:.3f}"] if accuracy is not None else []
    return ", ".join(parts)
