"""`traingov`: commands are loaded when they are called, so that a small one starts fast."""

from __future__ import annotations

from importlib import import_module

import click

# name → (module, object)
_COMMANDS = {
    "board": ("board", "group"),
    "cap": ("cap", "group"),
    "check": ("check", "command"),
    "completion": ("completion", "command"),
    "doctor": ("doctor", "command"),
    "explain": ("explain", "command"),
    "history": ("history", "command"),
    "jobs": ("remote", "jobs"),
    "lut": ("lut", "group"),
    "metrics": ("metrics", "group"),
    "policy": ("remote", "policy"),
    "profile": ("profile", "command"),
    "relation": ("relation", "group"),
    "replay": ("replay", "command"),
    "report": ("report", "command"),
    "select": ("select", "command"),
    "service": ("service", "group"),
    "status": ("status", "command"),
    "tegrastats": ("tegrastats", "group"),
    "tree": ("tree", "group"),
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*_COMMANDS, "restore"])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == "restore":  # entry.py carries it out before this module is ever imported
            return click.Command("restore", help="Give the GPU clock back after a crash.")
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name]
        command = getattr(import_module(f".{module}", __package__), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="traingov", prog_name="traingov")
def main() -> None:
    """Governor for neural-network training on NVIDIA Jetson."""
