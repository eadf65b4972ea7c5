"""Time to parse a line of tegrastats, against the parser of jetson-stats, in one run.

    python benchmarks/parse_line.py [--json] [--jetson-stats FOLDER]

jetson-stats has a parser of tegrastats up to release 3.1.4 (later ones read the sensors themselves):
`pip install jetson-stats==3.1.4`, or unpack its source anywhere and name the folder. It is AGPL software; it is
imported here to be measured and is no part of traingov. Both parsers read the same lines alternately, and the
quickest of several rounds counts for each, so that other load on the machine hits both or neither.

Every line differs from the one before it in each sensor value, as on a board: nothing is parsed from memory alone.
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
ROUNDS = 15
TARGET_US = 27.0
TARGET_RATIO = 0.2


def agx_orin(rng: random.Random) -> str:
    """An AGX Orin line (JetPack 6) of 12 cores with every field."""
    cores = ",".join(f"{rng.randrange(101)}%@{rng.choice((729, 1344, 1728, 2201))}" for _ in range(12))
    zones = " ".join(
        f"{zone}@{rng.randrange(1280, 1920) / 32:g}C"
        for zone in ("cpu", "tboard", "soc2", "tdiode", "soc0", "gpu", "tj", "soc1")
    )
    rails = " ".join(
        f"{rail} {rng.randrange(low, 3 * low)}mW/{rng.randrange(low, 3 * low)}mW"
        for rail, low in (("VDD_GPU_SOC", 5000), ("VDD_CPU_CV", 800), ("VIN_SYS_5V0", 4000), ("VDDQ_VDD2_1V8AO", 700))
    )
    return (
        f"10-26-2025 05:{rng.randrange(10, 60)}:{rng.randrange(10, 60)} RAM {rng.randrange(6000, 9000)}/62841MB "
        f"(lfb 3x4MB) SWAP 0/31421MB (cached 0MB) CPU [{cores}] EMC_FREQ {rng.randrange(101)}%@3199 "
        f"GR3D_FREQ {rng.randrange(101)}%@[{rng.choice((305, 713, 1300))},{rng.choice((305, 713, 1300))}] NVENC off "
        "NVDEC off NVJPG off NVJPG1 off VIC off OFA off NVDLA0 off NVDLA1 off PVA0_FREQ off APE 174 "
        f"{zones} {rails}"
    )


def nano(rng: random.Random) -> str:
    """A Nano line (JetPack 4) with every field, in the format that jetson-stats was written for."""
    cores = ",".join(f"{rng.randrange(101)}%@1479" for _ in range(4))
    zones = " ".join(f"{z}@{rng.randrange(60, 120) / 2:g}C" for z in ("PLL", "CPU", "PMIC", "GPU", "AO", "thermal"))
    rails = " ".join(
        f"{r} {rng.randrange(900, 7000)}/{rng.randrange(900, 7000)}" for r in ("POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU")
    )
    return (
        f"RAM {rng.randrange(900, 3900)}/3956MB (lfb 11x4MB) SWAP 212/1978MB (cached 9MB) IRAM 0/252kB(lfb 252kB) "
        f"CPU [{cores}] EMC_FREQ {rng.randrange(101)}%@1600 GR3D_FREQ {rng.randrange(101)}%@921 APE 25 {zones} {rails}"
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
    rng = random.Random(1)
    met = True
    for board, make in (("agx-orin", agx_orin), ("nano", nano)):
        lines = [make(rng) for _ in range(LINES)]
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
