"""``traingov-sim evaluate cap``: power against changing caps, and what a clairvoyant would have trained."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console

from ..cap import evaluate_cap
from ..report_cap import print_cap

FILE_WIDTH = 170


@click.command("cap")
@click.option("--quick", is_flag=True, help="One board, a short day: for a first look and for tests.")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1, 50), help="Runs of each short series.")
@click.option("--board", "boards", multiple=True, help="Only this board; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print every comparison as one JSON object.")
def command(quick: bool, seeds: int, boards: tuple[str, ...], as_json: bool) -> None:
    """Put the governor under caps that step, ramp, walk, flicker and follow the sun, on every virtual board.

    Simulated, in the twin; up to ten minutes on one core. Share of time above the cap, overshoot, settling, the
    guard's latency, and training speed against a clairvoyant choice.
    """
    errors = Console(stderr=True)
    try:
        result = evaluate_cap(seeds, boards=boards or None, quick=quick, say=lambda text: errors.print(f"… {text}"))
    except ValueError as error:
        print(f"traingov-sim evaluate cap: {error}", file=sys.stderr)
        sys.exit(2)
    if as_json:
        print(json.dumps(result))
    else:
        console = Console()
        print_cap(console if console.is_terminal else Console(width=FILE_WIDTH), result)
