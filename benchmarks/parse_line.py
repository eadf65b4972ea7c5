"""Time to parse a line of tegrastats, against the parser of jetson-stats, in one run.

    python benchmarks/parse_line.py [--json] [--jetson-stats FOLDER]

jetson-stats has a parser of tegrastats up to release 3.1.4 (later ones read the sensors themselves):
`pip install jetson-stats==3.1.4`, or unpack its source anywhere and name the folder. It is AGPL software; it is
imported here to be measured and is no part of traingov. Both parsers read the same lines alternately, and the
quickest of several rounds counts for each, so that other load on the machine hits both or neither.

Power and load differ from line to line; what a board repeats (names, most temperatures, the time stamp within a
second) is repeated here as well.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Callable

from traingov.telemetry.tegrastats import parse_line

LINES = 1000
ROUNDS = 25
TARGET_US = 27.0
TARGET_RATIO = 0.2


class Walk:
    """Values that change from line to line as they do on a board at 10 ms: power and load each time, a temperature
    by its sensor's last digit now and then, used memory sometimes, the time stamp once a second."""

    def __init__(self) -> None:
        self.rng = random.Random(1)
        self.number = 0
        self.ram = 7000
        self.celsius: dict[str, float] = {}

    def begin(self) -> None:
        self.number += 1
        self.ram += self.rng.choice((0, 0, 0, 1, -1))

    def load(self) -> int:
        return self.rng.randrange(101)

    def power(self, low: int, unit: str) -> str:
        return f"{self.rng.randrange(low, 3 * low)}{unit}/{self.rng.randrange(low, 3 * low)}{unit}"

    def zones(self, names: str, step: float) -> str:
        for name in names.split():
            before = self.celsius.setdefault(name, 45.0 + len(self.celsius))
            self.celsius[name] = before + step * self.rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 1, -1))
        return " ".join(f"{name}@{self.celsius[name]:.6g}C" for name in names.split())


def agx_orin(walk: Walk) -> str:
    """An AGX Orin line (JetPack 6) of 12 cores with every field."""
    walk.begin()
    clock, gpu = walk.rng.choice((729, 1344, 1728, 2201)), walk.rng.choice((305, 713, 1300))
    cores = ",".join(f"{walk.load()}%@{clock}" for _ in range(12))
    return (
        f"10-26-2025 05:10:{walk.number // 100 % 60:02} RAM {walk.ram}/62841MB (lfb 3x4MB) SWAP 0/31421MB "
        f"(cached 0MB) CPU [{cores}] EMC_FREQ {walk.load()}%@3199 GR3D_FREQ {walk.load()}%@[{gpu},{gpu}] NVENC off "
        "NVDEC off NVJPG off NVJPG1 off VIC off OFA off NVDLA0 off NVDLA1 off PVA0_FREQ off APE 174 "
        f"{walk.zones('cpu tboard soc2 tdiode soc0 gpu tj soc1', 1 / 32)} VDD_GPU_SOC {walk.power(5000, 'mW')} "
        f"VDD_CPU_CV {walk.power(800, 'mW')} VIN_SYS_5V0 {walk.power(4000, 'mW')} "
        f"VDDQ_VDD2_1V8AO {walk.power(700, 'mW')}\n"
    )


def nano(walk: Walk) -> str:
    """A Nano line (JetPack 4) with every field, in the format that jetson-stats was written for."""
    walk.begin()
    cores = ",".join(f"{walk.load()}%@1479" for _ in range(4))
    return (
        f"RAM {walk.ram - 4000}/3956MB (lfb 11x4MB) SWAP 212/1978MB (cached 9MB) IRAM 0/252kB(lfb 252kB) "
        f"CPU [{cores}] EMC_FREQ {walk.load()}%@1600 GR3D_FREQ {walk.load()}%@921 APE 25 "
        f"{walk.zones('PLL CPU PMIC GPU AO thermal', 0.5)} POM_5V_IN {walk.power(2000, '')} "
        f"POM_5V_GPU {walk.power(900, '')} POM_5V_CPU {walk.power(400, '')}\n"
    )


def parse_with_cpus(line: str) -> object:
    """As parse_line, with the list of cores read as well: all that a line says."""
    reading = parse_line(line)
    return reading, reading.cpus


def peer(folder: str | None) -> tuple[Callable[[str], object] | None, str]:
    """jetson-stats' parser as a function of a line, or None and why it is not here."""
    if folder:
        sys.path.insert(0, folder)
    try:
        decoder = importlib.import_module("jtop.core.tegrastats").Tegrastats
    except (ImportError, AttributeError) as error:
        return None, f"not measured: {error}; pip install jetson-stats==3.1.4, or give --jetson-stats FOLDER"
    decode = decoder._decode
    return lambda line: decode(None, line), "jetson-stats"


def quickest_us(functions: dict[str, Callable[[str], object]], lines: list[str]) -> dict[str, float]:
    """Microseconds a line for each function: the quickest round of each, the rounds interleaved."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            begin = time.perf_counter()
            for line in lines:
                function(line)
            best[name] = min(best[name], (time.perf_counter() - begin) / len(lines) * 1e6)
    return best


def main() -> int:
    options = argparse.ArgumentParser(description="Time to parse a line of tegrastats")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--jetson-stats", metavar="FOLDER", help="where jetson-stats 3.1.4 was unpacked")
    arguments = options.parse_args()
    other, note = peer(arguments.jetson_stats)
    result: dict[str, object] = {"python": sys.version.split()[0], "jetson_stats": note, "boards": {}}
    met = True
    for board, make in (("agx-orin", agx_orin), ("nano", nano)):
        walk = Walk()
        lines = [make(walk) for _ in range(LINES)]
        functions: dict[str, Callable[[str], object]] = {"loop_us": parse_line, "all_us": parse_with_cpus}
        if other is not None:
            functions["jetson_stats_us"] = other
        times = quickest_us(functions, lines)
        figures: dict[str, float | None] = {name: round(value, 2) for name, value in times.items()}
        theirs = times.get("jetson_stats_us")
        figures["ratio"] = None if theirs is None else round(times["loop_us"] / theirs, 4)
        figures["ratio_all"] = None if theirs is None else round(times["all_us"] / theirs, 4)
        met = met and times["loop_us"] <= TARGET_US and (theirs is None or times["loop_us"] <= TARGET_RATIO * theirs)
        result["boards"][board] = figures  # type: ignore[index]
    result |= {"target_us": TARGET_US, "target_ratio": TARGET_RATIO, "met": met}
    if arguments.json:
        print(json.dumps(result))
        return 0 if met else 1
    print(f"Python {result['python']}; {note}")
    for board, figures in result["boards"].items():  # type: ignore[attr-defined]
        print(f"{board}: " + ", ".join(f"{name} {value}" for name, value in figures.items()))
    print(f"targets: {TARGET_US:g} µs a line, {TARGET_RATIO:g} of jetson-stats: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
