"""The tables of ``traingov-sim evaluate joint`` for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from .published_table import CAP_TEXT

Comparison = Mapping[str, Any]


def print_report(console: Console, result: Mapping[str, Any]) -> None:
    """Everything, one table a subject."""
    rows: list[Comparison] = result["comparisons"]
    _families(console, result["families"])
    for variant, clocks in dict.fromkeys((c["variant"], c["clocks"]) for c in rows if "speed_up" in c):
        _published(console, [c for c in rows if c.get("variant") == variant and c.get("clocks") == clocks])
    for c in rows:
        if "published_mean_at_quantile" in c:
            _overall(console, c)
        elif c.get("comparison", "").startswith("noise-free"):
            text = f"[bold]{c['comparison']}[/] ({c['clocks']} clocks, {c['variant']})"
            console.print(f"{text}: {c['share']:.2%} of {c['cases']} cases")
    for c in (c for c in rows if "implied" in c):
        ratios = "; ".join(f"{b}: {_range(d, '.2f')}" for b, d in c["implied"].items())
        console.print(f"[bold]{c['comparison']}[/] ({c['board']} {c['dataset']}): {ratios}")
    _regret(console, [c for c in rows if "points_measured" in c])
    _training(console, rows)
    for c in rows:
        if not any(k in c for k in _OURS):
            console.print(_plain(c), highlight=False)


_OURS = (
    "variant",
    "points_measured",
    "speed_up_over_baseline1",
    "after_share",
    "period_s",
    "published_mean_at_quantile",
)


def _families(console: Console, found: list[Comparison]) -> None:
    table = Table("board", "workload", "surfaces", "no violation", "worst R-hat", "effective draws", "sha256")
    for f in found:
        worst = max(d["worst_r_hat"] for d in f["diagnostics"])
        least = min(d["least_effective_draws"] for d in f["diagnostics"])
        table.add_row(
            *(f["board"], f["workload"], str(f["members"]), str(f["without_any_violation"])),
            *(f"{worst:.3f}", str(least), f["sha256"][:12]),
        )
    table.title = "Families of simulated boards that meet the published facts; frozen"
    console.print(table)


def _published(console: Console, rows: list[Comparison]) -> None:
    seconds = [c for c in rows if c["comparison"].startswith("seconds of ")]
    if not seconds:
        return
    table = Table(
        "row", "cap", "what", "kind", "published", "5 %", "median", "95 %", "published at", "speed-up (median)"
    )
    table.title = f"Seconds over the family: {seconds[0]['clocks']} clocks, N {seconds[0]['variant']}"
    ups = {_key(c): c for c in rows if c["comparison"].startswith("speed-up of joint over")}
    last = ""
    for c in seconds:
        what = c["comparison"].removeprefix("seconds of ")
        name = f"{c['board']} {c['workload']} {c['dataset']}"
        published = "—" if c["published"] is None else f"{c['published']:.0f}"
        quantile = f"{c['published_at_quantile']:.0%}" if "published_at_quantile" in c else "—"
        d, up = c["seconds"], ups.get((*_key(c)[:5], f"speed-up of joint over {what}"))
        gain = ""
        if up is not None:
            shown = "" if up["published"] is None else f" (published {up['published']:.2f})"
            gain = f"{up['speed_up']['median']:.2f}{shown}"
        table.add_row(
            *("" if name == last else name, CAP_TEXT[c["cap_w"]], what, c["kind"], published),
            *(f"{d['p5']:.0f}", f"{d['median']:.0f}", f"{d['p95']:.0f}", quantile, gain),
        )
        last = name
    console.print(table)


def _key(c: Comparison) -> tuple[Any, ...]:
    return (c["board"], c["workload"], c["dataset"], c["cap_w"], c["clocks"], c["comparison"])


def _overall(console: Console, c: Comparison) -> None:
    p = c["published"]
    console.print(
        f"[bold]{c['comparison']}[/] ({c['clocks']}): mean {_range(c['mean'], '.2f')} "
        f"(published {p['mean']:.2f}, at {c['published_mean_at_quantile']:.0%}), "
        f"peak {_range(c['peak'], '.2f')} (published {p['peak']:.2f}, at {c['published_peak_at_quantile']:.0%}); "
        f"over baseline 1 {_range(c['mean_over_baseline1'], '.2f')} (published {p['mean_over_baseline1']:.2f})"
    )


def _regret(console: Console, rows: list[Comparison]) -> None:
    if not rows:
        return
    table = Table(
        "table profiled in the twin", "cases", "mean loss", "95 %", "worst", "exact", "above cap", "points", "s"
    )
    table.title = "Time lost by the joint choice, r true (target: mean ≤ 0.5 %, 95 % ≤ 2 %)"
    for c in rows:
        name = c["comparison"].split("governor (")[1].rstrip(")")
        subsets = [(name, c["loss"])] + [(f"  {cap}", d) for cap, d in c["by_cap"].items()]
        subsets.append(("  best at least 2 % below the cap", c["loss_where_the_best_is_2_percent_below_the_cap"]))
        for k, (text, d) in enumerate(subsets):
            first = k == 0
            above = c["truly_above_the_cap"]
            table.add_row(
                *(text, str(d["n"]), f"{d['mean']:.2%}", f"{d['p95']:.2%}", f"{d['largest']:.2%}"),
                f"{c['exactly_the_best']:.0%}" if first else "",
                "" if not first or above is None else f"{above:.0%}",
                f"{c['points_measured']['median']:.0f}" if first else "",
                f"{c['profiling_s']['median']:.0f}" if first else "",
            )
    console.print(table)


def _training(console: Console, rows: list[Comparison]) -> None:
    real = [c for c in rows if "speed_up_over_baseline1" in c]
    if real:
        table = Table(
            "real training (digits)", "cap", "baseline 1", "baseline 2", "joint", "fastest", "speed-ups", "loss"
        )
        for c in real:
            if "seconds" in c:
                s = c["seconds"]
                shown = [f"{s[w]:.2f} s" for w in ("baseline1", "baseline2", "joint", "fastest")]
                ups = f"{c['speed_up_over_baseline1']:.2f}, {c['speed_up_over_baseline2']:.2f}"
                table.add_row("default board", CAP_TEXT[c["cap_w"]], *shown, ups, f"{c['loss_against_fastest']:.1%}")
            else:
                ups = ", ".join(_range(c[f"speed_up_over_{b}"], ".2f") for b in ("baseline1", "baseline2"))
                loss = _range(c["loss_against_fastest"], ".1%")
                table.add_row("family", CAP_TEXT[c["cap_w"]], "", "", "", "", ups, loss)
        console.print(table)
    switches = [c for c in rows if "after_share" in c]
    if switches:
        table = Table("batch size changes", "after", "samples against r", "runs", "missed")
        for c in switches:
            told = f"{c['excess']:+.1%} ± {c['standard_error']:.1%}"
            change = f"{c['first']} → {c['second']}"
            table.add_row(change, f"{c['after_share']:.0%}", told, str(c["runs"]), str(c["missed"]))
        console.print(table)
    for c in (c for c in rows if "pattern" in c):
        a, n_a, b, n_b = c["pattern"]
        told = f"{c['excess']:+.0%} ± {c['standard_error']:.0%} samples against r"
        console.print(f"[bold]{a} for {n_a} samples, {b} for {n_b}, in turns[/], Adam {c['optimizer']}: {told}")
    for c in (c for c in rows if "period_s" in c):
        means = ", ".join(f"{name}: {d['mean']:.1f} s" for name, d in c["seconds"].items())
        console.print(f"[bold]{c['comparison']}[/] (every {c['period_s']:g} s, {c['step_times_of']}): {means}")


def _plain(c: Comparison) -> str:
    """A comparison of another module on one line: its name, then its figures."""
    name = str(c.get("comparison", "comparison"))
    shown = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in c.items() if not _long(v)]
    return f"{name}: " + ", ".join(text for text in shown if not text.startswith("comparison "))


def _long(value: object) -> bool:
    return isinstance(value, (list, dict)) and len(value) > 3


def _range(d: Mapping[str, float], spec: str) -> str:
    """Median and the 5 and 95 % points."""
    return f"{d['median']:{spec}} ({d['p5']:{spec}} … {d['p95']:{spec}})"
