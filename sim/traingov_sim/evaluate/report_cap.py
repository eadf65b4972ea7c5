"""The tables of ``traingov-sim evaluate cap``."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

_NUMBERS = (
    *("series", "board", "above", "steady", "steady, not measuring", "by telemetry", "overshoot", "settling"),
    *("guard ≤ 2 samples", "lost", "by batch, clock", "one batch size", "measuring"),
)


def print_cap(console: Console, result: dict[str, Any]) -> None:
    """Boards and series as a table, and the targets."""
    table = Table(title="Power against a changing cap (simulated; windows of 1 s of true power)")
    for i, name in enumerate(_NUMBERS):
        table.add_column(name, justify="left" if i < 2 else "right")
    for r in sorted(result["rows"], key=lambda r: r["series"]):
        table.add_row(*cells(r))
    console.print(table)
    console.print(
        "Targets: steady ≤ 0.1 %, guard within 2 samples of a violated window, lost ≤ 2 % over a solar day.\n"
        "lost: progress against one who knows the surface and every future cap (by batch, by clock); "
        "one batch size: what that one loses "
        "with the clock alone."
    )


def cells(r: dict[str, Any]) -> list[str]:
    """One row's figures in words."""
    guard, settling = r["guard_samples"], r["settling_s"]
    within = "—" if guard["within_2"] is None else f"{100 * guard['within_2']:.0f} % of {guard['violations']}"
    return [
        r["series"],
        r["board"],
        f"{100 * r['share_above']:.2f} %",
        f"{100 * r['steady_share_above']:.3f} %",
        f"{100 * r['steady_share_above_without_measuring']:.3f} %",
        f"{100 * r['steady_share_above_by_telemetry']:.3f} %",
        f"{100 * r['overshoot_share_of_energy']:.2f} %",
        "—" if settling is None else f"{settling['median']:.1f} s, 95 % {settling['p95']:.1f} s",
        within,
        f"{100 * r['lost_against_clairvoyant']:.1f} %",
        f"{100 * r['lost_by_batch_size']:.1f}, {100 * r['lost_by_clock']:.1f} %",
        f"{100 * r['clairvoyant_with_one_batch_size_loses']:.1f} %",
        f"{100 * r['measuring_share_of_time']:.1f} %",
    ]
