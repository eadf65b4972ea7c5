"""A job that does what a test says, and what registers it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ScriptedJob:
    """Stands for a registered job: ``advice`` is {safe point's number: batch size}."""

    def __init__(self, workload: str, batch_sizes: list[int], batch_size: int | None = None, **fields: Any) -> None:
        self.workload, self.fields = workload, fields
        self.batch_sizes = sorted(batch_sizes)
        self.batch_size = batch_size or self.batch_sizes[-1]
        self.advice: dict[int, int] = {}
        self.steps: list[tuple[int, float | None, int]] = []
        self.batch_of_step: list[int] = []
        self.failed: list[int] = []
        self.pauses: list[str] = []
        self.safe_points = 0
        self.paused = 0
        self.ended = False

    def safe_point(self) -> bool:
        self.safe_points += 1
        before, self.batch_size = self.batch_size, self.advice.get(self.safe_points, self.batch_size)
        return before != self.batch_size

    def step(self, n: int | None = None, seq_len_avg: float | None = None, micro_batches: int = 1) -> None:
        assert not self.paused, "no step is made in a pause"
        assert not self.ended
        self.steps.append((n if n is not None else self.batch_size * micro_batches, seq_len_avg, micro_batches))
        self.batch_of_step.append(self.batch_size)

    def out_of_memory(self) -> bool:
        self.failed.append(self.batch_size)
        smaller = [size for size in self.batch_sizes if size < self.batch_size]
        self.batch_sizes.remove(self.batch_size)
        if smaller:
            self.batch_size = smaller[-1]
        return bool(smaller)

    @contextmanager
    def pause(self, reason: str = "pause") -> Iterator[None]:
        self.pauses.append(reason)
        self.paused += 1
        yield
        self.paused -= 1

    def end(self) -> None:
        self.ended = True


class Registrar:
    """Takes the place of ``register``; ``advice`` is given to the next job, ``jobs`` are those made."""

    def __init__(self) -> None:
        self.jobs: list[ScriptedJob] = []
        self.advice: dict[int, int] = {}

    def __call__(self, *given: Any, **fields: Any) -> ScriptedJob:
        job = ScriptedJob(*given, **fields)
        job.advice = self.advice
        self.jobs.append(job)
        return job

    @property
    def job(self) -> ScriptedJob:
        return self.jobs[-1]
