"""Ctrl-C, also pressed again and again, and a killed demonstration leave no process and no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from rig import SCRIPT, wait_for


def ours(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line and process.pid != os.getpid():
            found.append(line)
    return found


@pytest.mark.parametrize("presses", [1, 4])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, presses: int, number: signal.Signals) -> None:
    demo = subprocess.Popen(
        [SCRIPT.with_name("traingov-sim"), "demo", "--json"], env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: len(ours(tmp_path)) >= 8, 30, "boards and services run")
    for _ in range(presses):
        demo.send_signal(number)
        time.sleep(0.3)
    _, said = demo.communicate(timeout=40)
    assert demo.returncode == 130, said
    assert "nothing is left" in said
    assert list(tmp_path.iterdir()) == []
    assert ours(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG is Linux's")
def test_a_killed_demo_takes_its_processes_with_it(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [SCRIPT.with_name("traingov-sim"), "demo", "--json"], env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: len(ours(tmp_path)) >= 8, 30, "boards and services run")
    demo.kill()
    demo.wait()
    wait_for(lambda: ours(tmp_path) == [], 20, "boards and services end with it")
