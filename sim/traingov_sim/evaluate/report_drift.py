"""The tables of ``traingov-sim evaluate drift``."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def print_drift(console: Console, result: dict[str, Any]) -> None:
    """Each part that was run."""
    if "detector" in result:
        _detector(console, result["detector"])
    if "probing" in result:
        _plain(console, "Probes at other points (simulated)", result["probing"])
    if "partial" in result:
        _partial(console, result["partial"])
    if "scenarios" in result:
        _scenarios(console, result["scenarios"]["rows"])
    for part, why in result["left_out"].items():
        console.print(f"{part}: left out, {why}")


def _detector(console: Console, d: dict[str, Any]) -> None:
    clean = d["clean"]
    console.print(
        f"Detector, simulated seconds: {clean['false_alarms']} false alarms in {clean['hours']:.0f} clean hours "
        f"({clean['per_1000_h']:.2f} a 1,000 h, 95 % below {clean['upper_95_per_1000_h']:.2f})"
    )
    for quantity, delay in d["delay"].items():
        console.print(f"  5 % shift of {quantity}: delay {delay['mean_s']:.1f} s mean, {delay['p95_s']:.1f} s 95 %")
    for name in ("noise", "shift", "thresholds"):
        _rows(console, f"by {name}", d[name])


def _partial(console: Console, d: dict[str, Any]) -> None:
    table = Table(title="Partial re-profiling (simulated drifts)")
    for i, name in enumerate(
        ("shape", "points", "time error before", "after", "worst cell", "power after", "outcomes")
    ):
        table.add_column(name, justify="left" if i in {0, 6} else "right")
    for name, r in d["shapes"].items():
        outcomes = ", ".join(f"{k} {v}" for k, v in r["outcomes"].items())
        mean, worst = r["time_error"]["mean"], r["time_error"]["worst"]
        table.add_row(
            *(name, f"{100 * r['points_share']['mean']:.0f} %", f"{100 * r['before']['mean']:.1f} %"),
            *(f"{100 * mean['mean']:.1f} %", f"{100 * worst['mean']:.1f} %"),
            *(f"{100 * r['power_error']['mean']['mean']:.1f} %", outcomes),
        )
    console.print(table)


def _scenarios(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(title="Sources of drift under the whole governor, in the twin (simulated)")
    names = (
        *("source", "verdicts", "shift time, power", "delay", "points again", "time error", "regret", "lost"),
        *("measuring", "what was done"),
    )
    for i, name in enumerate(names):
        table.add_column(name, justify="left" if i in {0, 1, 9} else "right")
    for r in rows:
        table.add_row(*scenario_cells(r))
    console.print(table)
    console.print("lost: seconds of training beyond what the same board loses without a source, within the run.")


def scenario_cells(r: dict[str, Any]) -> list[str]:
    """One source's figures in words."""
    delay = r["delay_s"]
    return [
        r["source"],
        ", ".join(f"{v} {n}" for v, n in r["verdicts"].items()),
        f"{100 * r['shift_time']:+.1f} %, {100 * r['shift_power']:+.1f} %",
        "—" if delay is None else f"{delay['median']:.0f} s (most {delay['largest']:.0f} s)",
        f"{r['remeasured']:.1f} ({100 * r['points_share']:.0f} %)",
        f"{100 * (r['time_error_before'] or 0):.1f} → {100 * (r['time_error_after'] or 0):.1f} %",
        f"{100 * r['regret_before']:.1f} → {100 * r['regret_after']:.1f} %",
        f"{r['lost_s']['mean']:+.0f} s",
        f"{r['measuring_s']:.0f} s",
        ", ".join(f"{k} {v}" for k, v in r["results"].items()) or "—",
    ]


def _rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=title)
    for key in rows[0]:
        table.add_column(key, justify="right")
    for row in rows:
        table.add_row(*map(_short, row.values()))
    console.print(table)


def _short(value: Any) -> str:
    """A figure, or the median and 95 % of a distribution."""
    if isinstance(value, dict) and "median" in value:
        return f"{value['median']:.4g} (95 % {value['p95']:.4g})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(console: Console, title: str, data: dict[str, Any]) -> None:
    """Figures without a table of their own: lists of rows as tables, the rest as lines."""
    console.print(title)
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            _rows(console, key, value)
        else:
            console.print(f"  {key}: {value}")
