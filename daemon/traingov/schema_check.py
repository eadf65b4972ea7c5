"""Checks documents against a JSON Schema, here or in a process of its own that ends right away.

The service checks its configuration in a child: jsonschema and what it brings would stay in memory for as long as the
service runs (4 MB of the 45 it may take), for a check of some milliseconds.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CHILD_S = 60.0


@dataclass(frozen=True)
class Problem:
    """What is wrong: the keys that lead there, the message, and the key itself where it is one that nobody knows."""

    keys: list[str]
    message: str
    unknown: str | None = None


Check = Callable[[str, Sequence[Any]], list[Problem | None]]


def check(schema_file: str, documents: Sequence[Any]) -> list[Problem | None]:
    """The first problem, by place, of each document; None where there is none."""
    import jsonschema  # noqa: PLC0415  (see above)

    validator = jsonschema.Draft7Validator(json.loads(Path(schema_file).read_text(encoding="utf-8")))
    found: list[Problem | None] = []
    for document in documents:
        errors = sorted(validator.iter_errors(document), key=lambda e: [str(p) for p in e.path])
        worst = errors[0] if errors else None
        keys = [] if worst is None else [str(key) for key in worst.path]
        found.append(None if worst is None else Problem(keys, worst.message, _unknown_key(worst)))
    return found


def check_apart(schema_file: str, documents: Sequence[Any]) -> list[Problem | None]:
    """As ``check``, in a child process; in this one where no child can be had."""
    try:
        done = subprocess.run(
            [sys.executable, __file__],
            input=pickle.dumps((schema_file, list(documents))),
            capture_output=True,
            check=True,
            timeout=_CHILD_S,
        )
        return [None if row is None else Problem(*row) for row in json.loads(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, pickle.PickleError):
        return check(schema_file, documents)


def _unknown_key(error: Any) -> str | None:
    if error.validator != "additionalProperties":
        return None
    known = error.schema.get("properties", {})
    return next((str(key) for key in error.instance if key not in known), None)


def _child() -> None:
    rows = check(*pickle.load(sys.stdin.buffer))
    print(json.dumps([None if p is None else [p.keys, p.message, p.unknown] for p in rows]))


if __name__ == "__main__":
    del sys.path[0]  # this folder: its modules have names of the standard library's and others' packages
    _child()
