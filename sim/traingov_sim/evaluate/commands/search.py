"""``traingov-sim evaluate search``: the energy search on measured curves."""

from __future__ import annotations

import json

import click

from ..search import evaluate_search, table


@click.command("search")
@click.option("--trials", type=click.IntRange(1), default=60, show_default=True, help="Trials of each curve.")
@click.option("--json", "as_json", is_flag=True, help="The rows, for programs.")
def command(trials: int, as_json: bool) -> None:
    """The energy search on measured curves beside other ways to search: gaps, probes, what a job pays (minutes)."""
    rows = evaluate_search(trials)
    click.echo(json.dumps(rows, indent=1) if as_json else table(rows))
