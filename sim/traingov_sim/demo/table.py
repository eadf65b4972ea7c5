"""The demonstration's last words: a table of what was measured on the virtual boards."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from .runs import CAP_W, Result

NOTE = "Simulated: gradient steps, batch sizes and accuracies are real; power and device time are the virtual boards'."


def comparisons(results: dict[str, Result]) -> dict[str, float]:
    """Ratios within this run: above 1 (speed-up, energy) or above 0 (saving share) the policy did better."""
    joint, b1, b2 = results["joint"], results["baseline1"], results["baseline2"]
    tree, mode0 = results["tree"], results["mode0"]
    return {
        "speed_up_over_baseline1": b1.mean_s / joint.mean_s,
        "speed_up_over_baseline2": b2.mean_s / joint.mean_s,
        "energy_ratio_baseline1": b1.mean_input_j / joint.mean_input_j,
        "energy_ratio_baseline2": b2.mean_input_j / joint.mean_input_j,
        "tree_compute_energy_saving": 1 - tree.mean_compute_j / mode0.mean_compute_j,
        "tree_input_energy_saving": 1 - tree.mean_input_j / mode0.mean_input_j,
        "tree_slowdown": tree.mean_s / mode0.mean_s,
    }


def print_tables(console: Console, results: dict[str, Result]) -> None:
    """Print both tables and the note."""
    ratios = comparisons(results)
    seeds = len(results["joint"].seconds)
    nano = Table(title=f"Virtual Jetson Nano, cap {CAP_W:g} W: digits to target accuracy (mean of {seeds} seeds)")
    for column, side in (("", "left"), ("batch @ clock", "left"), ("time", "right"), ("energy", "right"),
                         ("above cap", "right"), ("put back", "left")):  # fmt: skip
        nano.add_column(column, justify="right" if side == "right" else "left")
    for label in ("baseline1", "baseline2", "joint", "profile"):
        r = results[label]
        above = "—" if r.above_cap_s is None else f"{r.above_cap_s:.1f} s"
        style = "bold" if label == "joint" else "dim" if label == "profile" else None
        nano.add_row(r.title, r.point, f"{r.mean_s:.1f} s", f"{r.mean_input_j:.0f} J", above, _yes(r), style=style)
    console.print(nano)
    console.print(
        "[dim]baseline 1: the largest batch; baseline 2: the batch that the relation vector favours; both at "
        "the clock that the paper found safe for every model. Profiling is done once per model and board, with real "
        "training steps; the other rows do without it. above cap: for so long the 1 s mean was above the cap, until "
        "the guard had corrected it. put back: the GPU's bounds are as found. Figures differ from run to run.[/dim]"
    )
    console.print(
        f"joint: {ratios['speed_up_over_baseline1']:.2f}× as fast as baseline 1 and "
        f"{ratios['speed_up_over_baseline2']:.2f}× as fast as baseline 2, which use "
        f"{ratios['energy_ratio_baseline1']:.2f}× and {ratios['energy_ratio_baseline2']:.2f}× its energy."
    )
    orin = Table(title="Virtual AGX Orin: fine-tuning, the same number of steps")
    for column in ("", "batch @ clock", "time", "GPU + CPU energy", "input energy", "put back"):
        orin.add_column(column, justify="right" if column in ("time", "GPU + CPU energy", "input energy") else "left")
    for label in ("mode0", "tree"):
        r = results[label]
        style = "bold" if label == "tree" else None
        energies = (f"{r.mean_compute_j:.0f} J", f"{r.mean_input_j:.0f} J")
        orin.add_row(r.title, r.point, f"{r.mean_s:.1f} s", *energies, _yes(r), style=style)
    console.print(orin)
    console.print(
        "[dim]mode 0: the board's own governor. traingov energy: the clock of Algorithm 1's decision tree.[/dim]"
    )
    console.print(
        f"energy: {100 * ratios['tree_compute_energy_saving']:.1f} % less GPU + CPU energy "
        f"({100 * ratios['tree_input_energy_saving']:.1f} % less input energy) in "
        f"{ratios['tree_slowdown']:.2f}× the time."
    )
    console.print(f"[dim]{NOTE}[/dim]")


def _yes(result: Result) -> str:
    return "yes" if result.put_back else "[red]no[/red]"
