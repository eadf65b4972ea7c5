"""``traingov-sim scenarios``: record one run of each kind of trouble from the twin."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .scenarios.recorded import SCENARIOS, record


@click.command("scenarios")
@click.option(
    "--record", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="Where to write them."
)
@click.option("--only", "names", multiple=True, type=click.Choice(sorted(SCENARIOS)), help="One; may be repeated.")
def command(folder: Path, names: tuple[str, ...]) -> None:
    """Record caps that change, drifts, over-current, two jobs and a pause, for `traingov replay`. Simulated."""
    try:
        record(folder, names or tuple(SCENARIOS), click.echo)
    except OSError as error:
        print(f"traingov-sim scenarios: {error}", file=sys.stderr)
        sys.exit(1)
