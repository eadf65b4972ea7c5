"""A virtual board, the real service as a process, and training loops in threads of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import traingov_client
from traingov_sim.demo.lab import Board, Lab, Service
from traingov_sim.gpu import Channel, EmulatedGpu, OutOfMemory

SCRIPT = Path(sys.executable).with_name("traingov")
FAST = {"settle_s": 0.9, "min_window_s": 1.2}  # the virtual Nano's clock switches in 0.65 s, its sensor lags 0.06 s


def wait_for(what: Callable[[], Any], seconds: float, text: str) -> Any:
    """Wait until ``what`` is true; fail with ``text`` after ``seconds``."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = what()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s: {text}")


class Trainer(threading.Thread):
    """Submits steps to the emulated GPU as a governed job until stopped. Keeps (time, batch) of every step."""

    def __init__(self, service: Service, batches: list[int], workload: str = "digits-mlp", **more: Any) -> None:
        super().__init__(daemon=True)
        self.service, self.batches, self.workload, self.more = service, batches, workload, more
        self.stopping = threading.Event()
        self.paused = threading.Event()
        self.steps: list[tuple[float, int]] = []
        self.failed_batches: list[int] = []
        self.job: traingov_client.Job | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with EmulatedGpu(self.service.board.gpu) as gpu, traingov_client.register(
                workload=self.workload, batch_sizes=self.batches, socket=str(self.service.socket),
                sync=gpu.synchronize, **self.more,
            ) as job:  # fmt: skip
                self.job = job
                while not self.stopping.is_set():
                    if self.paused.is_set():
                        gpu.synchronize()
                        with job.pause("evaluation"):
                            while self.paused.is_set():
                                time.sleep(0.01)
                    job.safe_point()
                    try:
                        gpu.submit(self.workload, job.batch_size)
                    except OutOfMemory:
                        self.failed_batches.append(job.batch_size)
                        assert job.out_of_memory()
                        continue
                    job.step()
                    self.steps.append((time.monotonic(), job.batch_size))
        except BaseException as error:  # the test's thread shows it
            self.error = error

    def stop(self) -> None:
        self.stopping.set()
        self.join(20)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error

    @property
    def batch(self) -> int:
        return self.steps[-1][1]


@contextmanager
def training(service: Service, batches: list[int], **more: Any) -> Iterator[Trainer]:
    trainer = Trainer(service, batches, **more)
    trainer.start()
    try:
        wait_for(lambda: trainer.steps or trainer.error, 10, "the job makes a first step")
        yield trainer
    finally:
        trainer.stop()


def state_of(service: Service) -> str:
    return str(service.ask("status")["state"])


def board_set(board: Board, **what: Any) -> None:
    channel = Channel(board.gpu, timeout_s=5)
    try:
        channel.ask({"op": "set", **what})
    finally:
        channel.close()


def kill(service: Service) -> None:
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait(10)


def traingov(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=60)


__all__ = [
    "FAST",
    "SCRIPT",
    "Board",
    "Lab",
    "Service",
    "Trainer",
    "board_set",
    "kill",
    "state_of",
    "traingov",
    "training",
    "wait_for",
]
