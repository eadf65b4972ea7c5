"""CPU time of one reading from the kernel's files, on virtual boards. The I2C transfers of a real one come on top."""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

from traingov.device.files import SystemFiles
from traingov.telemetry.sysfs import SysfsMeter
from traingov_sim.board.boardspec import load_board
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.kernel.tree import FolderTree

READINGS = 500


def reading_s(name: str) -> float:
    """Seconds of CPU time a reading, mean of READINGS."""
    board = VirtualBoard(load_board(name))
    with tempfile.TemporaryDirectory() as folder:
        tree = FolderTree(Path(folder), board, "boot", threading.Lock())
        tree.refresh(board.sensors(1.0))
        meter = SysfsMeter(SystemFiles(folder))
        meter.read()
        begun = time.process_time()
        for _ in range(READINGS):
            meter.read()
        spent_s = time.process_time() - begun
        tree.close()
    return spent_s / READINGS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: reading_s(name) for name in ("nano", "tx2", "agx-orin")}
    if options.json:
        print(json.dumps({"seconds_per_reading": found}))
        return
    for name, seconds in found.items():
        print(f"{name}: {seconds * 1e3:.2f} ms a reading")


if __name__ == "__main__":
    main()
