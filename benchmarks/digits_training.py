"""Real training on bundled data, for `traingov-sim evaluate joint`: samples to accuracy, and switching in mid-run.

Needs the proxy package (scikit-learn's digits). Prints a summary; with --out it writes the file that the evaluation
reads:  python benchmarks/digits_training.py --out sim/traingov_sim/data/digits-training.json

1. Samples to accuracy of target and proxy task for each batch size, five seeds, evaluated every 512 samples as the
   recipe does.
2. Switches: train with one batch size for a share of the samples that it needs, then with another. If r held
   throughout, what is left would be that share less of the other's samples. Evaluated every 128 samples.
3. Repeated switches: the two patterns below, with the optimizer's state kept, and with Adam begun anew at each switch.
4. Governed: the same training as a job of the twin, on the virtual Nano, while the cap changes every few seconds;
   the governor picks clock and batch size, the network really trains with it. Beside it: staying at either batch size
   under the same changing cap.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector, scaled_learning_rate
from traingov_policies.values import Cap
from traingov_proxy.recipes import digits
from traingov_proxy.recipes.mlp import Adam
from traingov_sim.board.boardspec import load_board
from traingov_sim.surface import mean_power_w, peak_power_w, step_time_s
from traingov_sim.surfaces import NANO_TICKED_HZ, load
from traingov_sim.twin import Twin

SEEDS = 5
SWITCH_SEEDS = 20
FINE = 128
SHARES = (0.25, 0.5, 0.75)
PAIRS = ((128, 16), (16, 128), (128, 32), (32, 128), (64, 8), (8, 64))
PATTERNS = ((8, 352, 128, 2176), (16, 1024, 128, 1024))
"""First batch size and its samples, second and its: the first is about what a cap of 4.5 W by turns gives."""
CAPS_W = (4.5, None)
SCALES = {"digits-mlp": (2.0, 5), "resnet18": (60.0, SWITCH_SEEDS)}
"""Whose step times: the demonstration's (trainings of about 20 s) and ResNet18's; seconds between caps, most seeds."""


class Training:
    """One training, a step at a time: what the twin calls ``Progress``."""

    def __init__(self, task_name: str, seed: int, every: int) -> None:
        self.task = digits.load_task(task_name)
        self.network = digits.initial_network(self.task, seed)
        self.stream = digits.SampleStream(self.task, seed)
        self.optimizer = Adam(self.network.parameters)
        self.samples, self.every, self.due = 0, every, every
        self.reached = False

    def forget(self) -> None:
        self.optimizer = Adam(self.network.parameters)

    def step(self, batch_size: int) -> bool:
        rate = scaled_learning_rate(
            *(digits.LEARNING_RATE, digits.REFERENCE_BATCH, batch_size, digits.LEARNING_RATE_RULE)
        )
        self.optimizer.step(self.network.gradients(*self.stream.next(batch_size))[1], rate)
        self.samples += batch_size
        if self.samples >= self.due:
            self.due += self.every
            accuracy = self.network.accuracy(self.task.test_inputs, self.task.test_labels)
            self.reached = accuracy >= self.task.target
        return self.reached or self.samples >= digits.MAX_SAMPLES


def samples_with(plan: Callable[[int], int], seed: int, every: int, task: str = "target") -> float | None:
    """N of a run whose batch size is ``plan(samples so far)``; None where the target was missed."""
    run = Training(task, seed, every)
    while not run.step(plan(run.samples)):
        pass
    return float(run.samples) if run.reached else None


def samples_to_accuracy(task: str, seeds: int, every: int) -> dict[str, list[float | None]]:
    return {
        str(b): [samples_with(lambda _, b=b: b, seed, every, task) for seed in range(seeds)] for b in digits.BATCH_SIZES
    }


def switched(first: int, second: int, at: int, seed: int) -> float | None:
    return samples_with(lambda samples: first if samples < at else second, seed, FINE)


def switches(seeds: int) -> dict[str, Any]:
    """Each seed switches after a share of the samples that this very seed needs at the first batch size."""
    stay = samples_to_accuracy("target", seeds, FINE)
    rows = []
    for first, second in PAIRS:
        for share in SHARES:
            at = [round(share * (n or digits.MAX_SAMPLES) / FINE) * FINE for n in stay[str(first)]]
            runs = [switched(first, second, at[seed], seed) for seed in range(seeds)]
            rows.append({"first": first, "second": second, "share": share, "at_samples": at, "samples": runs})
    return {"evaluated_every": FINE, "stay": stay, "switch": rows}


def excess(row: dict[str, Any], stay: dict[str, list[float | None]]) -> tuple[float, float]:
    """Samples of the whole run over those that r predicts, less 1: mean over seeds and its standard error."""
    ratios = []
    pairs = zip(row["at_samples"], row["samples"], stay[str(row["first"])], stay[str(row["second"])], strict=True)
    for at, samples, first, second in pairs:
        if None not in (samples, first, second):
            ratios.append(samples / (at + (1 - at / first) * second) - 1)
    return statistics.mean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5


def in_turns(pattern: tuple[int, int, int, int], seed: int, anew: bool) -> float | None:
    first, first_samples, second, second_samples = pattern
    run, before = Training("target", seed, FINE), 0
    while True:
        batch = first if run.samples % (first_samples + second_samples) < first_samples else second
        if anew and before not in (0, batch):
            run.forget()
        before = batch
        if run.step(batch):
            return float(run.samples) if run.reached else None


def repeated(seeds: int) -> list[dict[str, Any]]:
    return [
        {
            "pattern": list(pattern),
            "optimizer": "anew" if anew else "kept",
            "samples": [in_turns(pattern, seed, anew) for seed in range(seeds)],
        }
        for pattern in PATTERNS
        for anew in (False, True)
    ]


def table(workload: str) -> Lut:
    """The virtual Nano's true table, without measuring: what is tried here is the switching."""
    surface = load("nano", workload)
    rows = {b: [(b, hz) for hz in NANO_TICKED_HZ] for b in digits.BATCH_SIZES}

    def grid(of: Callable[..., float]) -> Any:
        return tuple(tuple(of(surface, b, hz) for b, hz in row) for row in rows.values())

    seconds = tuple(tuple(step_time_s(surface, b, hz) * 4096 / b for b, hz in row) for row in rows.values())
    origin = tuple(("measured",) * len(NANO_TICKED_HZ) for _ in rows)
    return Lut(
        *("nano", workload, 4096, digits.BATCH_SIZES, NANO_TICKED_HZ),
        *(seconds, grid(peak_power_w), grid(mean_power_w)),
        origin=origin,
    )


