"""``traingov-proxy estimate``: the relation vector of a recipe."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from traingov_policies.belief import Floats
from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.sequential import Limits, lut_caps_w, lut_curves

from .estimation import RunsFailedError, TargetMissedError, estimate
from .files import write_atomically
from .journal import Journal, JournalError
from .pool import BACKENDS, BackendError
from .progress import Report, shown
from .recipe import RECIPES, Recipe, RecipeError, find

_DEFAULTS = Limits()


def batch_sizes_of(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
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


def read_lut(path: Path) -> Lut:
    """The table in ``path``. Raises click.UsageError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError("must be a JSON object")
        return Lut.from_json(data)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--lut {path}: {getattr(error, 'strerror', None) or error}") from None


@click.command("estimate")
@click.argument("recipe_name", metavar="RECIPE")
@click.option("--full", is_flag=True, help="Every batch size with every seed, instead of one after another.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=_DEFAULTS.runs,
    show_default=True,
    help="Runs per batch size, at most.",
)
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True, help="Seeds count up from it.")
@click.option(
    "--max-sizes",
    type=click.IntRange(1),
    default=_DEFAULTS.sizes,
    show_default=True,
    help="Batch sizes to train, at most (without --full).",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=_DEFAULTS.tolerance,
    show_default=True,
    help="Stop at this expected loss of time (without --full).",
)
@click.option(
    "--lut",
    "lut_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="L.json",
    help="The board's table, if it is known: runs go where its choice is undecided.",
)
@click.option("--batch-sizes", callback=batch_sizes_of, help="Such as 4,8,16; the recipe's by default.")
@click.option("--target", type=float, help="Accuracy to reach; the recipe's by default.")
@click.option("--max-samples", type=click.IntRange(1), help="A run gives up there; the recipe's by default.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes (loky); -1 is one per core.")
@click.option("--backend", type=click.Choice(BACKENDS), default="loky", show_default=True, help="Where runs train.")
@click.option("--scheduler", metavar="ADDRESS", help="Of the Dask or Ray cluster.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep finished runs there, and go on from those it holds.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write relation/1 to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print relation/1 on standard output.")
@click.option("--verbose", "-v", is_flag=True, help="A line on standard error for each run and each choice.")
def command(**options: Any) -> None:
    """Train RECIPE (a shipped one, or your own as module:attribute) and give its relation vector r."""
    try:
        recipe = find(options["recipe_name"])
    except RecipeError as error:
        raise click.UsageError(str(error)) from None
    _check(options)
    sizes = options["batch_sizes"] or recipe.batch_sizes
    seeds = list(range(options["first_seed"], options["first_seed"] + options["seeds"]))
    target = recipe.target if options["target"] is None else options["target"]
    limit = options["max_samples"] or recipe.max_samples
    limits = Limits(options["max_sizes"], options["seeds"], options["tolerance"])
    curves = None if options["lut_file"] is None else _curves(options["lut_file"], sizes)
    total = len(seeds) * (len(sizes) if options["full"] else min(limits.sizes, len(sizes)))
    with ExitStack() as stack:
        journal = _journal(options["resume"], recipe, target, limit)
        if journal is not None:
            stack.callback(journal.close)
        report = stack.enter_context(shown(total, options["verbose"]))
        try:
            relation = estimate(
                recipe.with_limit(limit),
                sizes,
                target,
                seeds,
                workload=recipe.workload,
                dataset=recipe.dataset,
                full=options["full"],
                limits=limits,
                curves=curves,
                jobs=options["jobs"],
                backend=options["backend"],
                scheduler=options["scheduler"],
                journal=journal,
                learning_rate_rule=recipe.learning_rate_rule,
                origin=_origin(recipe, seeds, options),
                on_run=report.run,
                on_step=report.step,
            )
        except TargetMissedError as error:
            raise click.ClickException(
                f"{error} (recipe {recipe.name}, at most {limit} samples a run): lower --target or raise --max-samples"
            ) from None
        except (RunsFailedError, BackendError) as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(f"{options['resume'] or error.filename}: {error.strerror or error}") from None
    _give(relation, report, options["out"], options["as_json"])


