"""Runs `traingov` in the test's process, with stdout and stderr apart on every version of click."""

from __future__ import annotations

from click.testing import CliRunner, Result

from traingov.cli.main import main


def traingov(*arguments: str) -> Result:
    try:
        runner = CliRunner(mix_stderr=False)  # type: ignore[call-arg]  # click before 8.2 mixes them otherwise
    except TypeError:
        runner = CliRunner()
    return runner.invoke(main, list(arguments))
