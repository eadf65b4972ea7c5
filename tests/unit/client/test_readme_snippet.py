"""The training loop that the README shows is run as it stands, and follows advice as it should."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any

import pytest

import traingov_client

ROOT = Path(__file__).parents[3]


def test_the_readmes_training_loop_trains_with_the_advised_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    trained: list[int] = []
    reported: list[int] = []

    class Job:
        batch_size = 128
        advice = iter([False, False, True, False, True])

        def __enter__(self) -> Job:
            return self

        def __exit__(self, *exc: object) -> None:
            pass

        def scale_lr(self, base: float) -> float:
            return base * (self.batch_size / 128) ** 0.5

        def step(self, n: int) -> None:
            reported.append(n)

        def safe_point(self) -> bool:
            changed = next(self.advice, False)
            if changed:
                self.batch_size //= 4
            return changed

    asked: dict[str, Any] = {}

    def register(**fields: Any) -> Job:
        asked.update(fields)
        return Job()

    monkeypatch.setattr(traingov_client, "register", register)
    names: dict[str, Any] = {
        "torch": types.SimpleNamespace(cuda=types.SimpleNamespace(synchronize=lambda: None)),
        "done": lambda: len(trained) >= 12,
        "make_loader": lambda b: [([0] * b, [0] * b)] * 4,
        "train_one_step": lambda inputs, labels, lr: trained.append(len(inputs)),
    }
    exec(compile(code, "README.md", "exec"), names)
    assert trained[:3] == [128, 128, 128]
    assert trained[3:5] == [32, 32]
    assert set(trained[5:]) == {8}
    assert reported == trained
    assert set(asked) == {"workload", "batch_sizes", "sync"}
