"""Progress of long work: a bar on standard error where that is a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Told = Callable[[int, int, str], None]
"""(done, of how many, in words)."""


@contextmanager
def progress_bar() -> Iterator[Told | None]:
    """Something to be told of progress; None where nobody would see it."""
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    columns = (BarColumn(), TextColumn("{task.completed:.0f} of {task.total:.0f}"), TimeElapsedColumn(),
               TextColumn("{task.description}"))  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=1)

        def told(done: int, total: int, words: str) -> None:
            progress.update(task, completed=done, total=max(1, total), description=words)

        yield told
