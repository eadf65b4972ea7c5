"""Configuration, JSON and Python that a page shows are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pagetext import PAGES, Block, read

from command_line import traingov

BLOCKS = [block for path in PAGES for block in read(path).blocks]
LANGUAGES = {"sh", "console", "yaml", "json", "python", "diff", "text", ""}


def _of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def test_a_block_has_a_language_that_the_tests_know() -> None:
    unknown = [f"{block.where}: {block.language}" for block in BLOCKS if block.language not in LANGUAGES]
    assert not unknown, f"use one of {sorted(LANGUAGES)}: {unknown}"


@pytest.mark.parametrize("block", _of("yaml"), ids=lambda block: block.where)
def test_configuration_that_is_shown_passes_traingov_check(block: Block, tmp_path: Path) -> None:
    if block.body[0].startswith("# prometheus.yml"):
        pytest.skip("another program's configuration; tests/system runs Prometheus with ours")
    file = tmp_path / "traingov.yaml"
    file.write_text("\n".join(block.body) + "\n")
    done = traingov("check", str(file))
    assert done.exit_code == 0, f"{block.where}: {done.stderr}"


@pytest.mark.parametrize("block", _of("json"), ids=lambda block: block.where)
def test_json_that_is_shown_is_json(block: Block) -> None:
    json.loads("\n".join(block.body))


@pytest.mark.parametrize("block", _of("python"), ids=lambda block: block.where)
def test_python_that_is_shown_compiles(block: Block) -> None:
    compile("\n".join(block.body).replace(", *, ...)", ")"), block.where, "exec")
