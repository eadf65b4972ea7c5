"""`traingov relation`: relation vectors that this machine has, and fetching one."""

from __future__ import annotations

from pathlib import Path

import click

from traingov_policies.relation import RelationVector

from ..data import data_dir
from ..fetching import TIMEOUT_S, FetchError, UnreachableError, fetch, keep
from ..store import load_relations
from .errors import Failure, WrongInput, print_json

_STATE_DIR = click.option(
    "--state-dir", type=click.Path(path_type=Path), default=Path("/var/lib/traingov"), show_default=True,
    help="Where the service keeps its own.",
)  # fmt: skip


@click.group("relation")
def group() -> None:
    """Relation vectors: relative samples to accuracy per batch size."""


@group.command("show")
@click.argument("workload", required=False)
@_STATE_DIR
@click.option("--json", "as_json", is_flag=True, help="Print the file's content.")
def show(workload: str | None, state_dir: Path, as_json: bool) -> None:
    """The vector that the service uses for WORKLOAD, or which there are."""
    known = load_relations((state_dir / "relations", data_dir() / "relations"))
    if workload is None:
        if as_json:
            print_json([known[name].to_json() for name in sorted(known)])
            return
        for name in sorted(known):
            click.echo(f"{name}: {_source(known[name])}")
        return
    if workload not in known:
        raise WrongInput(
            f"no relation vector for {workload!r}; there are: {', '.join(sorted(known)) or 'none'}; without one the "
            "service takes every batch size to need the same samples to accuracy (r = 1)"
        )
    relation = known[workload]
    if as_json:
        print_json(relation.to_json())
    else:
        _print(relation)


@group.command("fetch")
@click.argument("source", metavar="FILE|URL")
@_STATE_DIR
@click.option("--workload", help="Refuse a vector of another workload.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0, 3600, min_open=True), default=TIMEOUT_S, show_default=True,
    metavar="S", help="Seconds for the whole transfer.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print where it was written, and the vector.")
def fetch_command(source: str, state_dir: Path, workload: str | None, timeout_s: float, as_json: bool) -> None:
    """Fetch a vector from a file or a file, http or https URL, check it and keep it for the service.

    It takes the place of the one that this workload had. The service reads vectors when it starts.
    """
    try:
        relation = fetch(source, timeout_s)
    except UnreachableError as error:
        raise Failure(str(error)) from None
    except FetchError as error:
        raise WrongInput(str(error)) from None
    if workload is not None and relation.workload != workload:
        raise WrongInput(f"{source}: is of workload {relation.workload!r}, not {workload!r}; nothing was kept")
    try:
        path = keep(relation, state_dir / "relations")
    except OSError as error:
        hint = "; run it as root" if isinstance(error, PermissionError) else ""
        where = state_dir / "relations"
        raise Failure(f"{where}: cannot be written: {error.strerror or error}{hint}") from None
    if as_json:
        print_json({"path": str(path), "relation": relation.to_json()})
        return
    _print(relation)
    click.echo(f"kept as {path}; the service uses it from its next start")


def _source(relation: RelationVector) -> str:
    target = "" if relation.target is None else f", target {relation.target}"
    return f"{relation.dataset or 'data set not stated'}{target} ({relation.origin or 'origin not stated'})"


def _print(relation: RelationVector) -> None:
    click.echo(f"{relation.workload}: {_source(relation)}")
    for batch, r in zip(relation.batch_sizes, relation.relative_samples, strict=True):
        pair = relation.interval_of(batch)
        between = "" if pair is None else f"  {pair[0]:.3f} to {pair[1]:.3f}"
        click.echo(f"{batch:>6}  {'target missed' if r is None else f'{r:.3f}{between}'}")
