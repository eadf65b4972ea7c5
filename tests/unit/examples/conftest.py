"""The examples as modules, and a job and a device that do what a test says."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from threadpoolctl import threadpool_limits

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def load_example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """An example as a module, as it would be when started from its folder."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As the scripts themselves train: the layers are small, and threads only get in each other's way."""
    with threadpool_limits(limits=1):
        yield


class ScriptedJob:
    """Stands for ``traingov_client.Job``: ``advice`` is {step: batch size}, ``phases`` {step: phase}."""

    def __init__(
        self,
        batch_sizes: list[int],
        advice: dict[int, int] | None = None,
        phases: dict[int, str] | None = None,
    ) -> None:
        self.batch_sizes = sorted(batch_sizes)
        self.batch_size = self.batch_sizes[-1]
        self.phase = "train"
        self.steps: list[int] = []
        self.lengths: list[float | None] = []
        self.rates: list[float] = []
        self.paused = False
        self._advice, self._phases = dict(advice or {}), dict(phases or {})

    def safe_point(self) -> bool:
        self.phase = self._phases.get(len(self.steps), self.phase)
        size = self._advice.pop(len(self.steps), self.batch_size)
        changed, self.batch_size = size != self.batch_size, size
        return changed

    def scale_lr(self, base_lr: float, reference_batch: int | None = None) -> float:
        self.rates.append(base_lr * math.sqrt(self.batch_size / (reference_batch or self.batch_sizes[-1])))
        return self.rates[-1]

    def step(self, n: int, seq_len_avg: float | None = None) -> None:
        assert not self.paused
        self.steps.append(n)
        self.lengths.append(seq_len_avg)

    def out_of_memory(self) -> bool:
        smaller = [b for b in self.batch_sizes if b < self.batch_size]
        self.batch_sizes.remove(self.batch_size)
        if smaller:
            self.batch_size = smaller[-1]
        return bool(smaller)

    @contextmanager
    def pause(self, reason="pause"):
        self.paused = True
        yield
        self.paused = False


class CountingDevice:
    """A device whose memory holds batches up to ``largest``."""

    def __init__(self, largest: int = 10**6) -> None:
        self.submitted: list[tuple[str, int]] = []
        self.in_flight = 0
        self._largest = largest

    def submit(self, workload: str, batch_size: int) -> None:
        if batch_size > self._largest:
            raise MemoryError
        self.submitted.append((workload, batch_size))
        self.in_flight += 1

    def synchronize(self) -> None:
        self.in_flight = 0


@pytest.fixture
def scripted_job() -> type[ScriptedJob]:
    return ScriptedJob


@pytest.fixture
def counting_device() -> type[CountingDevice]:
    return CountingDevice
