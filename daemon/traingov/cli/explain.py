"""`traingov explain`: the running service's decisions, and the reasons for its newest choices in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from traingov_policies.wording import sentences

from .completion import job_names
from .errors import print_json
from .remote import service_options
from .rpc import call
from .times import clock_time


@click.command("explain")
@click.argument("job", required=False, shell_complete=job_names)
@click.option("--log", "whole_log", is_flag=True, help="All decisions that the service remembers, not only the newest.")
@service_options
def command(job: str | None, *, whole_log: bool, path: Path, as_json: bool) -> None:
    """Why the service chose what it chose: for JOB, or for all.

    The choice of each job with what came second, which constraint bound, what would change it, and what was assumed.
    """
    decisions = call(path, "explain", {} if job is None else {"job": job})
    if as_json:
        print_json([_with_text(d) for d in decisions])
        return
    if not decisions:
        click.echo("nothing was decided yet" + ("" if job is None else f" for {job}"))
    if whole_log or not any(_explanation(d) for d in decisions):
        for d in decisions:
            click.echo(f"{clock_time(d['at'])} {d['job'] or '—'} {d['kind']}: {d['text']}")
    since = 0
    for number, d in enumerate(decisions):
        if explanation := _explanation(d):
            click.echo(f"{d['job']}, {clock_time(d['at'])}:")
            click.echo("\n".join(f"  {sentence}" for sentence in explanation))
            since = number + 1
    if since and not whole_log:
        for d in decisions[since:]:  # what came after the choice is part of the answer: the guard's corrections, say
            click.echo(f"since then, {d['job'] or 'board'}, {d['kind']}: {d['text']} (at {clock_time(d['at'])})")


def _explanation(decision: Mapping[str, Any]) -> list[str]:
    """A decision's reasons in words; empty where it carries none."""
    return sentences(decision["detail"]) if decision["kind"] == "joint" and "detail" in decision else []


def _with_text(decision: Mapping[str, Any]) -> dict[str, Any]:
    """A decision with its explanation in words beside the plain values."""
    explanation = _explanation(decision)
    return {**decision, "explanation": explanation} if explanation else dict(decision)