def governed(workload: str, seed: int, sizes: tuple[int, ...], relation: RelationVector) -> dict[str, Any]:
    """One training in the twin under a cap that changes again and again; with one size it stays at it."""
    period_s = SCALES[workload][0]
    caps = [None if w is None else Cap(w) for w in CAPS_W]
    twin = Twin(load_board("nano"), cap=caps[0], seed=seed)
    training = Training("target", seed, FINE)
    job = twin.add_job(
        *(load("nano", workload), sizes),
        **{"progress": training, "relation": relation, "lut": table(workload).restricted(sizes)},
    )
    for k in range(1, 200):
        twin.at(k * period_s, lambda t, k=k: t.set_cap(caps[k % 2]))
    twin.run()
    return {
        "step_times_of": workload,
        "seed": seed,
        "batch_sizes": list(sizes),
        "reached": training.reached,
        "samples": training.samples,
        "seconds": round(twin.t_s, 3),
        "input_energy_j": round(job.input_j, 2),
        "samples_by_batch": {str(b): n for b, n in sorted(job.samples_by_batch.items())},
        "switches": sum(a.kind == "joint" for a in twin.decisions) - 1,
    }


def record(parts: list[str], seeds: int, data: dict[str, Any]) -> None:
    """Fill ``data`` with the parts."""
    if "samples" in parts:
        data["samples_to_accuracy"] = {t: samples_to_accuracy(t, SEEDS, digits.EVALUATE_EVERY) for t in digits.CLASSES}
    if "switches" in parts:
        data["mid_run"] = switches(seeds)
    if "repeated" in parts:
        data["repeated"] = repeated(seeds)
    if "governed" in parts:
        proxy = data["samples_to_accuracy"]["proxy"]
        relation = RelationVector.from_runs("digits-mlp", {int(b): runs for b, runs in proxy.items()})
        runs = [
            governed(workload, seed, sizes, relation)
            for workload, (_, most) in SCALES.items()
            for seed in range(min(most, seeds))
            for sizes in (digits.BATCH_SIZES, (16,), (128,))
        ]
        period = {workload: seconds for workload, (seconds, _) in SCALES.items()}
        data["governed"] = {"caps_w": list(CAPS_W), "period_s": period, "runs": runs}


def show(data: dict[str, Any]) -> None:
    for b, runs in data["samples_to_accuracy"]["target"].items():
        print(f"batch {b:>4}: samples to accuracy {runs}")
    for row in data["mid_run"]["switch"]:
        mean, error = excess(row, data["mid_run"]["stay"])
        print(
            f"{row['first']:4} to {row['second']:4} after {row['share']:.0%}: "
            f"{mean:+.1%} (± {error:.1%}) samples against those that r predicts"
        )
    for row in data["repeated"]:
        mean = statistics.mean(n for n in row["samples"] if n is not None)
        print(f"in turns {row['pattern']}, optimizer {row['optimizer']}: {mean:.0f} samples")
    for workload in SCALES:
        for sizes in (list(digits.BATCH_SIZES), [16], [128]):
            chosen = [
                r for r in data["governed"]["runs"] if (r["batch_sizes"], r["step_times_of"]) == (sizes, workload)
            ]
            seconds = statistics.mean(r["seconds"] for r in chosen)
            missed = sum(not r["reached"] for r in chosen)
            print(f"cap changes, {workload}'s step times, batch sizes {sizes}: {seconds:.2f} s, {missed} missed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the file for the evaluation; parts not recorded now are kept")
    parser.add_argument("--seeds", type=int, default=SWITCH_SEEDS, help="seeds of switches and governed runs")
    parser.add_argument("--parts", default="samples,switches,repeated,governed", help="default: %(default)s")
    options = parser.parse_args()
    data: dict[str, Any] = {}
    if options.out and options.out.is_file():
        data = json.loads(options.out.read_text(encoding="utf-8"))
    data.update(
        schema="traingov-sim.training/1",
        note="real training of the digits recipe; times and energies of the governed runs are the virtual Nano's",
        command=f"python benchmarks/digits_training.py --seeds {options.seeds}",
        versions={"python": platform.python_version(), "numpy": np.__version__},
        workload="digits-mlp",
        targets=digits.TARGET_ACCURACY,
        datasets=digits.DATASET,
    )
    with threadpool_limits(limits=1):
        record(options.parts.split(","), options.seeds, data)
    if options.out:
        options.out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    show(data)


if __name__ == "__main__":
    main()
