"""Measure a window's energy with Zeus's Jetson reader, unpatched, and print it in joules as JSON.

Runs with the Python of .venvs/peers, for which the virtual board is this machine (as_board.sh).
"""

import json
import sys
import time
from dataclasses import asdict

from zeus.device.soc.jetson import Jetson


def main():
    board = Jetson()
    board.begin_window("run")
    begun = time.monotonic()
    time.sleep(float(sys.argv[1]))
    millijoules = asdict(board.end_window("run"))
    ended = time.monotonic()
    print(json.dumps({"begun_s": begun, "ended_s": ended, **millijoules}), flush=True)


if __name__ == "__main__":  # it starts a process of its own
    main()