def _check(options: dict[str, Any]) -> None:
    """Before hours of training, not after them."""
    for name in ("out", "resume"):
        path = options[name]
        if path is not None and not path.absolute().parent.is_dir():
            raise click.UsageError(f"--{name} {path}: there is no folder {path.absolute().parent}; create it first")
    if options["jobs"] == 0:
        raise click.UsageError("--jobs 0: give a number of processes, or -1 for one per core")
    if options["backend"] == "dask" and options["scheduler"] is None:
        raise click.UsageError("--backend dask: give --scheduler, such as tcp://server:8786")
    if options["backend"] == "loky" and options["scheduler"] is not None:
        raise click.UsageError("--scheduler: belongs to --backend dask or ray")


def _curves(path: Path, sizes: tuple[int, ...]) -> Floats:
    lut = read_lut(path)
    absent = sorted(set(sizes) - set(lut.batch_sizes))
    if absent:
        raise click.UsageError(f"--lut {path}: has no batch size {absent}; give --batch-sizes that it has")
    try:
        # The order of the estimate: ascending.
        return lut_curves(lut, sorted(sizes), lut_caps_w(lut))
    except ValueError as error:
        raise click.UsageError(f"--lut {path}: {error}") from None


def _journal(path: Path | None, recipe: Recipe, target: float, max_samples: int) -> Journal | None:
    if path is None:
        return None
    identity = {"recipe": recipe.name, "workload": recipe.workload, "dataset": recipe.dataset, "target": target,
                "max_samples": max_samples}  # fmt: skip
    try:
        return Journal(path, identity)
    except (JournalError, OSError) as error:
        raise click.UsageError(f"--resume {path}: {getattr(error, 'strerror', None) or error}") from None


def _origin(recipe: Recipe, seeds: list[int], options: dict[str, Any]) -> str:
    """The command that gives the same vector again, and what else the numbers depend on."""
    name = options["recipe_name"] if options["recipe_name"] in RECIPES else f"{options['recipe_name']} ({recipe.name})"
    command = f"traingov-proxy estimate {name}"
    if options["full"]:
        command += " --full"
    command += f" --seeds {len(seeds)}"
    if seeds[0]:
        command += f" --first-seed {seeds[0]}"
    if not options["full"]:
        for flag, value, default in (
            ("--max-sizes", options["max_sizes"], _DEFAULTS.sizes),
            ("--tolerance", options["tolerance"], _DEFAULTS.tolerance),
        ):
            if value != default:
                command += f" {flag} {value}"
        if options["lut_file"] is not None:
            command += f" --lut {options['lut_file'].name}"
    if options["batch_sizes"] is not None and options["batch_sizes"] != recipe.batch_sizes:
        command += f" --batch-sizes {','.join(map(str, options['batch_sizes']))}"
    if options["target"] is not None:
        command += f" --target {options['target']}"
    if options["max_samples"] is not None:
        command += f" --max-samples {options['max_samples']}"
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    return f"{command}; seeds {', '.join(map(str, seeds))}; {today}; numpy {np.__version__}"


def _give(relation: RelationVector, report: Report, out: Path | None, as_json: bool) -> None:
    text = json.dumps(relation.to_json(), indent=2) + "\n"
    if out is not None:
        try:
            write_atomically(out.absolute(), text)
        except OSError as error:
            raise click.ClickException(f"{out}: not written ({error.strerror or error})") from None
    if report.failed:
        click.echo(f"traingov-proxy: {report.failed} runs failed; the vector rests on the others", err=True)
    if as_json:
        click.echo(text, nl=False)
        return
    click.echo(f"{relation.workload}: samples to accuracy {relation.target} on {relation.dataset}")
    for b, r, runs in zip(relation.batch_sizes, relation.relative_samples, relation.samples_to_accuracy, strict=True):
        counts = "  ".join("missed" if n is None else f"{n:.0f}" for n in runs)
        pair = relation.interval_of(b)
        between = "" if pair is None else f" ({pair[0]:.3f} to {pair[1]:.3f})"
        click.echo(f"  batch {b:4d}  r {'none ' if r is None else f'{r:.3f}'}{between}  N {counts}")
    if report.last_step is not None:
        click.echo(f"stopped: {report.last_step.why}")
    if out is not None:
        click.echo(f"written to {out}")
