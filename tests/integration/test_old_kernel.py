"""The service on a kernel of JetPack 4 (4.9), which has no pidfd and tells no groups of a peer."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Board, Lab, wait_for

from traingov_sim.demo.lab import _listens

HERE = Path(__file__).parent
OLD = [sys.executable, str(HERE / "old_kernel.py")]
NANO_HZ, PINNED_HZ = (76_800_000, 921_600_000), 460_800_000

# A job whose data loader, a forked child, keeps the socket open: its end cannot be seen there.
JOB = """
import os, sys, time, traingov_client
job = traingov_client.register(workload="x", batch_sizes=[8], socket=sys.argv[1])
if os.fork() == 0:
    time.sleep(60)
print(job.connected, flush=True)
while True:
    job.safe_point(); time.sleep(0.02); job.step()
"""

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the filter knows the calls of x86-64 and arm64"
)


@pytest.fixture
def governed(tmp_path: Path) -> Iterator[tuple[Board, Path]]:
    """A virtual Nano and a service that lives on the old kernel."""
    with Lab() as lab:
        board, path = lab.board("nano", "n", 1), tmp_path / "s"
        config = {
            "root": board.root, "tegrastats": board.tegrastats, "socket": str(path),
            "state_dir": str(tmp_path / "state"),
            "metrics": {"listen": None}, "policy": "fixed", "fixed": {"gpu_frequency_hz": PINNED_HZ},
        }  # fmt: skip
        (tmp_path / "c.yaml").write_text(json.dumps(config))
        service = subprocess.Popen(
            [*OLD, str(Path(sys.executable).with_name("traingovd")), "--config", str(tmp_path / "c.yaml")]
        )
        try:
            wait_for(lambda: _listens(path), 20, "the service listens")
            yield board, path
        finally:
            service.terminate()
            assert service.wait(20) == 0


def test_the_filter_answers_as_an_old_kernel() -> None:
    code = """
import os, socket
a, b = socket.socketpair()
def says(call):
    try: return call()
    except OSError as error: return error.errno
print(says(lambda: os.pidfd_open(os.getpid())), says(lambda: a.getsockopt(1, 77)),
      says(lambda: a.getsockopt(1, 59, 64)), len(a.getsockopt(1, 17, 12)))
"""
    done = subprocess.run([*OLD, sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["38", "92", "92", "12"]


def test_the_end_of_a_job_is_seen_by_its_start_time_although_a_child_keeps_its_socket_open(
    governed: tuple[Board, Path],
) -> None:
    board, path = governed
    job = subprocess.Popen(
        [sys.executable, "-c", JOB, str(path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert job.stdout is not None
        assert job.stdout.readline() == "True\n"
        wait_for(lambda: board.bounds_hz() == (PINNED_HZ, PINNED_HZ), 10, "the clock is pinned")
        os.kill(job.pid, signal.SIGKILL)
        job.wait(5)
        killed_s = time.monotonic()
        wait_for(lambda: board.bounds_hz() == NANO_HZ, 10, "the clock is given back")
        assert time.monotonic() - killed_s < 10
    finally:
        os.killpg(job.pid, signal.SIGKILL)
