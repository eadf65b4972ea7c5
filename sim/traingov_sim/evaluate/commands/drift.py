"""``traingov-sim evaluate drift``: is a table that no longer holds noticed, and mended?"""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console

from ..drift import PARTS, evaluate_drift
from ..report_drift import print_drift

FILE_WIDTH = 170


@click.command("drift")
@click.option("--quick", is_flag=True, help="Few hours, one board, three sources: for a first look and for tests.")
@click.option("--seeds", default=2, show_default=True, type=click.IntRange(1, 50), help="Runs of each scenario.")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only this part; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print every comparison as one JSON object.")
def command(quick: bool, seeds: int, parts: tuple[str, ...], as_json: bool) -> None:
    """Hold drift detection, probing, partial re-profiling and the whole governor against simulated drifts.

    Up to ten minutes on one core. False alarms, delays, points measured again, table error, regret, time lost.
    """
    errors = Console(stderr=True)
    try:
        result = evaluate_drift(parts or PARTS, seeds=seeds, quick=quick, say=lambda text: errors.print(f"… {text}"))
    except ValueError as error:
        print(f"traingov-sim evaluate drift: {error}", file=sys.stderr)
        sys.exit(2)
    if as_json:
        print(json.dumps(result))
    else:
        console = Console()
        print_drift(console if console.is_terminal else Console(width=FILE_WIDTH), result)
