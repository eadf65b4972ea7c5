"""`traingov select`: the choice of batch size and GPU clock from a table (pinned in DESIGN 7)."""

from __future__ import annotations

import click

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.select import Selection, select
from traingov_policies.values import Objective

from .errors import WrongInput, print_json, read_json


@click.command("select")
@click.option("--lut", "lut_file", required=True, metavar="L.json", help="Lookup table, traingov.lut/1.")
@click.option("--relation", "relation_file", metavar="R.json", help="Relation vector; without it r = 1 is assumed.")
@click.option("--cap", "cap_w", type=float, metavar="W", help="Peak power must stay below this many watts.")
@click.option("--objective", type=click.Choice([o.value for o in Objective]), default="time", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(lut_file: str, relation_file: str | None, cap_w: float | None, objective: str, as_json: bool) -> None:
    """Choose the operating point from a lookup table.

    Times and energies are weighted by the relation vector. When no point stays below the cap, the one of least power
    is printed with "feasible": false.
    """
    if cap_w is not None and not 0 < cap_w < float("inf"):
        raise WrongInput(f"--cap: must be a positive number of watts, not {cap_w}")
    try:
        lut = Lut.from_json(_mapping(lut_file))
    except ValueError as error:
        raise WrongInput(f"{lut_file}: {error}") from None
    relation = None
    if relation_file is not None:
        try:
            relation = RelationVector.from_json(_mapping(relation_file))
        except ValueError as error:
            raise WrongInput(f"{relation_file}: {error}") from None
    try:
        selection = select(lut, relation, cap_w, Objective(objective))
    except ValueError as error:
        raise WrongInput(f"{lut_file}: {error}") from None
    if as_json:
        print_json(selection.to_json())
    else:
        _print(selection, relation is None)


def _mapping(path: str) -> dict[str, object]:
    data = read_json(path)
    if not isinstance(data, dict):
        raise WrongInput(f"{path}: must be a JSON object")
    return data


def _print(selection: Selection, assumed: bool) -> None:
    if not selection.feasible:
        click.echo(f"no point stays below the cap; least power: {selection.chosen.point}")
        return
    click.echo(f"{'batch':>6} {'MHz':>7} {'T_s·r s':>10} {'peak W':>8} {'energy J':>10}")
    for mark, c in zip(["← chosen", *[""] * len(selection.candidates)], selection.candidates, strict=False):
        numbers = [
            f"{c.point.batch_size:>6} {c.point.gpu_frequency_hz / 1e6:>7.1f}",
            *(
                f"{'—' if value is None else format(value, '.2f'):>{width}}"
                for value, width in ((c.time_s, 10), (c.peak_power_w, 8), (c.energy_j, 10))
            ),
            mark,
        ]
        click.echo(" ".join(numbers).rstrip())
    if assumed:
        click.echo("no relation vector: every batch size is taken to need the same samples to accuracy")
