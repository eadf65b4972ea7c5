"""``traingov-proxy``: relation vectors by training a recipe, and how far they carry. For a server."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

# name → module with the command, loaded when it is called.
_COMMANDS = {"estimate": "cli_estimate", "sensitivity": "cli_sensitivity"}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: Any = import_module(f".{_COMMANDS[cmd_name]}", __package__).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Lazy, no_args_is_help=False)
def cli() -> None:
    """Estimate samples to accuracy per batch size by real training on proxy data."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: errors are one line; status 2 for wrong input, 1 for failure."""
    try:
        cli.main(args=arguments, prog_name="traingov-proxy", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        click.echo("traingov-proxy: interrupted; nothing was written but the runs of a --resume file", err=True)
        sys.exit(1)
    except click.ClickException as error:
        click.echo(f"traingov-proxy: {' '.join(error.format_message().split())}", err=True)
        sys.exit(2 if isinstance(error, click.UsageError) else 1)
