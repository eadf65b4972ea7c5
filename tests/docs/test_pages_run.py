"""Every command of README and docs is run, page by page, in a sandbox; what cannot be run says why and is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import OURS, problems
from pagetext import PAGES, ROOT, Block, read
from sandbox import Sandbox

COMMANDS = ("sh", "console")
ALL = {path: read(path) for path in PAGES}
IDS = [str(path.relative_to(ROOT)) for path in PAGES]


def _blocks(path: Path) -> list[Block]:
    return [block for block in ALL[path].blocks if block.language in COMMANDS or block.setups or block.options]


def _runs(path: Path) -> bool:
    return any(block.setups or (block.language in COMMANDS and block.not_run is None) for block in _blocks(path))


RUN = [path for path in PAGES if _runs(path)]


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN, ids=[str(path.relative_to(ROOT)) for path in RUN])
def test_the_commands_of_a_page_do_what_it_says(path: Path) -> None:
    with Sandbox() as sandbox:
        for block in _blocks(path):
            sandbox.run(block)


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_programs_options_and_files_that_a_page_names_exist(path: Path) -> None:
    page = ALL[path]
    found = [
        f"{block.where}: {problem}"
        for block in page.blocks
        if block.language in COMMANDS
        for command in block.commands
        for problem in problems(command)
    ]
    for line, code in page.inline:
        if code.split()[0] in OURS and len(code.split()) > 1:
            found += [f"{path.name}:{line}: {problem}" for problem in problems(code)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_a_command_stands_in_a_fenced_block_so_that_it_is_run(path: Path) -> None:
    missed = [
        f"{path.name}:{line}: {text}"
        for line, text in ALL[path].indented
        if text.split()[0].lstrip("$ ") in (*OURS, "sudo", "$", "curl", "pip", "journalctl", "git")
    ]
    assert not missed, "fence these as ```sh or ```console:\n" + "\n".join(missed)


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_what_is_not_run_says_why(path: Path) -> None:
    for block in ALL[path].blocks:
        if block.not_run is not None:
            assert len(block.not_run) > 10, f"{block.where}: say why it is not run"


def test_what_is_not_run_is_a_known_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed with -s: every block that is not run, and the reason."""
    left_out = [f"{block.where}: {block.not_run}" for page in ALL.values() for block in page.blocks if block.not_run]
    print("\n".join(left_out))
    run = sum(len(block.commands) for path in RUN for block in _blocks(path) if block.not_run is None)
    assert run >= 40, f"only {run} command blocks are run"
