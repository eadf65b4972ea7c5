"""Tests with the real libraries. Without them (outside .venvs/frameworks) they skip with that reason.

With TRAINGOV_NO_SKIP=1 (CI) a skip is a failure.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

from scripted import Registrar  # noqa: E402

MISSING = [name for name in ("torch", "transformers", "lightning") if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        skip = pytest.mark.skip(reason=f"no {', '.join(MISSING)} here: pip install -r tests/frameworks.txt")
        for item in items:
            if HERE in Path(item.path).parents:
                item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if os.environ.get("TRAINGOV_NO_SKIP") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longrepr}"


@pytest.fixture(autouse=True)
def one_thread() -> None:
    if not MISSING:
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)
        torch.manual_seed(0)


@pytest.fixture
def registrar(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Registrar:
    """One in the module that the test's file is named after: test_torch_loop.py, test_huggingface.py, ..."""
    registrar = Registrar()
    name = Path(request.path).stem.removeprefix("test_")
    monkeypatch.setattr(f"traingov_client.frameworks.{name}.register", registrar)
    return registrar
