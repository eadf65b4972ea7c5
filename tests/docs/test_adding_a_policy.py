"""The page "adding a policy" is carried out on a copy of the code, and the example's own test is run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pagetext import DOCS, ROOT, read

PARTS = ("policies", "daemon", "etc")


def _apply(diff: tuple[str, ...], folder: Path) -> None:
    """Carry a diff out by its text alone: each hunk's old lines have to stand exactly once in their file."""
    name, hunks = "", []
    for line in diff:
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            hunks.append((name, [], []))
        elif not line.startswith("--- "):
            _, old, new = hunks[-1]
            old += [line[1:]] * (line[:1] in ("-", " "))
            new += [line[1:]] * (line[:1] in ("+", " "))
    for name, old, new in hunks:
        text = (folder / name).read_text()
        before, after = ("\n" + "\n".join(lines) + "\n" for lines in (old, new))
        assert text.count(before) == 1, f"{name}: stands {text.count(before)} times there, not once:{before}"
        (folder / name).write_text(text.replace(before, after))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code with the page's changes."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for block in read(DOCS / "adding-a-policy.md").blocks:
        if block.language == "diff":
            _apply(block.body, folder)
        elif block.file is not None:
            file = folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(block.body) + "\n")
    return folder


def test_the_pages_changes_make_a_policy_that_passes_its_test(copy: Path) -> None:
    done = _run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/policies/test_cool.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_command_line_and_the_socket_know_its_name(copy: Path) -> None:
    done = _run(copy, "-c", "from traingov.cli.main import main; main(['policy', 'set', '--help'])")
    assert "cool" in done.stdout
    done = _run(copy, "-c", "from traingov.sessions.messages import _POLICY; print(_POLICY)")
    assert "cool" in done.stdout


def _run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'policies'}:{copy / 'daemon'}"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
