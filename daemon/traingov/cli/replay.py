"""`traingov replay`: a recording, or a bare tegrastats log, through a fresh governor."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from traingov_policies.codec import encode_action
from traingov_policies.events import JobRegistered
from traingov_policies.values import Board, Cap, PolicyName

from ..config import load_config
from ..data import data_dir
from ..replay.log import replay_log
from ..replay.recording import read, replay
from ..telemetry.rails import RailTable
from .errors import WrongInput, print_json


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--tegrastats", "is_log", is_flag=True, help="FILE is a bare tegrastats log; describe the job by options."
)
@click.option(
    "--interval", "interval_s", type=float, default=1.0, show_default=True, help="Log: seconds between lines."
)
@click.option("--board", "board_name", default="unknown", help="Log: board name, to read its rails.")
@click.option("--clocks", default="", metavar="HZ,HZ,…", help="Log: the GPU's clock table.")
@click.option("--batch-size", type=int, default=1, show_default=True, help="Log: the job's batch size.")
@click.option("--cap", "cap_w", type=float, metavar="W", help="Log: the cap.")
@click.option("--policy", type=click.Choice(["fixed", "observe"]), default="observe", show_default=True, help="Log.")
@click.option(
    "--tolerance", type=click.FloatRange(0, 0.1), default=0.0, show_default=True,
    help="Relative difference that numbers may have: for a recording made with another NumPy or on another machine.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True)
def command(  # noqa: PLR0917  one parameter an option
    file: Path,
    is_log: bool,
    interval_s: float,
    board_name: str,
    clocks: str,
    batch_size: int,
    cap_w: float | None,
    policy: str,
    tolerance: float,
    as_json: bool,
) -> None:
    """Feed recorded events to a fresh governor: the same actions must come out, and every invariant must hold.

    Exit status 1 when they do not.
    """
    try:
        if not is_log:
            _recording(file, tolerance, as_json)
            return
        with _opened(file) as lines:
            _log(lines, interval_s, Board(board_name, "unknown", "unknown", _table(clocks)), batch_size=batch_size,
                 cap=None if cap_w is None else Cap(cap_w), policy=PolicyName(policy), as_json=as_json)  # fmt: skip
    except OSError as error:
        raise WrongInput(f"{file}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise WrongInput(f"{file}: {error}") from None


def _opened(file: Path) -> TextIO:
    """The file as text, unpacked where its name ends in .gz."""
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8", errors="replace")
    return file.open(encoding="utf-8", errors="replace")


def _recording(file: Path, tolerance: float, as_json: bool) -> None:
    with _opened(file) as lines:
        result = replay(read(lines), tolerance)
    if as_json:
        print_json({**vars(result), "good": result.good})
    else:
        click.echo(f"{result.events} events over {result.duration_s:.1f} s, {result.actions} actions")
        click.echo("actions: the same" if result.difference is None else f"actions differ {result.difference}")
        click.echo("invariants: all hold" if not result.violations else "\n".join(result.violations))
    if not result.good:
        raise SystemExit(1)


def _log(
    lines: Iterable[str], interval_s: float, board: Board, *,
    batch_size: int, cap: Cap | None, policy: PolicyName, as_json: bool,
) -> None:  # fmt: skip
    table = RailTable.load(data_dir() / "boards")
    config = load_config([])
    settings = replace(config.settings(table.rule_for((), board.name)), policy=policy, sampling_interval_s=interval_s)
    if board.gpu_frequencies_hz:
        settings = replace(settings, fixed_frequency_hz=board.gpu_frequencies_hz[-1])
    job = JobRegistered(0.0, "log", "log", (batch_size,), batch_size)
    result = replay_log(lines, board, settings, cap, job=job, table=table)
    if as_json:
        print_json(
            {
                **result.summary.to_json(),
                "lines": result.lines,
                "foreign": result.foreign,
                "rails": result.rails,
                "actions": [{"t_s": t, **encode_action(a)} for t, a in result.actions],
            }
        )
        return
    s = result.summary
    click.echo(f"{result.lines} lines ({result.foreign} of them no tegrastats), {s.elapsed_s:.1f} s; {result.rails}")
    mean = "no input power in these lines" if s.mean_input_power_w is None else f"mean {s.mean_input_power_w:.2f} W"
    click.echo(f"{mean}, {s.input_energy_j:.1f} J input, {s.compute_energy_j:.1f} J compute; {s.gap_s:.1f} s in gaps")
    if cap is not None:
        click.echo(f"{s.above_cap_s:.1f} s of {s.judged_s:.1f} s above the cap")
    for t, action in result.actions:
        click.echo(f"{t:.2f} {type(action).__name__} {getattr(action, 'text', getattr(action, 'reason', ''))}")


def _table(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise WrongInput(f"--clocks: must be numbers of Hz with commas between, not {text!r}") from None
