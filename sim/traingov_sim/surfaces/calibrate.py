"""Fit the virtual boards to the published facts: ``python -m traingov_sim.surfaces.calibrate [--seeds N]``.

Writes data/surfaces/<board>-<workload>.json. The Nano's board parameters are found with ResNet18, which has most
facts, and kept for its other workloads; the TX2 NX takes N from the Nano; the AGX Orin's board is found with
BERT-base on RTE, see ``orin_board``. Each workload is searched from several seeds, stopping where the facts are met;
of those that meet them the one in the middle (least summed distance of its log time and power tables to the others')
is shipped. The held-out cells take no part in either.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from traingov_sim.surface import step_time_s

from . import published_orin
from .clocks import CLOCKS_HZ, NANO_TICKED_HZ
from .facts import CALIBRATION, Case, Fact, Shape
from .fitting import Parameters, document, fit, search, spread, surface_of, write
from .generator import BOARD_PARAMETERS, GeneratedSurface
from .misfit import irregularity_name, samples_to_accuracy, tables
from .predictions import baseline_cells, energy_ratios, joint_cells
from .published import BASELINE_HZ, BATCHES, calibration_row, held_out_rows, nano_case, tx2_case
from .space import BOARD_RANGES, Range, common_parameters, workload_ranges
from .store import DIRECTORY, SCHEMA, path_of

MEMORY_BYTES = {  # base and per sample: batch sizes that the paper ran fit, those it could not do not
    "resnet18": (1_000_000_000, 14_000_000),
    "mobilenetv2": (1_000_000_000, 25_000_000),
    "efficientvit": (1_000_000_000, 22_000_000),
    "transformer": (1_000_000_000, 12_000_000),
}
ORIN_MEMORY_BYTES = (2_500_000_000, 90_000_000)

ORIN_FIRST = "bert-base/rte"


def with_shape(case: Case, data: Path) -> Case:
    """The case with the measured shape of power over the clock added, where the measurements are at hand."""
    path = data / "loudva" / "jetson_nano.csv"
    if not path.is_file():
        print(f"{path} is absent: the shape of power over the clock is not used", file=sys.stderr)
        return case
    watts: dict[int, list[float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            watts.setdefault(int(row["gpu_hz"]), []).append(float(row["mean_power_w"]))
    mean = [float(np.mean(watts[hz])) for hz in NANO_TICKED_HZ]
    scaled = tuple((w - mean[0]) / (mean[-1] - mean[0]) for w in mean)
    shape = Fact("power over the clock", CALIBRATION, Shape(32, NANO_TICKED_HZ, scaled), 0.04, "LoudVA, measured")
    return replace(case, facts=(*case.facts, shape))


def calibrate_nano(seeds: int, directory: Path, data: Path) -> dict[int, float]:
    """The four workloads of the Nano; returns ResNet18's N per batch size."""
    board: Parameters = {}
    samples: dict[int, float] = {}
    for workload, batches in BATCHES.items():
        published = nano_case(workload)
        case = published if board else with_shape(published, data)
        uncapped = calibration_row("nano", workload).baseline1[2]
        ranges = workload_ranges("nano", uncapped / batches.passes / batches.pass_samples)
        fitted = fit(case, {**BOARD_RANGES["nano"], **ranges}, board, seeds)
        if not board:
            board = {name: fitted.members[0][name] for name in BOARD_PARAMETERS}
            t = tables(published, fitted.members[0], CLOCKS_HZ["nano"][-1])
            samples = {b: float(samples_to_accuracy(t, f"b{b}")[0]) for b in (batches.baseline1, batches.baseline2)}
        calibrated = calibration_row("nano", workload)
        rows = (calibrated, *held_out_rows("nano", workload))

        def predict(s: GeneratedSurface, rows: Any = rows) -> list[dict[str, Any]]:
            found = [p for r in rows[1:] for p in baseline_cells(s, r)]
            found += [p for r in rows for p in joint_cells(s, r, NANO_TICKED_HZ)]
            return [p.to_json() for p in found]

        surface = surface_of(published, fitted.members[0], MEMORY_BYTES[workload])
        energy = {n: round(v, 3) for n, v in energy_ratios(surface, calibrated).items()}
        more = {"predictions": spread(fitted, predict), "energy_over_joint": energy}
        write(document(fitted, published, MEMORY_BYTES[workload], **more), directory)
    return samples


def calibrate_tx2(samples: dict[int, float], seeds: int, directory: Path) -> None:
    """ResNet18 on the TX2 NX; the baselines' unpublished clocks are those of least misfit."""
    table = CLOCKS_HZ["tx2-nx"]
    r = calibration_row("tx2-nx", "resnet18")
    batches = BATCHES["resnet18"]
    sample_s = r.baseline1[2] / samples[batches.baseline1] / batches.pass_samples
    ranges = {**BOARD_RANGES["tx2-nx"], **workload_ranges("tx2-nx", sample_s)}
    tried = []
    for low, middle in product(table[2:7], table[6:11]):
        clocks = (low, middle, table[-1])
        tried.append((search(tx2_case(samples, clocks), ranges, {}, seed=0, generations=300)[0], clocks))
    tried.sort()
    clocks = tried[0][1]
    case = tx2_case(samples, clocks)
    fitted = fit(case, ranges, {}, seeds)

    def predict(s: GeneratedSurface) -> list[dict[str, Any]]:
        cinic = held_out_rows("tx2-nx", "resnet18")
        found = [p for h in cinic for p in baseline_cells(s, h, clocks)]
        found += joint_cells(s, r, table, clocks, samples)
        found += [p for h in cinic for p in joint_cells(s, h, table, clocks)]
        return [p.to_json() for p in found]

    more = {
        "known_samples": {str(b): n for b, n in samples.items()},
        "assumed_clocks_hz": list(clocks),
        "clocks_tried": [{"clocks_hz": list(c), "misfit": round(v, 3)} for v, c in tried],
        "predictions": spread(fitted, predict),
    }
    write(document(fitted, case, MEMORY_BYTES["resnet18"], **more), directory)


