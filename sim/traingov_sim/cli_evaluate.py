"""``traingov-sim evaluate``: a group whose subcommands are the modules of ``traingov_sim.evaluate.commands``."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import click

from .evaluate import commands


class CommandsFolder(click.Group):
    """A group whose commands are modules of a folder, imported when called: ``module.command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The modules there are."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command called ``cmd_name``."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module: Any = importlib.import_module(f"{commands.__name__}.{cmd_name}")
        found: Any = module.command
        assert isinstance(found, click.Command)
        return found


@click.group("evaluate", cls=CommandsFolder)
def command() -> None:
    """Hold the governor against published and measured figures. Boards are simulated."""
