"""``traingov-sim evaluate energy``: table II over the family of virtual AGX Orins, method by method."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from traingov_policies.fitting import MissingFitterError
from traingov_policies.sweep import to_csv

from ...surfaces.orin_family import load_orin_family
from ..energy import MEMBERS, evaluate_energy
from ..energy_methods import Family, sweep_rows
from ..report_energy import print_energy


@click.command("energy")
@click.option("--members", default=MEMBERS, show_default=True, type=click.IntRange(1), help="Boards of the family.")
@click.option("--seed", default=0, show_default=True, help="Of noise in sweeps and probes.")
@click.option(
    "--sweep-csv", type=click.Path(path_type=Path, dir_okay=False), metavar="S.csv",
    help="Only write one virtual board's sweep of the training tasks, for `traingov tree fit`.",
)  # fmt: skip
@click.option("--member", default=0, show_default=True, type=click.IntRange(0), help="Whose sweep.")
@click.option("--json", "as_json", is_flag=True, help="Print every comparison as one JSON list.")
def command(members: int, *, seed: int, sweep_csv: Path | None, member: int, as_json: bool) -> None:
    """Hold the energy policy against table II of the energy paper, the best clock, and time lost.

    Boards are simulated; some minutes on one core. Mode 0, the 30 W mode, FFG and MLG of the paper, a tree fitted by
    energy regret, the live search over jobs of the real tasks' lengths, and the best clock of each workload.
    """
    errors = Console(stderr=True)
    try:
        if sweep_csv is not None:
            rows = sweep_rows(Family(load_orin_family()), member, np.random.default_rng([seed, member]))
            sweep_csv.write_text(to_csv(rows), encoding="utf-8")
            return
        result = evaluate_energy(members, seed, say=lambda text: errors.print(f"… {text}"))
    except ImportError as error:
        print(f"traingov-sim evaluate energy: needs scikit-learn ({error}): pip install scikit-learn", file=sys.stderr)
        sys.exit(1)
    except (ValueError, IndexError, OSError, MissingFitterError) as error:
        print(f"traingov-sim evaluate energy: {error}", file=sys.stderr)
        sys.exit(1)
    if as_json:
        print(json.dumps(result))
    else:
        print_energy(Console(), result)
