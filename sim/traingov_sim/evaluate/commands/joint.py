"""``traingov-sim evaluate joint``: the joint policy against the published table, the true best and real training."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from ..joint import MEMBERS, PARTS, evaluate_joint
from ..report_joint import print_report

FILE_WIDTH = 150  # of tables that go to a file or a pipe


@click.command("joint")
@click.option("--quick", is_flag=True, help="One surface of each family in the twin: for a first look and for tests.")
@click.option("--members", default=MEMBERS, show_default=True, type=click.IntRange(1, 160), help="In the twin.")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only this part; may be repeated.")
@click.option(
    "--data", default=Path("../shared/data"), type=click.Path(path_type=Path), help="Folder of public measurements."
)
@click.option("--json", "as_json", is_flag=True, help="Print every comparison as one JSON object.")
def command(quick: bool, members: int, parts: tuple[str, ...], data: Path, as_json: bool) -> None:
    """Hold the joint choice against the published table, the true best, and real training.

    Times and powers are simulated. Some minutes on one core; each comparison says whether its figure was fitted
    ("calibrated"), comes out ("predicted") or rests on measurements ("measured-data").
    """
    errors = Console(stderr=True)
    try:
        result = evaluate_joint(
            parts or PARTS, members=members, quick=quick, data=data, say=lambda text: errors.print(f"… {text}")
        )
    except (ValueError, KeyError, OSError) as error:
        print(f"traingov-sim evaluate joint: {error.args[0] if error.args else error}", file=sys.stderr)
        sys.exit(1)
    if as_json:
        print(json.dumps(result))
    else:
        console = Console()
        print_report(console if console.is_terminal else Console(width=FILE_WIDTH), result)
