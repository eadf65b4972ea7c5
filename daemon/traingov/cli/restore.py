"""`traingov restore`: give the knobs back. Standard library only: it must work when nothing else does."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence

from ..device.restore import JOURNAL_NAME, restore

DEFAULT_STATE_DIR = "/var/lib/traingov"


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status: 0 nothing is left to do, 1 it is, 2 wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="traingov restore",
        description="Give back the GPU bounds as they were found before traingov first wrote them.",
        epilog="Exit status: 0 when nothing is left to do, 1 when a knob is not back (run it again), 2 for wrong use.",
    )
    parser.add_argument(
        "--root", default="/", metavar="DIR", help="folder put before /sys, /proc and /etc (default: /)"
    )
    parser.add_argument(
        "--state-dir",
        default=DEFAULT_STATE_DIR,
        metavar="DIR",
        help=f"folder of {JOURNAL_NAME} (default: {DEFAULT_STATE_DIR})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    try:
        options = parser.parse_args(list(arguments))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    if not os.path.isdir(options.root):
        print(f"traingov restore: --root {options.root} is no folder: give the board's root", file=sys.stderr)
        return 2
    path = os.path.join(options.state_dir, JOURNAL_NAME)
    if not options.json:
        return restore(options.root, path, sys.stdout).exit_status
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        report = restore(options.root, path, nowhere)
    print(json.dumps({**dataclasses.asdict(report), "exit_status": report.exit_status}))
    return report.exit_status
