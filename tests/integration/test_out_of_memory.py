"""The service can get no more memory from the kernel: the job trains on, and the clock comes back."""

from __future__ import annotations

import resource
import socket
import time
from pathlib import Path

from rig import Lab, state_of, traingov, training, wait_for


def _virtual_bytes(pid: int) -> int:
    (line,) = [row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmSize")]
    return int(line.split()[1]) * 1024


def test_a_service_that_gets_no_more_memory_goes_on_or_ends_with_an_error_and_the_clock_comes_back(lab: Lab) -> None:
    board = lab.board("nano", "a", 1)
    original = board.bounds_hz()
    clock_hz = 460_800_000
    service = lab.service(board, "a", {"policy": "fixed", "fixed": {"gpu_frequency_hz": clock_hz}})
    process = service.process
    with training(service, [32]) as trainer:
        wait_for(lambda: board.bounds_hz() == (clock_hz, clock_hz), 10, "the clock is pinned")
        held = _virtual_bytes(process.pid)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (held, resource.RLIM_INFINITY))
        for _ in range(40):  # each wants buffers, and threads of the service may start
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(0.2)
                try:
                    peer.connect(str(service.socket))
                    peer.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n' + b" " * 60_000)
                    peer.recv(65536)
                except OSError:
                    pass
        done = len(trainer.steps)
        time.sleep(1.0)
        assert len(trainer.steps) > done, "the job trains on"
        if process.poll() is None:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            wait_for(lambda: state_of(service) == "holding", 10, "the job is governed again")
            wait_for(lambda: board.bounds_hz() == (clock_hz, clock_hz), 10, "at its clock")
        else:
            assert process.returncode != 0
            traingov("restore", "--root", str(board.root), "--state-dir", str(service.state_dir))
    said = service.log.read_text()
    assert said.count("there is no memory for it: raise MemoryMax= of the service") <= 1
    assert "Traceback" not in said
    wait_for(lambda: board.bounds_hz() == original, 5, "the clock is given back")
