"""`traingov history`: every run that the service kept, from its file; no service is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..history.reading import HistoryError, details, job_names, reading, runs
from .completion import past_job_names
from .errors import Failure, WrongInput, print_json
from .times import clock_time, date_time, duration, energy, utc

_SHOWN = 20
_MOMENT_S = 0.1


@click.command("history")
@click.argument("job", required=False, shell_complete=past_job_names)
@click.option("--limit", type=click.IntRange(1), default=_SHOWN, show_default=True, help="At most so many runs.")
@click.option("--since", metavar="TIME", help="Runs that began then or later: 2026-01-31, or '2026-01-31 12:00'.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), default=Path("/var/lib/traingov"), show_default=True,
    help="Where the service keeps its history.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON, each run with its points, caps and choices.")
def command(job: str | None, limit: int, since: str | None, state_dir: Path, as_json: bool) -> None:
    """Runs of this machine, newest first; with JOB (a job, a workload, or a run's number) the newest in detail."""
    try:
        since_utc = None if since is None else utc(since)
    except (ValueError, OverflowError):
        raise WrongInput(f"--since: {since!r} is no time such as 2026-01-31 or '2026-01-31 12:00'") from None
    try:
        with reading(state_dir / "history.sqlite") as connection:
            found = runs(connection, job, since=since_utc, limit=limit)
            if job is not None and not found and since is None:
                names = ", ".join(job_names(connection)) or "none yet"
                raise WrongInput(f"no run of {job!r} in the history; its jobs are: {names}")
            if as_json:
                print_json([{**run, **details(connection, run["run"])} for run in found])
                return
            detail = details(connection, found[0]["run"]) if job is not None and found else None
    except HistoryError as error:
        raise Failure(str(error)) from None
    if not found:
        click.echo("no run" + ("" if since is None else f" since {date_time(str(since_utc))}"))
    elif detail is None:
        click.echo("\n".join(_line(run) for run in found))
    else:
        click.echo("\n".join(_detail(found[0], detail)))
        if found[1:]:
            click.echo("earlier:")
            click.echo("\n".join(_line(run) for run in found[1:]))


def _line(run: dict[str, Any]) -> str:
    """A run in one line."""
    return (
        f"{run['run']:>4}  {date_time(run['started_at'])}  {run['job']}, {run['policy']}: "
        f"{duration(run['elapsed_s'])}, {run['samples']} samples, "
        f"{energy(run['input_energy_j'])}{_flags(run)}, {_end(run)}"
    )


def _end(run: dict[str, Any]) -> str:
    return str(run["end_reason"] or f"running (as of {clock_time(run['updated_at'])})")


def _flags(run: dict[str, Any]) -> str:
    above = f", {run['above_cap_s']:.1f} s above the cap" if run["above_cap_s"] > 0 else ""
    return above + (", beside another job" if run["shared"] else "")


def _detail(run: dict[str, Any], more: dict[str, list[dict[str, Any]]]) -> list[str]:
    """A run with all that is kept of it."""
    total = "" if run["samples_total"] is None else f" of {run['samples_total']}"
    before = f" after {run['samples_done']} before" if run["samples_done"] else ""
    end = _end(run) if run["ended_at"] is None else f"{date_time(run['ended_at'])}, {run['end_reason']}"
    out = [
        f"run {run['run']}: {run['job']} (workload {run['workload']}, signature {run['signature']})",
        f"  board     {run['board']}, {run['release']}, power mode {run['power_mode']}",
        f"  policy    {run['policy']} ({run['objective']}), batch sizes {', '.join(map(str, run['batch_sizes']))}",
        f"  began     {date_time(run['started_at'])}",
        f"  ended     {end}",
        f"  work      {run['samples']}{total} samples{before} in {run['steps']} steps, {duration(run['elapsed_s'])}",
        f"  energy    {energy(run['input_energy_j'])} input, {energy(run['compute_energy_j'])} compute"
        + ("" if run["gap_s"] < 0.05 else f"; {run['gap_s']:.1f} s without a reading are not in it")
        + ("; another job ran in the meantime" if run["shared"] else ""),
        f"  cap       {run['above_cap_s']:.1f} s of {run['judged_s']:.1f} s above it, {run['guard_steps']} guard steps",
    ]
    for cap in more["caps"]:
        limit = "none" if cap["power_w"] is None else f"{cap['power_w']:g} W over {cap['window_s']:g} s"
        out.append(f"            {clock_time(cap['at'])} {limit} (set by {cap['source']})")
    out.append("  points")
    for point in more["points"]:
        if not point["samples"] and point["time_s"] < _MOMENT_S:
            continue  # the moment between registering and the first write
        spent = energy(point["input_energy_j"])
        out.append(
            f"            batch {point['batch_size']} at {_clock(point['gpu_frequency_hz'])}: "
            f"{duration(point['time_s'])}, {point['samples']} samples, {spent}"
        )
    out.append("  choices")
    out += [f"            {clock_time(c['at'])} {c['kind']}: {c['text']}" for c in more["choices"]]
    return out


def _clock(hz: int | None) -> str:
    return "the board's own governor" if hz is None else f"{hz / 1e6:.0f} MHz"
