"""`traingov report`: one run in words, or as a page that needs nothing but a browser. No service is asked."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from ..replay.recording import read
from ..report.recorded import from_recording
from ..report.stored import from_state
from ..report.subject import ReportError, Subject
from ..report.text import lines, plain
from ..store import write_atomically
from .completion import past_job_names
from .errors import Failure, WrongInput, print_json


@click.command("report")
@click.argument("job", required=False, shell_complete=past_job_names)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to this file.")
@click.option(
    "--recording",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take the run from a recording (traingovd --record), .jsonl or .jsonl.gz, not from the history.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=Path("/var/lib/traingov"),
    show_default=True,
    help="Where the service keeps its history.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")  # fmt: skip
def command(job: str | None, html: Path | None, recording: Path | None, state_dir: Path, as_json: bool) -> None:
    """The newest run, or that of JOB (a job, a workload, or a run's number): what it cost, and why so.

    The page has a timeline, the tables with the chosen point, the energy curves, and every decision with its reasons.
    """
    if html is not None and not html.absolute().parent.is_dir():
        raise WrongInput(f"--html: {html}: there is no folder {html.parent}; make it first, or name another file")
    subject = _subject(job, recording, state_dir)
    if html is not None:
        from ..report.page import page  # noqa: PLC0415  only where it is used

        data = page(subject, version("traingov")).encode("utf-8", "replace")
        try:
            write_atomically(html, data)
        except OSError as error:
            raise Failure(f"{html}: cannot be written: {error.strerror or error}") from None
        click.echo(f"{html}: {subject.source}, {len(data) / 1000:.0f} kB", err=as_json)
    if as_json:
        print_json(plain(subject))
    elif html is None:
        click.echo("\n".join(lines(subject)))


def _subject(job: str | None, recording: Path | None, state_dir: Path) -> Subject:
    try:
        return from_state(state_dir, job) if recording is None else _recorded(recording, job)
    except ReportError as error:
        raise (Failure if job is None else WrongInput)(str(error)) from None


def _recorded(path: Path, job: str | None) -> Subject:
    try:
        return from_recording(_entries(path), job, path.name)
    except (OSError, EOFError, zlib.error) as error:
        raise WrongInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise WrongInput(f"{path}: is no recording that can be reported on: {error}") from None


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as text:
        yield from read(text)
