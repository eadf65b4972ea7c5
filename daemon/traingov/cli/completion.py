"""`traingov completion`: the script that makes a shell complete commands, options and job names."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from .errors import WrongInput
from .rpc import call

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_TRAINGOV_COMPLETE"
_PATIENCE_S = 0.5


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script for SHELL: for a try, `source <(traingov completion bash)`.

    To keep it, write it to ~/.local/share/bash-completion/completions/traingov (bash), to _traingov in a folder of
    $fpath (zsh), or to ~/.config/fish/completions/traingov.fish (fish). The Debian package brings all three.
    """
    click.echo(script(shell))


def script(shell: str) -> str:
    """The completion script of click for ``shell``."""
    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(click.Command("traingov"), {}, "traingov", _VARIABLE)
    # Not completion.source(): for bash it runs bash to look at its version, and the package is built without one.
    return completion.source_template % completion.source_vars()


def job_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The jobs that the running service knows; none where none answers, since a completion never complains."""
    path = context.params.get("path") or Path("/run/traingov/traingov.sock")
    names: list[str] = []
    with contextlib.suppress(WrongInput, KeyError, TypeError):
        answer = call(Path(path), "jobs", timeout_s=_PATIENCE_S)
        names = [job["job"] for job in [*answer["running"], *reversed(answer["ended"])]]
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(incomplete)]


def past_job_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The jobs of the history."""
    from ..history.reading import HistoryError, job_names, reading  # noqa: PLC0415  sqlite3, only where it is used

    state_dir = Path(context.params.get("state_dir") or "/var/lib/traingov")
    with contextlib.suppress(HistoryError), reading(state_dir / "history.sqlite") as connection:
        return [CompletionItem(name) for name in job_names(connection, 200) if name.startswith(incomplete)]
    return []
