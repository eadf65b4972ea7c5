"""The tables of docs/energy-tree.md: ``traingov-sim evaluate energy --json | python docs/energy_tables.py``.

Replaces what stands between the two marker lines of the page, and leaves the rest alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("energy-tree.md")
BEGIN, END = "<!-- figures: begin (traingov-sim evaluate energy) -->", "<!-- figures: end -->"
NAMES = {
    **{"mode2": "30 W mode", "ffg": "FFG", "mlg": "MLG", "cost_tree": "regret tree", "search": "search"},
    **{"search_first": "search, first job", "search_cost_tree": "search from regret tree"},
    **{"search_again": "search, second run", "best": "best clock"},
}


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The page's tables, line by line."""
    source = rows[0]
    yield f"{source['members']} of {source['of']} members; family {source['sha256'][:12]}. FFG is calibrated, all else"
    yield "predicted. Percent of mode 0's GPU + CPU energy saved: mean over members (5 to 95 %); published | predicted"
    yield "for FFG and MLG; last line: time over mode 0's."
    yield ""
    yield "| | " + " | ".join(NAMES.values()) + " |"
    yield "|---" * (1 + len(NAMES)) + "|"
    for what in ("model", "task", "all"):
        for name in dict.fromkeys(r["name"] for r in rows if r["what"] == what):
            found = {r["method"]: r for r in rows if r["what"] == what and r["name"] == name}
            yield f"| {name} | " + " | ".join(_saving(found[m]) for m in NAMES) + " |"
    whole = {r["method"]: r for r in rows if r["what"] == "all"}
    yield "| time | " + " | ".join(f"{whole[m]['time_over_mode0']['mean']:.2f} ×" for m in NAMES) + " |"
    yield ""
    yield from _lengths(rows)
    yield from _targets(rows)
    yield from _trees(rows)
    yield from _cells(rows)


def _saving(row: dict[str, Any]) -> str:
    s = row["saving_percent"]
    published = f"{row['published_percent']:.2f} \\| " if "published_percent" in row else ""
    return f"{published}{s['mean']:.2f} ({s['p5']:.1f}…{s['p95']:.1f})"


def _lengths(rows: list[dict[str, Any]]) -> Iterator[str]:
    lengths = [r["name"] for r in rows if r["what"] == "length" and r["method"] == "best"]
    yield "By the job's length at mode 0: percent saved, and points below the best clock."
    yield ""
    yield "| | " + " | ".join(lengths) + " | all, weighted by energy |"
    yield "|---" * (2 + len(lengths)) + "|"
    for method, title in NAMES.items():
        cells = [r for r in rows if r["what"] == "length" and r["method"] == method]
        (whole,) = (r for r in rows if r["what"] == "energy-weighted" and r["method"] == method)
        parts = [f"{r['saving_percent']:.2f} ({r['gap_points']:.2f})" for r in cells]
        parts.append(f"{whole['saving_percent']['mean']:.2f} ({whole['gap_points']['mean']:.2f})")
        yield f"| {title} | " + " | ".join(parts) + " |"
    counts = ", ".join(f"{r['name']}: {r['jobs']}" for r in rows if r["what"] == "length" and r["method"] == "best")
    yield ""
    yield f"Jobs over all members: {counts}."
    yield ""


def _targets(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | lowest model mean | model means below 0 | points below the best clock, all 54 cells | within 1 point |"
    yield "|---|---|---|---|---|"
    targets = [r for r in rows if r["what"] == "target"]
    for method in dict.fromkeys(r["method"] for r in targets):
        models, gap = (r for r in targets if r["method"] == method)
        yield (
            f"| {NAMES[method]} | {models['saving_percent']['mean']:.2f} % ({models['lowest_model']}) "
            f"| {models['negative_model_means']} of {models['of']} "
            f"| {gap['gap_points']['mean']:.2f} ({gap['gap_points']['p5']:.2f}…{gap['gap_points']['p95']:.2f}) "
            f"| {'yes' if gap['met'] else 'no'} |"
        )
    yield ""


def _trees(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "Trees fitted to each member's sweep of the 27 training workloads, on held-out ones (published: 0.62):"
    yield ""
    yield "| fitted by, folds | accuracy | energy regret | commonest label: accuracy | regret |"
    yield "|---|---|---|---|---|"
    for r in (r for r in rows if r["what"] == "tree"):
        a, regret = r["accuracy"], r["regret_percent"]
        yield (
            f"| {r['method']}, {r['folds']} | {a['mean']:.2f} ({a['p5']:.2f}…{a['p95']:.2f}) "
            f"| {regret['mean']:.2f} % ({regret['p5']:.2f}…{regret['p95']:.2f}) "
            f"| {r['majority_accuracy']['mean']:.2f} | {r['majority_regret_percent']['mean']:.2f} % |"
        )
    yield ""


def _cells(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "MLG's 27 cells that differ from FFG's, percent saved:"
    yield ""
    yield "| cell | FFG published | MLG published | MLG predicted (least…largest) | error, points |"
    yield "|---|---|---|---|---|"
    for r in (r for r in rows if r["what"] == "mlg-cell"):
        s, mark = r["saving_percent"], " (714 MHz by algorithm 1)" if r["algorithm_1_gives_714"] else ""
        yield (
            f"| {r['name']}{mark} | {r['published_ffg_percent']:.2f} | {r['published_percent']:.2f} "
            f"| {s['mean']:.2f} ({s['least']:.1f}…{s['largest']:.1f}) | {r['error_points']:+.2f} |"
        )
    (s,) = (r for r in rows if r["what"] == "mlg-summary")
    yield ""
    yield (
        f"Mean error {s['error_points']['mean']:+.2f} points, mean absolute error "
        f"{s['absolute_error_points']['mean']:.2f}; {s['within_spread']} of {s['cells']} within the family's range "
        f"± 1.5 points; {s['same_direction_as_published']} on the published side of FFG."
    )


def main() -> None:
    """Read the rows from stdin, write the page."""
    rows = json.load(sys.stdin)
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN, 1)
    lines = "\n".join(tables(rows))
    PAGE.write_text(f"{head}{BEGIN}\n\n{lines}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
