"""How often the chosen point truly exceeds the cap, and what caution costs: the choice with and without uncertainty.

Tables with known noise are drawn around the virtual Nano's surfaces (simulated), for caps between their least and
largest power. The truth is the surface without noise. Prints a row per noise and rule; all figures are simulated.
"""

from __future__ import annotations

import argparse
import json
import random
from statistics import fmean

from traingov_policies.lut import Cell, Lut
from traingov_policies.robust import choose
from traingov_policies.select import select
from traingov_sim.surface import mean_power_w, peak_power_w, step_time_s
from traingov_sim.surfaces.store import load

CLOCKS = tuple(76_800_000 * k for k in range(2, 13, 2))
BATCHES = (4, 8, 16, 32, 64)
SAMPLES = 4096
TABLES = 60
CAPS = 12


def truth(workload: str) -> Lut:
    surface = load("nano", workload)
    lut = Lut.empty("nano", workload, SAMPLES, BATCHES, CLOCKS)
    for p in list(lut.points()):
        b, f = p.batch_size, p.gpu_frequency_hz
        time = step_time_s(surface, b, f) * SAMPLES / b
        cell = Cell(time, peak_power_w(surface, b, f), mean_power_w(surface, b, f), "measured")
        lut = lut.with_cell(p, cell)
    return lut


def measured(true: Lut, noise: float, rng: random.Random) -> Lut:
    lut = true
    for p in list(true.points()):
        c = true.cell(p)
        time = c.time_s * (1 + rng.gauss(0, noise))
        peak = c.peak_power_w * (1 + rng.gauss(0, noise))
        cell = Cell(time, peak, c.mean_power_w, "measured", noise * time, noise * peak)
        lut = lut.with_cell(p, cell)
    return lut


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    rows = []
    rules = {
        "plain": lambda lut, cap: select(lut, cap_w=cap),
        "50 %": lambda lut, cap: choose(lut, cap_w=cap, violation_probability=0.5).selection,
        "20 %": lambda lut, cap: choose(lut, cap_w=cap, violation_probability=0.2).selection,
        "5 %": lambda lut, cap: choose(lut, cap_w=cap, violation_probability=0.05).selection,
        "1 %": lambda lut, cap: choose(lut, cap_w=cap, violation_probability=0.01).selection,
    }
    if not as_json:
        print("noise   rule   above cap   by at most   time against the true best (choices below the cap)")
    for noise in (0.003, 0.01, 0.02):
        results: dict[str, list[tuple[float, float]]] = {name: [] for name in rules}
        for workload in ("resnet18", "mobilenetv2", "efficientvit", "transformer"):
            true = truth(workload)
            peaks = [true.cell(p).peak_power_w or 0.0 for p in true.points()]
            rng = random.Random(workload)
            for _ in range(TABLES // 4):
                lut = measured(true, noise, rng)
                for _ in range(CAPS):
                    cap = rng.uniform(min(peaks) * 1.05, max(peaks))
                    best = select(true, cap_w=cap).chosen
                    for name, rule in rules.items():
                        cell = true.cell(rule(lut, cap).chosen.point)
                        results[name].append((cell.peak_power_w / cap - 1, cell.time_s / best.time_s - 1))
        for name, pairs in results.items():
            above = [over for over, _ in pairs if over >= 0]
            loss = fmean(loss for over, loss in pairs if over < 0)
            share = len(above) / len(pairs)
            rows.append({"noise": noise, "rule": name, "above": share, "most": max(above, default=0.0), "loss": loss})
            if not as_json:
                print(f"{noise:5.1%} {name:>6} {share:11.1%} {max(above, default=0.0):12.1%} {loss:14.2%}")
    if as_json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