def _orin_ranges(w: published_orin.FineTuning, case: Case) -> dict[str, Range]:
    ranges: dict[str, Range] = {**BOARD_RANGES["agx-orin"], **workload_ranges("agx-orin", w.step_s / 32)}
    if w.irregular:
        ranges.update({irregularity_name(hz): (0.96, 1.18) for hz in case.clocks_hz[:-1]})
    return ranges


def orin_board(seeds: int) -> Parameters:
    """The parameters common to the workloads of the AGX Orin.

    Candidates are fits of BERT-base on RTE, whose two published clocks constrain the board most; the one whose
    worst met workload is met best is taken.
    """
    cases = {w.name: published_orin.orin_case(w.name) for w in published_orin.WORKLOADS}
    first = cases[ORIN_FIRST]
    candidates = fit(first, _orin_ranges(published_orin.workload(ORIN_FIRST), first), {}, seeds).members
    scored = []
    for k, member in enumerate(candidates):
        board = {name: member[name] for name in common_parameters("agx-orin")}
        worst = max(
            search(cases[w.name], _orin_ranges(w, cases[w.name]), board, seed=0, generations=300)[0]
            for w in published_orin.WORKLOADS
        )
        scored.append((worst, k, board))
    return min(scored)[2]


def calibrate_orin(seeds: int, directory: Path) -> None:
    """The fine-tuning workloads of the AGX Orin."""
    board = orin_board(seeds)
    for w in published_orin.WORKLOADS:
        case = published_orin.orin_case(w.name)
        fitted = fit(case, _orin_ranges(w, case), board, seeds)
        t = tables(case, fitted.members[0], case.clocks_hz[-1])
        features = {
            "model_type": w.model_type,
            "layers": w.layers,
            "hidden_size": w.hidden_size,
            "seq_len_avg": w.seq_len_avg,
            "gpu_utilization": round(100 * float(np.asarray(t.steps.gpu_busy_share())[0, 0, -1]), 1),
        }
        write(document(fitted, case, ORIN_MEMORY_BYTES, features=features), directory)


def _derived(board: str, workload: str, base: GeneratedSurface, seconds: float, point: tuple[int, int]) -> Any:
    scale = float(f"{seconds / step_time_s(base, *point):.8g}")
    return {
        "schema": SCHEMA,
        "board": board,
        "workload": workload,
        "note": f"simulated: the surface of {base.workload} with every time multiplied, for demonstrations",
        "derived_from": base.workload,
        "time_scale": scale,
        "memory_base_bytes": 600_000_000,
        "memory_sample_bytes": 2_000_000,
    }


def derive(directory: Path) -> None:
    """The scaled surfaces for demonstrations."""

    def base(board: str, workload: str) -> tuple[GeneratedSurface, dict[str, Any]]:
        data = json.loads(path_of(board, workload, directory).read_text(encoding="utf-8"))
        case = Case(board, workload, (1,), CLOCKS_HZ[board], 0, ())
        return surface_of(case, data["parameters"], (0, 0)), data

    nano, _ = base("nano", "resnet18")
    digits = _derived("nano", "digits-mlp", nano, 0.26, (128, BASELINE_HZ[0]))
    write(digits, directory)
    tx2, _ = base("tx2-nx", "resnet18")
    write({**_derived("tx2-nx", "digits-mlp", tx2, 0.26, (128, 318_750_000))}, directory)
    bert, data = base("agx-orin", "bert-base/qqp")
    text = _derived("agx-orin", "text-classifier", bert, 0.04, (published_orin.BATCH, CLOCKS_HZ["agx-orin"][-1]))
    write({**text, "features": data["features"]}, directory)


@click.command()
@click.option("--seeds", default=20, show_default=True, help="Searches per workload.")
@click.option("--directory", default=DIRECTORY, type=click.Path(path_type=Path), help="Where the files go.")
@click.option(
    "--data",
    default=Path("../shared/data"),
    type=click.Path(path_type=Path),
    help="Measured data, for the shape of power over the clock; not needed.",
)
def main(seeds: int, directory: Path, data: Path) -> None:
    """Fit every virtual board and write its surfaces."""
    directory.mkdir(parents=True, exist_ok=True)
    samples = calibrate_nano(seeds, directory, data)
    calibrate_tx2(samples, seeds, directory)
    calibrate_orin(seeds, directory)
    derive(directory)


if __name__ == "__main__":
    main()
