"""What the service must not load, for the sake of its memory (DESIGN 8: 45 MB). A process of its own looks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from traingov.schema_check import check, check_apart

HEAVY = (
    "ssl",
    "_hashlib",
    "jsonschema",
    "prometheus_client",
    "http.client",
    "email",
    "sqlite3",
    "numpy.polynomial",
    "click",
    "rich",
)


def loaded(statement: str) -> set[str]:
    code = f"import sys; {statement}; import json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_service_with_its_configuration_read_and_a_page_written_has_loaded_nothing_heavy() -> None:
    modules = loaded(
        "import traingov.service; from traingov.config import load_config; "
        "from traingov.schema_check import check_apart; load_config([], check_apart); "
        "from traingov.metrics.process import read_process; from traingov.metrics.text import Readings; "
        "r = Readings(); read_process(r); r.page(); import numpy.random"
    )
    assert "traingov.loop" in modules
    of_numpy = {name for name in loaded("import numpy") if name.startswith("numpy.")}  # NumPy 1 loads all of itself
    assert not modules & (set(HEAVY) - of_numpy)


def test_openssl_is_only_hidden_from_what_was_loaded_before() -> None:
    assert "ssl" in loaded("import traingov.lean, ssl; assert ssl.create_default_context()")
    loaded("import traingov.lean; from traingov.metrics.access import hash_password; hash_password('x', iterations=1)")


@pytest.mark.parametrize("documents", [[{}, {"cap": 3}, {"nobody": 1}], [{"policy": "joint"}]])
def test_a_check_in_another_process_finds_what_one_in_this_process_finds(documents: list[object]) -> None:
    from traingov.config import _SCHEMAS  # noqa: PLC0415

    schema = str(_SCHEMAS / "config.json")
    assert check_apart(schema, documents) == check(schema, documents)


def test_without_a_child_process_the_check_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from traingov.config import _SCHEMAS  # noqa: PLC0415

    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    (problem,) = check_apart(str(_SCHEMAS / "config.json"), [{"polcy": "joint"}])
    assert problem is not None
    assert problem.unknown == "polcy"
