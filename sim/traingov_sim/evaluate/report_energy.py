"""The rows of ``evaluate energy`` as tables to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from .energy_methods import METHODS

_TITLES = {
    **{"mode0": "mode 0", "mode2": "30 W mode", "ffg": "FFG", "mlg": "MLG", "cost_tree": "regret tree"},
    **{"search": "search", "search_first": "search, first job", "search_cost_tree": "search from regret tree"},
    **{"search_again": "search, second run", "best": "best clock"},
}
Rows = Sequence[Mapping[str, Any]]


def print_energy(console: Console, rows: Rows) -> None:
    """Means as table II has them, the 27 cells, trees, job lengths and targets."""
    _savings(console, rows)
    _lengths(console, rows)
    _cells(console, rows)
    _trees(console, rows)
    _targets(console, rows)
    source = rows[0]
    console.print(
        f"Simulated: {source['members']} of {source['of']} virtual boards, family {source['sha256'][:12]}, calibrated "
        "on FFG's column and the paper's statements; everything else is a prediction. Rails: GPU + CPU, as the paper."
    )


def _savings(console: Console, rows: Rows) -> None:
    table = Table(title="Energy saved against mode 0, percent: mean over boards (5 to 95 %) | published; time in ×")
    table.add_column("")
    methods = [m for m in METHODS if m != "mode0"]
    for method in methods:
        table.add_column(_TITLES[method], justify="right")
    for what in ("model", "task", "all"):
        for name in dict.fromkeys(r["name"] for r in rows if r["what"] == what):
            found = {r["method"]: r for r in rows if r["what"] == what and r["name"] == name}
            table.add_row(name, *(_cell(found[m]) for m in methods))
        table.add_section()
    console.print(table)


def _cell(row: Mapping[str, Any]) -> str:
    s = row["saving_percent"]
    published = f" | {row['published_percent']:.2f}" if "published_percent" in row else ""
    return f"{s['mean']:.2f}{published}\n({s['p5']:.1f}…{s['p95']:.1f}) {row['time_over_mode0']['mean']:.2f}×"


def _lengths(console: Console, rows: Rows) -> None:
    table = Table(title="By the job's length at mode 0: percent saved (points below the best clock)")
    lengths = list(dict.fromkeys(r["name"] for r in rows if r["what"] == "length"))
    for name in ("", *lengths, "weighted by energy"):
        table.add_column(name, justify="right")
    for method in METHODS[1:]:
        found = {r["name"]: r for r in rows if r["what"] == "length" and r["method"] == method}
        weighted = next(r for r in rows if r["what"] == "energy-weighted" and r["method"] == method)
        cells = [f"{found[n]['saving_percent']:.2f} ({found[n]['gap_points']:.2f})" for n in lengths]
        last = f"{weighted['saving_percent']['mean']:.2f} ({weighted['gap_points']['mean']:.2f})"
        table.add_row(_TITLES[method], *cells, last)
    console.print(table)


def _cells(console: Console, rows: Rows) -> None:
    table = Table(title="MLG's cells that differ from FFG's: published, and predicted by the family")
    for name in ("cell", "FFG published", "MLG published", "predicted", "least … largest", "error"):
        table.add_column(name, justify="left" if name == "cell" else "right")
    for r in rows:
        if r["what"] == "mlg-cell":
            s = r["saving_percent"]
            table.add_row(
                r["name"] + (" (714 MHz by algorithm 1)" if r["algorithm_1_gives_714"] else ""),
                *(f"{r['published_ffg_percent']:.2f}", f"{r['published_percent']:.2f}", f"{s['mean']:.2f}"),
                *(f"{s['least']:.1f} … {s['largest']:.1f}", f"{r['error_points']:+.2f}"),
            )
    console.print(table)
    s = next(r for r in rows if r["what"] == "mlg-summary")
    error = s["absolute_error_points"]
    console.print(
        f"Mean error {s['error_points']['mean']:+.2f} points, absolute {error['mean']:.2f}; {s['within_spread']} of "
        f"{s['cells']} within the family's range ± 1.5 points; {s['same_direction_as_published']} on the published "
        "side of FFG."
    )


def _trees(console: Console, rows: Rows) -> None:
    table = Table(title="Trees fitted to each board's sweep of the training tasks, on held-out workloads")
    for name in ("fitted by, folds", "accuracy", "regret", "commonest label: accuracy", "regret"):
        table.add_column(name, justify="left" if name.startswith("fitted") else "right")
    for r in rows:
        if r["what"] == "tree":
            published = "" if r["published_accuracy"] is None else f" | {r['published_accuracy']:.2f}"
            table.add_row(
                f"{r['method']}, {r['folds']}",
                f"{r['accuracy']['mean']:.2f} ({r['accuracy']['p5']:.2f}…{r['accuracy']['p95']:.2f}){published}",
                f"{r['regret_percent']['mean']:.2f} %",
                *(f"{r['majority_accuracy']['mean']:.2f}", f"{r['majority_regret_percent']['mean']:.2f} %"),
            )
    console.print(table)


def _targets(console: Console, rows: Rows) -> None:
    table = Table(title="Targets")
    for name in ("method", "lowest model mean", "model means below 0", "points below the best clock"):
        table.add_column(name, justify="left" if name == "method" else "right")
    targets = [r for r in rows if r["what"] == "target"]
    for method in dict.fromkeys(r["method"] for r in targets):
        models, gap = (r for r in targets if r["method"] == method)
        table.add_row(
            _TITLES[method],
            f"{models['saving_percent']['mean']:.2f} % ({models['lowest_model']})",
            f"{models['negative_model_means']} of {models['of']}",
            f"{gap['gap_points']['mean']:.2f} ({'met' if gap['met'] else 'not met'})",
        )
    console.print(table)
