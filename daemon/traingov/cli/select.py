"""`traingov select`: the choice of batch size and GPU clock from a table (pinned in DESIGN 7)."""

from __future__ import annotations

import click

from traingov_policies.explaining import detail, selection_json
from traingov_policies.robust import Choice, choose
from traingov_policies.values import Objective
from traingov_policies.wording import sentences

from .errors import WrongInput, print_json
from .inputs import checked_cap, choice_options, read_lut, read_relation


@click.command("select")
@click.option("--lut", "lut_file", required=True, metavar="L.json", help="Lookup table, traingov.lut/1.")
@choice_options
@click.option("--measured-only", is_flag=True, help="Leave predicted points out, as the service does.")
@click.option("--explain", is_flag=True, help="Say why this point, what came second, and what would change it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(  # noqa: PLR0917  one parameter an option
    lut_file: str,
    relation_file: str | None,
    cap_w: float | None,
    objective: str,
    violation_probability: float,
    measured_only: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Choose the operating point from a lookup table.

    Times and energies are weighted by the relation vector. When no point stays below the cap, the one of least power
    is printed with "feasible": false. Where the table states uncertainties, a point is taken only if it exceeds the
    cap with less than the stated probability.
    """
    cap_w = checked_cap(cap_w)
    lut, relation = read_lut(lut_file), read_relation(relation_file)
    try:
        choice = choose(
            lut, relation, cap_w, Objective(objective),
            violation_probability=violation_probability, measured_only=measured_only,
        )  # fmt: skip
    except ValueError as error:
        raise WrongInput(f"{lut_file}: {error}") from None
    if explain:
        why = detail(choice, lut, relation, batch_sizes=lut.batch_sizes, measured_only=measured_only)
        if as_json:
            print_json({**why, "text": sentences(why)})
        else:
            click.echo("\n".join(sentences(why)))
    elif as_json:
        print_json(selection_json(choice))
    else:
        _print(choice, relation is None)


def _print(choice: Choice, assumed: bool) -> None:
    if not choice.selection.feasible:
        click.echo(f"no point stays below the cap; least power: {choice.chosen.point}")
        return
    click.echo(f"{'batch':>6} {'MHz':>7} {'T_s·r s':>10} {'peak W':>8} {'energy J':>10} {'above cap':>10} {'best':>7}")
    for mark, c in zip(["← chosen", *[""] * len(choice.judged)], choice.selection.candidates, strict=False):
        judged = choice.of(c.point)
        numbers = [
            f"{c.point.batch_size:>6} {c.point.gpu_frequency_hz / 1e6:>7.1f}",
            *(
                f"{'—' if value is None else format(value, '.2f'):>{width}}"
                for value, width in ((c.time_s, 10), (c.peak_power_w, 8), (c.energy_j, 10))
            ),
            f"{judged.violation_probability:>10.1%} {judged.best_probability:>7.1%}",
            "predicted" if judged.origin == "predicted" else "",
            mark,
        ]
        click.echo(" ".join(numbers).rstrip())
    if assumed:
        click.echo("no relation vector: every batch size is taken to need the same samples to accuracy")
