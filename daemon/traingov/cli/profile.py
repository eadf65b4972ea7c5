"""`traingov profile --energy`: an energy sweep of a running job, its CSV and its U-curve (method B)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from traingov_policies.sweep import SweepRow, curves, to_csv
from traingov_policies.sweeping import clock_text

from ..store import write_atomically
from .bars import Told, progress_bar
from .completion import job_names
from .errors import Failure, WrongInput, print_json
from .remote import service_options
from .rpc import call
from .tree_fit import read_sweeps

_POLL_S = 1.0


@click.command("profile")
@click.option("--energy", is_flag=True, help="Sweep the clocks for energy: mode 0, then each of them.")
@click.option("--job", shell_complete=job_names, help="Which job, where several are registered.")
@click.option("--clocks", metavar="MHZ,...", help="Only these clocks, in MHz, nearest steps of the board's table.")
@click.option("--duration", "duration_s", type=click.FloatRange(0, min_open=True), help="Seconds per clock [300].")
@click.option("--steps", type=click.IntRange(3), help="Training steps per clock, instead of a duration.")
@click.option("--fresh", is_flag=True, help="Measure anew what an earlier sweep of this workload measured.")
@click.option("--stop", is_flag=True, help="End the sweep that runs; what was measured is kept.")
@click.option("--no-wait", is_flag=True, help="Return at once; `traingov status` shows the progress.")
@click.option("--from", "source", multiple=True, metavar="S.csv", help="Draw this sweep; no service is asked.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="S.csv", help="Write the rows.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="U.png",
    help="Draw the normalised U-curve (matplotlib).",
)  # fmt: skip
@service_options
def command(
    *,
    energy: bool,
    job: str | None,
    clocks: str | None,
    duration_s: float | None,
    steps: int | None,
    fresh: bool,
    stop: bool,
    no_wait: bool,
    source: tuple[str, ...],
    out: Path | None,
    plot: Path | None,
    path: Path,
    as_json: bool,
) -> None:
    """Measure what a running job costs at each GPU clock.

    The job trains on meanwhile; a sweep that was cut short goes on with the points it lacks. A job that is over before
    its time at a clock counts whole, and the sweep goes on when the same workload runs again.
    """
    if source:
        rows = read_sweeps(source)
    elif stop:
        answer = call(path, "profile.stop")
        _report(answer, as_json=as_json)
        return
    elif not energy:
        raise WrongInput("say what to profile: --energy (the joint policy profiles by itself)")
    else:
        if duration_s is not None and steps is not None:
            raise WrongInput("--duration and --steps: give one of them")
        if no_wait and (out or plot):
            raise WrongInput("--no-wait: the rows are not there yet; leave it out, or --out and --plot")
        params: dict[str, Any] = {"job": job, "duration_s": duration_s, "steps": steps, "fresh": fresh}
        params["clocks_hz"] = None if clocks is None else _clocks(clocks, call(path, "status")["clocks_hz"])
        answer = call(path, "profile.start", {k: v for k, v in params.items() if v is not None})
        if no_wait:
            _report(answer, as_json=as_json)
            return
        with progress_bar() as bar:
            answer = _wait(lambda: call(path, "profile.get"), bar, quiet=as_json)
        _report(answer, as_json=as_json)
        rows = [SweepRow(**row) for row in answer["rows"]]
        if answer["sweep"]["state"] == "stopped":
            raise Failure(answer["sweep"]["text"])
        if not rows:
            raise Failure("no point could be measured: traingov explain says why")
    if out is not None:
        _write(out, to_csv(rows).encode())
    if plot is not None:
        _write(plot, _picture(rows, plot.suffix.removeprefix(".") or "png"))


def _clocks(text: str, table: list[int]) -> list[int]:
    """Steps of the board's table for megahertz written by hand (1300 for 1300.5). Raises WrongInput."""
    chosen = []
    for part in text.split(","):
        try:
            wanted = float(part) * 1e6
        except ValueError:
            raise WrongInput(f"--clocks: {part!r} is not a number of MHz") from None
        nearest = min(table, key=lambda hz: abs(hz - wanted), default=0)
        if abs(nearest - wanted) > 1e6:
            raise WrongInput(f"--clocks: {part} MHz is not in the board's table: {', '.join(_mhz(hz) for hz in table)}")
        chosen.append(nearest)
    return sorted(set(chosen))


def _wait(get: Callable[[], Any], bar: Told | None, *, quiet: bool) -> Any:
    """Until the sweep is finished or stopped; tells ``bar``, or where there is none says each new step of it."""
    said = None
    while True:
        answer = get()
        sweep = answer["sweep"]
        if sweep is None:
            raise Failure("the service knows of no sweep any more: it was started anew; start the sweep again")
        if sweep["state"] not in ("running", "waiting"):
            return answer
        if bar is not None:
            bar(sweep["measured"] + len(sweep["failed"]), sweep["points"], sweep["text"])
        elif not quiet and sweep["text"] != said:
            said = sweep["text"]
            click.echo(said, err=True)
        time.sleep(_POLL_S)


def _report(answer: Any, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    sweep = answer["sweep"]
    click.echo("no sweep was asked for" if sweep is None else f"{sweep['workload']}: {sweep['text']}")
    rows = answer["rows"]
    baseline = next((row for row in rows if row["gpu_frequency_hz"] is None), None)
    for row in rows:
        click.echo(_line(row, baseline))


def _line(row: dict[str, Any], baseline: dict[str, Any] | None) -> str:
    parts = [f"{clock_text(row['gpu_frequency_hz']):>10}: {row['time_s']:.2f} s"]
    for name, what in (("compute_energy_j", "compute"), ("input_energy_j", "input")):
        if row[name] is None:
            continue
        saved = ""
        if baseline is not None and baseline is not row and baseline[name]:
            saved = f" ({100 * (1 - row[name] / baseline[name]):+.1f} % saved)"
        parts.append(f"{row[name]:.1f} J {what}{saved}")
    return ", ".join(parts)


def _picture(rows: list[SweepRow], kind: str) -> bytes:
    from ..plots.require import MissingPlotsError  # noqa: PLC0415  matplotlib is loaded only to draw
    from ..plots.ucurve import draw_ucurves  # noqa: PLC0415

    compute = all(row.compute_energy_j is not None for row in rows)
    try:
        measured = curves(rows, "compute" if compute else "input")
        return draw_ucurves(measured, "GPU + CPU energy" if compute else "input energy", kind)
    except MissingPlotsError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        raise WrongInput(str(error)) from None


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomically(path.absolute(), data)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from None


def _mhz(hz: int) -> str:
    return f"{hz / 1e6:g}"
