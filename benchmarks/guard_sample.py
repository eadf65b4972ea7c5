"""What one telemetry sample costs the governor: ``Governor.handle(Sample)`` with and without a cap.

    python benchmarks/guard_sample.py [--samples 200000] [--json]

Microseconds a sample, the least of five runs in one process; another machine gives other figures. Samples come at
100 a second, so that 10 µs are 0.1 % of a core. The power wiggles below the cap, as a governed job's does.
"""

from __future__ import annotations

import argparse
import json
import time

from traingov_policies.events import JobRegistered, KnobReadBack, Sample
from traingov_policies.governor import Governor
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap, PolicyName

CLOCKS = tuple(k * 76_800_000 for k in range(1, 13))


def run(cap: Cap | None, samples: int) -> float:
    """Microseconds a sample."""
    governor = Governor(
        Board("nano", "R32", "MAXN", CLOCKS), Settings(policy=PolicyName.FIXED, fixed_frequency_hz=CLOCKS[8]), cap
    )
    governor.handle(JobRegistered(0.0, "j", "w", (8, 16), 16))
    governor.handle(KnobReadBack(0.01, CLOCKS[8], CLOCKS[8], CLOCKS[8], CLOCKS[8]))
    events = [
        Sample(0.02 + k / 100, 4.0 + 0.01 * (k // 2 % 17), 2.0, CLOCKS[8] - 1, 0.97 - 0.01 * (k % 3), 45.0)
        for k in range(samples)
    ]
    handle = governor.handle
    begun = time.perf_counter()
    for event in events:
        handle(event)
    return (time.perf_counter() - begun) / samples * 1e6


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    caps = {"no cap": None, "cap over 1 s": Cap(5.0), "cap and burst": Cap(5.0, 1.0, 6.0)}
    found = {name: min(run(cap, options.samples) for _ in range(5)) for name, cap in caps.items()}
    if options.json:
        print(json.dumps({"us_per_sample": found}))
        return
    for name, us in found.items():
        print(f"{name:14s} {us:6.2f} µs a sample")


if __name__ == "__main__":
    main()
