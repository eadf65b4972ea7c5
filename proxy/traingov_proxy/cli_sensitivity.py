"""``traingov-proxy sensitivity``: the matrix of proxies and targets, by real training of every recipe."""

from __future__ import annotations

import json
from pathlib import Path

import click

from traingov_policies.relation import RelationVector

from .cli_estimate import read_lut
from .estimation import RunsFailedError, TargetMissedError, estimate
from .pool import BackendError
from .progress import shown
from .recipe import RecipeError, find
from .sensitivity import Matrix, sensitivity

_DEFAULT = "digits,digits-target,wine,breast-cancer,text"


def _caps(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[float | None, ...]:
    """Caps out of "4.5,7,none"."""
    caps: list[float | None] = []
    for part in value.split(","):
        try:
            cap = None if part == "none" else float(part)
        except ValueError:
            cap = -1.0
        if cap is not None and not 0 < cap < float("inf"):
            raise click.BadParameter(f"{part!r} is neither a number of watts nor none")
        caps.append(cap)
    return tuple(caps)


@click.command("sensitivity")
@click.option(
    "--lut",
    "lut_file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="L.json",
    help="The board's table, traingov.lut/1: times and power.",
)
@click.option(
    "--recipes", default=_DEFAULT, show_default=True, help="Shipped or module:attribute, separated by commas."
)
@click.option("--caps", "caps_w", callback=_caps, default="4.5,7,none", show_default=True, metavar="W,W,none")
@click.option("--seeds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Runs per batch size.")
@click.option(
    "--proxy-seeds",
    type=click.IntRange(0, 1000),
    default=0,
    show_default=True,
    help="Take a proxy's r from one-after-another estimates with so many runs a size; 0: from all runs.",
)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 is one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print the matrices and the vectors.")
def command(
    *, lut_file: Path, recipes: str, caps_w: tuple[float | None, ...], seeds: int, proxy_seeds: int, jobs: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Train every recipe with every batch size, then choose for each (column) with the r of each (row).

    Each figure is the percentage by which training takes longer than at the fastest configuration.
    """
    lut = read_lut(lut_file)
    try:
        found = [find(name) for name in recipes.split(",")]
    except RecipeError as error:
        raise click.UsageError(str(error)) from None
    if jobs == 0:
        raise click.UsageError("--jobs 0: give a number of processes, or -1 for one per core")
    targets: dict[str, RelationVector] = {}
    proxies: dict[str, RelationVector] = {}
    total = sum(len(recipe.batch_sizes) * seeds for recipe in found)
    with shown(total, verbose=False) as report:
        for recipe in found:
            common = {"workload": recipe.workload, "dataset": recipe.dataset, "jobs": jobs, "on_run": report.run}
            train = recipe.with_limit(recipe.max_samples)
            try:
                full = estimate(train, recipe.batch_sizes, recipe.target, range(seeds), full=True, **common)  # type: ignore[arg-type]
                targets[recipe.name] = proxies[recipe.name] = full
                if proxy_seeds:
                    # Other seeds than the target's: a proxy does not know the target's luck.
                    others = range(1000, 1000 + proxy_seeds)
                    proxies[recipe.name] = estimate(train, recipe.batch_sizes, recipe.target, others, **common)  # type: ignore[arg-type]
            except (TargetMissedError, RunsFailedError, BackendError) as error:
                raise click.ClickException(f"recipe {recipe.name}: {error}") from None
    try:
        matrices = sensitivity(lut, proxies, targets, caps_w)
    except ValueError as error:
        raise click.UsageError(f"--lut {lut_file}: {error}") from None
    if as_json:
        vectors = {name: r.to_json() for name, r in targets.items()}
        click.echo(json.dumps({"matrices": [m.to_json() for m in matrices], "relations": vectors}, indent=1))
        return
    for matrix in matrices:
        _print(matrix)


def _print(matrix: Matrix) -> None:
    """A Markdown table."""
    click.echo("no cap" if matrix.cap_w is None else f"cap {matrix.cap_w:g} W")
    click.echo("")
    click.echo(f"| r from | chooses | {' | '.join(matrix.targets)} |")
    click.echo("|---" * (len(matrix.targets) + 2) + "|")
    for name, (b, f), row in zip(matrix.proxies, matrix.chosen, matrix.increase_percent, strict=True):
        cells = " | ".join("misses" if x is None else f"{x:.1f}" for x in row)
        click.echo(f"| {name} | {b} @ {f / 1e6:.0f} MHz | {cells} |")
    click.echo("")
