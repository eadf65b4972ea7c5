"""``traingov-sim demo``: govern real training on virtual boards, and compare with the baselines."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .demo.lab import DemoError, Lab, write_report
from .demo.runs import Show, run_all
from .demo.table import NOTE, comparisons, print_tables


@click.command("demo")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1, 20), help="Trainings per Nano run.")
@click.option("--steps", default=400, show_default=True, type=click.IntRange(50, 100_000), help="Fine-tuning steps.")
@click.option("--record", type=click.Path(path_type=Path, file_okay=False), help="Keep the services' recordings here.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Work in this new folder and keep it.")
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the joint run's page to this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
def command(  # noqa: PLR0917  one parameter an option
    seeds: int, steps: int, record: Path | None, keep: Path | None, report: Path | None, as_json: bool
) -> None:
    """Train to a target accuracy under a cap on a virtual Nano, then fine-tune on a virtual AGX Orin.

    Needs no root and leaves nothing behind. Exit status 1 when a run fails or a clock was not put back.
    """
    console = Console(stderr=as_json)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        if record is not None:
            record.mkdir(parents=True, exist_ok=True)
        if report is not None:
            report.parent.mkdir(parents=True, exist_ok=True)
        lab = Lab(keep)
        try:
            with _bars(console) as show:
                results = run_all(lab, show, tuple(range(seeds)), steps, record)
            if report is not None:
                write_report(lab.directory / "joint" / "state", report)
        except KeyboardInterrupt:
            lab.close()
            left = lab.left()
            print(f"traingov-sim demo: {left or 'stopped; nothing is left'}", file=sys.stderr)
            sys.exit(130)
        finally:
            lab.close()
    except (DemoError, OSError) as error:
        print(f"traingov-sim demo: {error}", file=sys.stderr)
        sys.exit(1)
    if as_json:
        rows = {label: result.to_json() for label, result in results.items()}
        print(json.dumps({"kind": "simulated", "note": NOTE, "runs": rows, "comparisons": comparisons(results)}))
    else:
        print_tables(console, results)
        console.print(_about_report(report, keep, record))
    if not all(result.put_back for result in results.values()):
        sys.exit(1)


def _about_report(report: Path | None, keep: Path | None, record: Path | None) -> str:
    """Where the page of the governed run is, or how to get one."""
    if report is not None:
        return f"Report of the joint run, for a browser: {report}"
    if keep is not None:
        return f"Report of the joint run: traingov report --state-dir {keep / 'joint' / 'state'} --html report.html"
    if record is not None:
        return f"Report of the joint run: traingov report --recording {record / 'joint.jsonl'} --html report.html"
    return "Report of the joint run, for a browser: traingov-sim demo --report build/demo-report.html"


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _bars(console: Console) -> Iterator[Show]:
    columns = (TextColumn("{task.fields[run]:>10}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, int] = {}

        def show(run: str, share: float, words: str) -> None:
            if run not in tasks:
                tasks[run] = progress.add_task("", total=1.0, run=run)
            progress.update(tasks[run], completed=share, description=words)  # type: ignore[arg-type]

        yield show
