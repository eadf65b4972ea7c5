"""``traingov-proxy``: estimate a relation vector by training a recipe. For a server, not for the board."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from traingov_policies.relation import RelationVector

from .estimation import Run, TargetMissedError, estimate
from .files import write_atomically
from .recipe import RECIPES, Recipe, find


def _batch_sizes(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Batch sizes out of "4,8,16"."""
    if value is None:
        return None
    try:
        sizes = tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of batch sizes such as 4,8,16") from None
    if min(sizes) < 1 or len(set(sizes)) != len(sizes):
        raise click.BadParameter(f"{value!r}: batch sizes are positive and named once")
    return sizes


@click.group(no_args_is_help=False)
def cli() -> None:
    """Estimate samples to accuracy per batch size by real training on proxy data."""


@cli.command("estimate")
@click.argument("recipe_name", metavar="RECIPE", type=click.Choice(sorted(RECIPES)))
@click.option("--seeds", type=click.IntRange(1, 1000), default=3, show_default=True, help="Runs per batch size.")
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True, help="Seeds count up from it.")
@click.option("--batch-sizes", callback=_batch_sizes, help="Such as 4,8,16; the recipe's by default.")
@click.option("--target", type=float, help="Accuracy to reach; the recipe's by default.")
@click.option("--max-samples", type=click.IntRange(1), help="A run gives up there; the recipe's by default.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 is one per core.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write relation/1 to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print relation/1 on standard output.")
def estimate_command(
    *,
    recipe_name: str,
    seeds: int,
    first_seed: int,
    batch_sizes: tuple[int, ...] | None,
    target: float | None,
    max_samples: int | None,
    jobs: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Train RECIPE once per batch size and seed, and give its relation vector r."""
    recipe = find(recipe_name)
    # Before hours of training, not after them.
    if out is not None and not out.absolute().parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {out.absolute().parent}; create it first")
    if jobs == 0:
        raise click.UsageError("--jobs 0: give a number of processes, or -1 for one per core")
    sizes = batch_sizes or recipe.batch_sizes
    seed_list = list(range(first_seed, first_seed + seeds))
    limit = max_samples or recipe.max_samples
    with _progress(recipe.name, len(sizes) * seeds) as on_run:
        try:
            relation = estimate(
                recipe.with_limit(limit),
                sizes,
                recipe.target if target is None else target,
                seed_list,
                workload=recipe.workload,
                dataset=recipe.dataset,
                jobs=jobs,
                learning_rate_rule=recipe.learning_rate_rule,
                origin=_origin(recipe, seed_list, sizes, target, max_samples),
                on_run=on_run,
            )
        except TargetMissedError as error:
            raise click.ClickException(
                f"{error} (recipe {recipe.name}, at most {limit} samples a run): lower --target or raise --max-samples"
            ) from None
    text = json.dumps(relation.to_json(), indent=2) + "\n"
    if out is not None:
        try:
            write_atomically(out.absolute(), text)
        except OSError as error:
            raise click.ClickException(f"{out}: not written ({error.strerror or error})") from None
    if as_json:
        click.echo(text, nl=False)
    else:
        _print_table(relation, out)


def _origin(
    recipe: Recipe, seeds: list[int], sizes: tuple[int, ...], target: float | None, max_samples: int | None
) -> str:
    """The command that gives the same vector again, and what else the numbers depend on."""
    command = f"traingov-proxy estimate {recipe.name} --seeds {len(seeds)}"
    if seeds[0]:
        command += f" --first-seed {seeds[0]}"
    if sizes != recipe.batch_sizes:
        command += f" --batch-sizes {','.join(map(str, sizes))}"
    if target is not None:
        command += f" --target {target}"
    if max_samples is not None:
        command += f" --max-samples {max_samples}"
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    return f"{command}; seeds {', '.join(map(str, seeds))}; {today}; numpy {np.__version__}"


def _describe(run: Run) -> str:
    result = "missed the target" if run.samples is None else f"{run.samples:.0f} samples"
    return f"batch {run.batch_size}, seed {run.seed}: {result}"


@contextmanager
def _progress(name: str, runs: int) -> Iterator[Callable[[Run], None] | None]:
    """Gives what shows each run on a bar on standard error; None where that is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    # MofNCompleteColumn would do, but rich 11 does not have it.
    count = TextColumn("{task.completed:.0f}/{task.total:.0f}")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"training {name}", total=runs)
        yield lambda run: progress.update(bar, advance=1, description=_describe(run))


def _print_table(relation: RelationVector, out: Path | None) -> None:
    click.echo(f"{relation.workload}: samples to accuracy {relation.target} on {relation.dataset}")
    for b, r, runs in zip(relation.batch_sizes, relation.relative_samples, relation.samples_to_accuracy, strict=True):
        counts = "  ".join("missed" if n is None else f"{n:.0f}" for n in runs)
        click.echo(f"  batch {b:4d}  r {'none ' if r is None else f'{r:.3f}'}  N {counts}")
    if out is not None:
        click.echo(f"written to {out}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: errors are one line; status 2 for wrong input, 1 for failure."""
    try:
        cli.main(args=arguments, prog_name="traingov-proxy", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        click.echo("traingov-proxy: interrupted; nothing was written", err=True)
        sys.exit(1)
    except click.ClickException as error:
        click.echo(f"traingov-proxy: {' '.join(error.format_message().split())}", err=True)
        sys.exit(2 if isinstance(error, click.UsageError) else 1)
