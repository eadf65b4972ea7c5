"""Writes the tables of docs/evaluation.md from what `traingov-sim evaluate joint --json` printed.

    traingov-sim evaluate joint --json > joint.json
    python docs/evaluation_tables.py joint.json

Replaces what stands between the marker lines of the page, and leaves the rest alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "evaluation.md"
CAPS = {4.5: "4.5 W", 7.0: "7 W", None: "none"}
Comparison = dict[str, Any]


def spread(d: dict[str, float], spec: str) -> str:
    """Median and the 5 and 95 % points."""
    return f"{d['median']:{spec}} ({d['p5']:{spec}} … {d['p95']:{spec}})"


def of(data: dict[str, Any], name: str, **fields: Any) -> list[Comparison]:
    """The comparisons whose name begins so and whose fields are these."""
    return [
        c
        for c in data["comparisons"]
        if str(c.get("comparison", "")).startswith(name) and all(c.get(k) == v for k, v in fields.items())
    ]


def families(data: dict[str, Any]) -> Iterator[str]:
    """The families, frozen."""
    yield "| family | surfaces | no inequality violated | worst R-hat | effective draws | sha256 |"
    yield "|---|---|---|---|---|---|"
    for f in data["families"]:
        hats = max(d["worst_r_hat"] for d in f["diagnostics"])
        draws = min(d["least_effective_draws"] for d in f["diagnostics"])
        yield (
            f"| {f['board']} {f['workload']} | {f['members']} | {f['without_any_violation']} | {hats:.2f} | {draws} "
            f"| `{f['sha256'][:16]}` |"
        )


def joint_cells(data: dict[str, Any]) -> Iterator[str]:
    """Joint seconds and speed-ups of every row and cap."""
    head = "| row | cap | joint: published | six clocks | published at | twelve clocks |"
    yield head + " over baseline 1: published | predicted | over baseline 2: published | predicted |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for c in of(data, "seconds of joint", variant="sampled"):
        if c["clocks"] == "twelve":
            continue
        place = {k: c[k] for k in ("board", "workload", "dataset", "cap_w", "variant")}
        twelve = of(data, "seconds of joint", **place, clocks="twelve")
        ups = []
        for base in ("baseline1", "baseline2"):
            (up,) = of(data, f"speed-up of joint over {base}", **place, clocks=c["clocks"])
            ups += ["—" if up["published"] is None else f"{up['published']:.2f}", spread(up["speed_up"], ".2f")]
        yield (
            f"| {c['board']} {c['workload']} {c['dataset']} | {CAPS[c['cap_w']]} | {c['published']:.0f} "
            f"| {spread(c['seconds'], '.0f')} | {c['published_at_quantile']:.0%} "
            f"| {spread(twelve[0]['seconds'], '.0f') if twelve else '—'} | {' | '.join(ups)} |"
        )


def baseline_cells(data: dict[str, Any]) -> Iterator[str]:
    """Errors of the baselines' cells by kind."""
    yield "| cells | kind | number | median error: least | median | largest |"
    yield "|---|---|---|---|---|---|"
    for what in ("baseline1", "baseline2"):
        for kind in ("calibrated", "predicted"):
            found = [
                c["error"]["median"]
                for c in of(data, f"seconds of {what}", variant="sampled", kind=kind)
                if c["clocks"] != "twelve" and "error" in c
            ]
            middle = sorted(found)[len(found) // 2]
            yield f"| {what} | {kind} | {len(found)} | {min(found):+.1%} | {middle:+.1%} | {max(found):+.1%} |"


def overall(data: dict[str, Any]) -> Iterator[str]:
    """DESIGN 8 row 3, and the exhaustive check."""
    (c,) = of(data, "speed-up of joint over both baselines")
    p = c["published"]
    yield "| speed-up over every row and cap | published | over the boards: median (5 … 95 %) | published at |"
    yield "|---|---|---|---|"
    yield f"| mean | {p['mean']:.2f} | {spread(c['mean'], '.2f')} | {c['published_mean_at_quantile']:.0%} |"
    yield f"| mean over baseline 1 | {p['mean_over_baseline1']:.2f} | {spread(c['mean_over_baseline1'], '.2f')} | |"
    yield f"| mean over baseline 2 | {p['mean_over_baseline2']:.2f} | {spread(c['mean_over_baseline2'], '.2f')} | |"
    yield f"| peak | {p['peak']:.2f} | {spread(c['peak'], '.2f')} | {c['published_peak_at_quantile']:.0%} |"
    checks = of(data, "noise-free table")
    yield ""
    yield (
        f"With a noiseless table and r true the choice is the exhaustive best in "
        f"{sum(round(k['share'] * k['cases']) for k in checks)} of {sum(k['cases'] for k in checks)} cases."
    )


def third(data: dict[str, Any]) -> Iterator[str]:
    """N that the published uncapped cells ask for."""
    yield "| row | 4 | 16 | 32 | 64 | known: 128 |"
    yield "|---|---|---|---|---|---|"
    for c in of(data, "N that the published"):
        row = " | ".join(spread(c["implied"][b], ".2f") for b in ("4", "16", "32", "64"))
        yield f"| {c['board']} {c['dataset']} | {row} | {spread(c['baseline1_over_baseline2'], '.2f')} |"


def regret(data: dict[str, Any]) -> Iterator[str]:
    """DESIGN 8 row 1."""
    head = "| profiled in the twin | cases | mean loss | 95 % | worst | exact | above the cap | points |"
    yield head + " loss, all clocks |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for c in of(data, "time lost by the joint choice"):
        name, d = c["comparison"].split("governor (")[1].rstrip(")"), c["loss"]
        above = "—" if c["truly_above_the_cap"] is None else f"{c['truly_above_the_cap']:.1%}"
        if c["above_by_w"]:
            above += f" (by {c['above_by_w']['mean']:.2f} W)"
        yield (
            f"| {name} | {d['n']} | {d['mean']:.2%} | {d['p95']:.2%} | {d['largest']:.1%} "
            f"| {c['exactly_the_best']:.0%} | {above} "
            f"| {c['points_measured']['median']:.0f} | {c['loss_against_all_clocks']['mean']:.2%} |"
        )
        subsets = [(f"cap {cap}", s) for cap, s in c["by_cap"].items()]
        subsets.append(("best point ≥ 2 % below the cap", c["loss_where_the_best_is_2_percent_below_the_cap"]))
        for text, s in subsets:
            yield f"| — {text} | {s['n']} | {s['mean']:.2%} | {s['p95']:.2%} | {s['largest']:.1%} | | | | |"


def training(data: dict[str, Any]) -> Iterator[str]:
    """Real training against the baselines."""
    yield "| cap | baseline 1 | baseline 2 | joint | fastest | speed-ups | loss | ResNet18's family: speed-ups |"
    yield "|---|---|---|---|---|---|---|---|"
    for c in of(data, "real training (digits), time"):
        s = c["seconds"]
        (f,) = of(data, "real training (digits) over", cap_w=c["cap_w"])
        family = ", ".join(spread(f[f"speed_up_over_{b}"], ".2f") for b in ("baseline1", "baseline2"))
        shown = " | ".join(f"{s[w]:.1f} s" for w in ("baseline1", "baseline2", "joint", "fastest"))
        ups = f"{c['speed_up_over_baseline1']:.2f}, {c['speed_up_over_baseline2']:.2f}"
        yield f"| {CAPS[c['cap_w']]} | {shown} | {ups} | {c['loss_against_fastest']:.1%} | {family} |"


def switching(data: dict[str, Any]) -> Iterator[str]:
    """Changes of the batch size on the way."""
    yield "| batch sizes in turns | Adam's state | samples against r |"
    yield "|---|---|---|"
    for c in of(data, "samples of a run that changes its batch size again"):
        a, n_a, b, n_b = c["pattern"]
        told = f"{c['excess']:+.0%} ± {c['standard_error']:.0%}"
        yield f"| {a} for {n_a} samples, {b} for {n_b} | {c['optimizer']} | {told} |"
    yield ""
    yield "| cap none / 4.5 W by turns | governor changes clock and batch size | clock only, 16 | clock only, 128 |"
    yield "|---|---|---|---|"
    for c in of(data, "real training under a changing cap"):
        s = c["seconds"]
        shown = " | ".join(f"{s[w]['mean']:.0f} s" for w in ("follow", "stay at 16", "stay at 128"))
        yield f"| every {c['period_s']:g} s, step times of {c['step_times_of']} | {shown} |"


SECTIONS = {
    "families": families,
    "cells": joint_cells,
    "baselines": baseline_cells,
    "overall": overall,
    "third": third,
    "regret": regret,
    "training": training,
    "switching": switching,
}


def main() -> None:
    """Write every section into the page."""
    if len(sys.argv) != 2:
        sys.exit("evaluation_tables: name the JSON file that `traingov-sim evaluate joint --json` printed")
    data = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    for name, section in SECTIONS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, rest = page.split(begin, 1)
        tail = rest.split(end, 1)[1]
        page = "\n".join([head + begin, "", *section(data), "", end + tail])
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
