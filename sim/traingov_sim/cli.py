"""``traingov-sim``: the command line of the simulation. Commands load when they are called."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import click

# Command → module that holds a click command (or group) of that name, loaded only when it is needed.
COMMANDS = {
    "board": "traingov_sim.cli_board",
    "demo": "traingov_sim.cli_demo",
    "evaluate": "traingov_sim.cli_evaluate",
    "scenarios": "traingov_sim.cli_scenarios",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when called: ``module.command``. Absent modules are not listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands there are."""
        return sorted(name for name, module in COMMANDS.items() if importlib.util.find_spec(module) is not None)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command called ``cmd_name``."""
        module = COMMANDS.get(cmd_name)
        if module is None or importlib.util.find_spec(module) is None:
            return None
        command: Any = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="traingov-sim")
def main() -> None:
    """Virtual Jetson boards for traingov. Every figure is simulated, none is measured on a board."""
