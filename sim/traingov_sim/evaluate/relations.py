"""``python -m traingov_sim.evaluate.relations``: what few proxy runs cost the joint choice, on measured trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .synthetic_trainings import synthetic
from .zeus import evaluate_zeus

_COLUMNS = ("mean_loss", "p95_loss", "worst_loss", "worst_mean_over_draws", "share_within_2_percent")


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data/zeus"), show_default=True)
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True, help="Draws of recorded runs.")
@click.option("--synthetic", "made_up", type=click.IntRange(0), default=0, help="So many made-up trainings instead.")
@click.option("--json", "as_json", is_flag=True, help="Print every row.")
def command(data: Path, seeds: int, made_up: int, as_json: bool) -> None:
    """Time lost by choosing with r from few runs, against the best point with the mean of all recorded runs."""
    rows = evaluate_zeus(data, seeds, synthetic(made_up, seed=1) if made_up else None)
    if as_json:
        click.echo(json.dumps(rows, indent=1, allow_nan=False))
        return
    click.echo("| method | runs per size | mean runs | mean | 95 % | worst | worst case, mean over draws | ≤ 2 % |")
    click.echo("|---|---|---|---|---|---|---|---|")
    for row in rows:
        click.echo(_line(row))


def _line(row: dict[str, Any]) -> str:
    if "absent" in row:
        return f"no data: {row['absent']}"
    name = ", ".join(str(row[key]) for key in ("method", "curves") if key in row)
    if row.get("draws") == "each run at most once":
        name += ", each recorded run at most once"
    runs = f"{row['mean_runs']:.1f}" if "mean_runs" in row else ""
    shares = " | ".join(_share(row, key) for key in _COLUMNS)
    return f"| {name} | {row.get('runs_per_size', '')} | {runs} | {shares} |"


def _share(row: dict[str, Any], key: str) -> str:
    if key not in row:
        return ""
    return "misses" if row[key] is None else f"{row[key]:.2%}"


if __name__ == "__main__":
    command()
