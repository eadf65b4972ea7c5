"""`traingov tree fit`: a decision tree from energy sweeps (method B, section III-C), and what it is worth."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traingov_policies.sweep import SweepRow, curves, from_csv

from ..store import write_atomically
from .bars import progress_bar
from .errors import Failure, WrongInput, print_json

if TYPE_CHECKING:
    from traingov_policies.fitting import Fitted, Score
    from traingov_policies.tree import Tree


@click.command("fit")
@click.argument("sweep_files", metavar="SWEEP.csv...", nargs=-1, required=True)
@click.option(
    "--folds", type=click.Choice(["loo", "grouped"]), default="loo", show_default=True,
    help="Held out at a time: one workload, or all workloads of one model (the name up to the slash).",
)  # fmt: skip
@click.option("--cost-sensitive", is_flag=True, help="Least energy regret instead of the most labels hit.")
@click.option("--nested", is_flag=True, help="Also score with settings chosen anew inside each fold (minutes).")
@click.option("--energy", type=click.Choice(["compute", "input"]), default="compute", show_default=True)
@click.option("--edp", is_flag=True, help="Minimise energy × time instead of energy.")
@click.option("--features", default="", metavar="A,B", help="Only these features; default all five of the paper.")
@click.option("--board", default="agx-orin", show_default=True, help="Whose clock table the sweep used.")
@click.option("--max-frequency-hz", type=int, help="The board's highest clock, where the sweep leaves it out.")
@click.option("--name", help="Name of the tree; default: how it was fitted.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="T.json", help="Write the tree.")
@click.option("--json", "as_json", is_flag=True)
def fit(
    sweep_files: tuple[str, ...],
    *,
    folds: str,
    cost_sensitive: bool,
    nested: bool,
    energy: str,
    edp: bool,
    features: str,
    board: str,
    max_frequency_hz: int | None,
    name: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit a decision tree to energy sweeps (traingov.sweep/1), by grid search with cross-validation.

    By label with scikit-learn, as the paper does, or with --cost-sensitive by energy regret. Printed as rules, with
    accuracy, confusion and energy regret on held-out workloads.
    """
    from traingov_policies import fitting  # noqa: PLC0415  NumPy is loaded only where it is needed

    wanted = tuple(f for f in features.split(",") if f) or fitting.FEATURES
    if unknown := sorted(set(wanted) - set(fitting.FEATURES)):
        raise WrongInput(f"--features: {unknown[0]!r} is not one of {', '.join(fitting.FEATURES)}")
    try:
        measured = curves(read_sweeps(sweep_files), energy, edp=edp)
        data = fitting.dataset(measured, wanted)
        with progress_bar() as bar:
            told = None if bar is None else lambda done, total: bar(done, total, "settings tried")
            fitted = fitting.grid_search(data, folds, cost_sensitive=cost_sensitive, nested=nested, told=told)
    except ValueError as error:
        raise WrongInput(str(error)) from None
    except fitting.MissingFitterError as error:
        raise Failure(str(error)) from None
    highest = max_frequency_hz or max(hz for curve in measured for hz in curve.cost)
    if highest < max(data.clocks_hz):
        raise WrongInput(f"--max-frequency-hz: the sweep has {max(data.clocks_hz)} Hz, above {highest}")
    tree = fitting.to_tree(fitted.node, data, name or f"{fitted.method}-{len(data)}", board)
    tree = dataclasses.replace(tree, max_frequency_hz=highest)
    if out is not None:
        try:
            write_atomically(out.absolute(), (json.dumps(tree.to_json(), indent=1) + "\n").encode())
        except OSError as error:
            raise Failure(f"{out}: cannot be written: {error.strerror or error}") from None
    if as_json:
        print_json(_values(fitted, tree, data.workloads))
    else:
        for line in _text(fitted, tree, len(data)):
            click.echo(line)


def read_sweeps(paths: tuple[str, ...]) -> list[SweepRow]:
    """The rows of all files. Raises WrongInput naming file and line."""
    rows: list[SweepRow] = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise WrongInput(f"{path}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise WrongInput(f"{path}: is not UTF-8 text") from None
        try:
            rows += from_csv(text, path)
        except ValueError as error:
            raise WrongInput(str(error)) from None
    return rows


def _values(fitted: Fitted, tree: Tree, workloads: tuple[str, ...]) -> dict[str, Any]:
    return {
        "method": fitted.method,
        "folds": fitted.folds,
        "settings": dataclasses.asdict(fitted.settings),
        "workloads": len(workloads),
        "cross_validated": dataclasses.asdict(fitted.score),
        "nested": None if fitted.nested is None else dataclasses.asdict(fitted.nested),
        "training": dataclasses.asdict(fitted.training),
        "majority": dataclasses.asdict(fitted.majority),
        "confusion": {str(truth): {str(c): n for c, n in row.items()} for truth, row in fitted.confusion.items()},
        "held_out_choices_hz": dict(zip(workloads, fitted.choices, strict=True)),
        "rules": tree.rules(),
        "tree": tree.to_json(),
    }


def _text(fitted: Fitted, tree: Tree, count: int) -> list[str]:
    lines = [*tree.rules(), ""]
    what = "workload" if fitted.folds == "loo" else "model"
    settings = ", ".join(f"{k} {v}" for k, v in dataclasses.asdict(fitted.settings).items())
    lines.append(f"{count} workloads, one {what} held out at a time; fitted by {fitted.method} ({settings})")
    rows: list[tuple[str, Score | None]] = [
        ("held out", fitted.score),
        ("held out, settings chosen inside each fold", fitted.nested),
        ("held out, commonest label (FFG)", fitted.majority),
        ("on its own workloads", fitted.training),
    ]
    lines += [f"{name}: {_score(score)}" for name, score in rows if score is not None]
    clocks = sorted({hz for row in fitted.confusion.values() for hz in row} | set(fitted.confusion))
    lines += ["", "held out, best clock (down) against chosen clock (across), MHz:"]
    lines.append(" " * 8 + "".join(f"{hz / 1e6:8.4g}" for hz in clocks))
    for truth in sorted(fitted.confusion):
        counts = "".join(f"{fitted.confusion[truth].get(hz, 0) or '·':>8}" for hz in clocks)
        lines.append(f"{truth / 1e6:8.4g}{counts}")
    return lines


def _score(score: Score) -> str:
    saved = "" if score.saving_mean is None else f", {100 * score.saving_mean:.2f} % saved"
    return (
        f"accuracy {score.accuracy:.2f}, energy regret {100 * score.regret_mean:.2f} % mean, "
        f"{100 * score.regret_worst:.2f} % worst{saved}"
    )
