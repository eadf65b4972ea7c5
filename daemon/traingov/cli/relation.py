"""`traingov relation`: relation vectors that this machine has."""

from __future__ import annotations

from pathlib import Path

import click

from ..data import data_dir
from ..store import load_relations
from .errors import WrongInput, print_json


@click.group("relation")
def group() -> None:
    """Relation vectors: relative samples to accuracy per batch size."""


@group.command("show")
@click.argument("workload")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), default=Path("/var/lib/traingov"), show_default=True,
    help="Where the service keeps its own.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the file's content.")
def show(workload: str, state_dir: Path, as_json: bool) -> None:
    """The vector that the service uses for WORKLOAD."""
    known = load_relations((state_dir / "relations", data_dir() / "relations"))
    if workload not in known:
        raise WrongInput(f"no relation vector for {workload!r}; there are: {', '.join(sorted(known)) or 'none'}")
    relation = known[workload]
    if as_json:
        print_json(relation.to_json())
        return
    click.echo(f"{workload}: {relation.dataset}, target {relation.target} ({relation.origin or 'origin not stated'})")
    for batch, r in zip(relation.batch_sizes, relation.relative_samples, strict=True):
        click.echo(f"{batch:>6}  {'target missed' if r is None else f'{r:.3f}'}")
