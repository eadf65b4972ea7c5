"""The built wheels, not only the editable install: data files, schemas and entry points are in them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from traingov_sim.board.boardspec import board_names

ROOT = Path(__file__).parents[2]
PARTS = (".", "client", "proxy", "sim")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheels")
    for part in PARTS:
        subprocess.run(
            [sys.executable, "-m", "build", "-q", "--wheel", "--no-isolation", "--outdir", out, ROOT / part],
            check=True, capture_output=True,
        )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def site(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which only the unpacked wheels, not the checkout, hold our packages."""
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", target,
         *wheels.glob("*.whl")],
        check=True, capture_output=True,
    )  # fmt: skip
    # -S would also hide NumPy; instead the path comes first, and each test checks where a package was loaded from.
    return {**os.environ, "PYTHONPATH": str(target), "SITE": str(target)}


def python(site: dict[str, str], code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], env=site, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_there_are_four_wheels_and_none_holds_tests_or_caches(wheels: Path) -> None:
    names = sorted(p.name.split("-")[0] for p in wheels.glob("*.whl"))
    assert names == ["traingov", "traingov_client", "traingov_proxy", "traingov_sim"]
    for wheel in wheels.glob("*.whl"):
        held = zipfile.ZipFile(wheel).namelist()
        assert not [n for n in held if "__pycache__" in n or "/tests/" in n or n.startswith("tests/")]


def test_the_service_finds_its_defaults_boards_trees_and_schemas_in_the_wheel(site: dict[str, str]) -> None:
    code = (
        "import traingov, os; assert traingov.__file__.startswith(os.environ['SITE'])\n"
        "from traingov.config import load_config; from traingov.data import data_dir\n"
        "from traingov.telemetry.rails import RailTable\n"
        "t = RailTable.load(data_dir() / 'boards'); c = load_config([]).settings(t.rule_for((), 'nano'))\n"
        "print(c.tree.name, len(t.rules) > 9, data_dir().is_relative_to(os.environ['SITE']))"
    )
    assert python(site, code) == "algorithm-1 True True"


def test_the_command_line_runs_from_the_wheel(site: dict[str, str]) -> None:
    code = (
        "import sys; sys.argv = ['traingov', 'relation', 'show', 'digits-mlp']\n"
        "from traingov.cli.entry import main; main()"
    )
    assert "digits 0-4" in python(site, code)


def test_the_virtual_board_and_the_examples_are_in_the_wheel(site: dict[str, str]) -> None:
    code = (
        "import os, traingov_sim; from traingov_sim import surfaces\n"
        "from traingov_sim.board.boardspec import board_names\n"
        "from traingov_sim.demo.lab import examples_dir\n"
        "assert examples_dir().is_relative_to(os.environ['SITE'])\n"
        "print(*board_names()); print(*[b for b in board_names() if not surfaces.names(b)], 'all have surfaces')"
    )
    assert python(site, code).split("\n") == [" ".join(board_names()), "all have surfaces"]


def test_the_recorded_boards_read_the_same_from_the_wheel(site: dict[str, str]) -> None:
    folder = Path(__file__).parents[1] / "golden/boards/agx-xavier"
    code = (
        f"import sys; sys.argv = ['traingov', 'board', 'read', {str(folder)!r}]\n"
        "from traingov.cli.entry import main; main()"
    )
    assert "input 13.2719 W (GPU 5.95046 W" in python(site, code)


def test_the_client_wheel_needs_nothing(wheels: Path) -> None:
    (wheel,) = wheels.glob("traingov_client-*.whl")
    with zipfile.ZipFile(wheel) as held:
        (name,) = [n for n in held.namelist() if n.endswith("METADATA")]
        metadata = held.read(name).decode()
    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert needs == []
    assert "Requires-Python: >=3.6" in metadata
