"""The ``tegrastats`` executable of a virtual board: a short script that copies the board's lines to stdout.

It stands for NVIDIA's tool; what it costs says nothing about what NVIDIA's costs. It is written without imports from
this project and runs isolated, so that it starts fast and works whatever the caller's environment holds.
"""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPT = """#!/bin/sh
"exec" "{python}" "-IS" "$0" "$@"
# The tegrastats of a virtual board (simulated readings): copies the board's lines to stdout.
import os, signal, socket, sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
interval, output, arguments = 1000, 1, sys.argv[1:]
while arguments:
    name = arguments.pop(0)
    if name in ("--interval", "--logfile") and not arguments:
        sys.exit("tegrastats: " + name + " needs a value")
    if name == "--interval":
        value = arguments.pop(0)
        if not value.isdigit() or int(value) < 1:
            sys.exit("tegrastats: --interval needs milliseconds, not " + repr(value))
        interval = int(value)
    elif name == "--logfile":
        output = os.open(arguments.pop(0), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    elif name == "--stop":
        sys.exit(0)  # the real tool stops its background run; there is none here
    elif name not in ("--verbose", "--readall"):
        sys.exit("tegrastats: unknown option " + repr(name) + "; use --interval MS or --logfile FILE")
board = socket.socket(socket.AF_UNIX)
try:
    board.connect({socket!r})
    board.sendall(b'{{"op": "tegrastats", "interval_ms": %d}}\\n' % interval)
    while True:
        lines = board.recv(65536)
        if not lines:
            sys.exit("tegrastats: the virtual board ended")
        while lines:
            lines = lines[os.write(output, lines):]
except OSError as error:
    sys.exit("tegrastats: " + str(error))
"""


def write_tool(path: Path, socket_path: str) -> None:
    """Write the executable. Raises ValueError for an interpreter path that a shell string cannot hold."""
    if any(c in sys.executable for c in '"$`\\\n'):
        raise ValueError(f"{sys.executable}: the tegrastats script cannot name this interpreter")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPT.format(python=sys.executable, socket=socket_path), encoding="utf-8")
    path.chmod(0o755)
