"""The demonstration's last line: where the report of its run is, or the command that makes one."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from traingov.cli.main import main as traingov
from traingov_sim.cli import main as traingov_sim
from traingov_sim.cli_demo import _about_report

PROGRAMS: dict[str, click.Group] = {"traingov": traingov, "traingov-sim": traingov_sim}


@pytest.mark.parametrize(
    ("report", "keep", "record", "end"),
    [
        (Path("r.html"), Path("k"), Path("d"), "for a browser: r.html"),
        (None, Path("k"), Path("d"), "traingov report --state-dir k/joint/state --html report.html"),
        (None, None, Path("d"), "traingov report --recording d/joint.jsonl --html report.html"),
        (None, None, None, "traingov-sim demo --report build/demo-report.html"),
    ],
)
def test_the_last_line_names_the_page_or_a_command_that_exists(
    report: Path | None, keep: Path | None, record: Path | None, end: str
) -> None:
    assert _about_report(report, keep, record).endswith(end)
    program, *words = end.split()
    if program in PROGRAMS:
        command = PROGRAMS[program].get_command(click.Context(PROGRAMS[program]), words[0])
        assert command is not None
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
