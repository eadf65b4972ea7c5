"""`traingov tree`: fit, show and apply decision trees (pinned in DESIGN 7)."""

from __future__ import annotations

import click

from traingov_policies.tree import Tree

from ..config import ConfigError, load_tree
from .errors import WrongInput, print_json
from .tree_fit import fit


@click.group("tree")
def group() -> None:
    """Decision trees for the energy-optimal clock."""


group.add_command(fit)


@group.command("apply")
@click.option(
    "--tree", "tree_file", required=True, metavar="T.json", help="A file, or a shipped tree: algorithm-1, ffg."
)
@click.option("--layers", type=int)
@click.option("--seq-len-avg", type=float, help="Measured average sequence length, not the padding length.")
@click.option("--gpu-utilization", type=float, help="Percent, measured at the board's own governor (mode 0).")
@click.option("--hidden-size", type=int)
@click.option("--model-type", help="Such as bert, where the tree asks for it.")
@click.option("--json", "as_json", is_flag=True)
def apply(
    tree_file: str,
    *,
    layers: int | None,
    seq_len_avg: float | None,
    gpu_utilization: float | None,
    hidden_size: int | None,
    model_type: str | None,
    as_json: bool,
) -> None:
    """The clock that a tree gives for a workload. A feature left out follows the tree's rule for missing ones."""
    answer = _load(tree_file).apply(
        {
            "layers": layers,
            "seq_len_avg": seq_len_avg,
            "gpu_utilization": gpu_utilization,
            "hidden_size": hidden_size,
            "model_type": model_type,
        }
    )
    if as_json:
        print_json({"gpu_frequency_hz": answer.gpu_frequency_hz, "path": list(answer.path)})
    else:
        click.echo(f"{answer.gpu_frequency_hz / 1e6:g} MHz: {', '.join(answer.path) or 'one clock for all'}")


@group.command("show")
@click.argument("tree_file", metavar="T.json")
def show(tree_file: str) -> None:
    """Print a tree as indented rules."""
    for line in _load(tree_file).rules():
        click.echo(line)


def _load(name: str) -> Tree:
    try:
        return load_tree(name if "/" in name or not name.endswith(".json") else f"./{name}")
    except ConfigError as error:
        raise WrongInput(str(error).removeprefix("energy.tree: ")) from None
