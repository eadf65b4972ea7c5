"""What a person sees while runs train: a line that moves on a terminal, plain lines for what went wrong anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from traingov_policies.sequential import Step

from .run import Run


def describe(run: Run) -> str:
    """A run in words."""
    if run.error is not None:
        result = f"failed: {run.error}"
    else:
        result = "missed the target" if run.samples is None else f"{run.samples:.0f} samples"
    return f"batch {run.batch_size}, seed {run.seed}: {result}"


class Report:
    """Told of runs and steps; counts the runs that failed. ``bar`` and ``task`` are None away from a terminal."""

    def __init__(self, console: Console, bar: Progress | None, verbose: bool) -> None:
        self._console = console
        self._bar = bar
        self._verbose = verbose
        self._task = None if bar is None else bar.add_task("starting", total=None)
        self.failed = 0
        self.last_step: Step | None = None

    def run(self, run: Run) -> None:
        """A run has ended."""
        if run.error is not None:
            self.failed += 1
        if run.error is not None or self._verbose:
            self._console.print(f"traingov-proxy: {describe(run)}", markup=False, highlight=False, soft_wrap=True)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=describe(run))

    def step(self, step: Step) -> None:
        """The sequential design has chosen."""
        self.last_step = step
        if self._verbose:
            what = ", ".join(map(str, step.batch_sizes)) or "stop"
            self._console.print(
                f"traingov-proxy: next: {what} ({step.why})", markup=False, highlight=False, soft_wrap=True
            )


@contextmanager
def shown(total: int, verbose: bool) -> Iterator[Report]:
    """A report on standard error; ``total`` runs at most."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Report(console, None, verbose)
        return
    # MofNCompleteColumn would do, but rich 11 does not have it.
    columns = (TextColumn("{task.completed:.0f} runs of at most " + str(total)), BarColumn(), TimeElapsedColumn(),
               TextColumn("{task.description}"))  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        yield Report(progress.console, progress, verbose)
