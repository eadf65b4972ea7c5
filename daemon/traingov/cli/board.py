"""``traingov board``: record a board's kernel files into a folder, and show what traingov reads of a board."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from traingov.boardview import view
from traingov.config import Config, ConfigError, load_config
from traingov.data import data_dir
from traingov.device.boardtree import BoardTree, RecordedFiles, record
from traingov.device.files import Files, SystemFiles
from traingov.telemetry.rails import RailTable
from traingov.telemetry.tegrastats import NotTegrastats, parse_line

from .errors import Failure, WrongInput, print_json, read_json

TREE, LINES, READ = "tree.json", "tegrastats.txt", "read.json"
_WAIT_S = 10.0

_config_option = click.option(
    "--config", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Configuration instead of /etc/traingov (root and tegrastats count).",
)  # fmt: skip


@click.group("board")
def group() -> None:
    """Record this board for a test or a report, and see what is read of it."""


@group.command("record")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--lines", "count", default=3, show_default=True, type=click.IntRange(0, 1000), help="tegrastats lines.")
@_config_option
def record_command(directory: Path, count: int, files: tuple[Path, ...]) -> None:
    """Write this board's kernel files and tegrastats lines into DIRECTORY. Nothing on the board is changed.

    The files hold no serial number, address or host name. Run it as root: some files are closed to others.
    """
    config = _config(files)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise WrongInput(f"{directory} is there and not an empty folder: name a new one")
    system = SystemFiles(config.root)
    tree = record(system)
    lines, why = tegrastats_lines(config.tegrastats, count)
    seen = view(RecordedFiles(tree), lines, RailTable.load(data_dir() / "boards"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / TREE).write_text(json.dumps(tree.to_json(), indent=1) + "\n", encoding="utf-8")
        (directory / LINES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (directory / READ).write_text(json.dumps(seen, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Failure(f"{error.filename}: cannot be written: {error.strerror}") from None
    click.echo(f"wrote {directory}: {len(tree.files)} files, {len(tree.errors)} unreadable, {len(lines)} lines")
    if why:
        click.echo(f"tegrastats: {why}", err=True)
    if os.geteuid() != 0 and os.path.abspath(config.root) == "/":
        click.echo("not run as root: files that are closed to you are missing", err=True)


@group.command("read")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_config_option
def read_command(directory: Path | None, as_json: bool, files: tuple[Path, ...]) -> None:
    """Show what traingov reads of the board recorded in DIRECTORY, or of this one without it."""
    source: Files
    if directory is None:
        config = _config(files)
        source, (lines, why) = SystemFiles(config.root), tegrastats_lines(config.tegrastats, 1)
        if why:
            click.echo(f"tegrastats: {why}", err=True)
    else:
        tree, lines = load_recording(directory)
        source = RecordedFiles(tree)
    seen = view(source, lines, RailTable.load(data_dir() / "boards"))
    if as_json:
        print_json(seen)
    else:
        click.echo("\n".join(describe(seen)))


def load_recording(directory: Path) -> tuple[BoardTree, list[str]]:
    """A recorded folder: its tree and its tegrastats lines (none where the file is absent). Raises WrongInput."""
    path = directory / TREE
    try:
        tree = BoardTree.from_json(read_json(str(path)))
    except ValueError as error:
        raise WrongInput(f"{path}: {error}") from None
    lines: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        lines = (directory / LINES).read_text(encoding="utf-8", errors="replace").splitlines()
    return tree, lines


def tegrastats_lines(command: Sequence[str], count: int, wait_s: float = _WAIT_S) -> tuple[list[str], str | None]:
    """``count`` readings of tegrastats as it prints them, one a second; and why there are fewer, if so."""
    if not count:
        return [], None
    try:
        process = subprocess.Popen(
            [*command, "--interval", "1000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
    except OSError as error:
        return [], f"cannot start {command[0]}: {error.strerror or error}"
    assert process.stdout is not None
    lines: list[str] = []
    rest, until = b"", time.monotonic() + wait_s + count
    try:
        while len(lines) < count:
            left_s = until - time.monotonic()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                return lines, f"gave {len(lines)} of {count} readings in {wait_s + count:g} s"
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return lines, f"ended after {len(lines)} of {count} readings"
            *whole, rest = (rest + data[: 1 << 20]).split(b"\n")
            for line in whole:
                text = line.decode("utf-8", "replace").rstrip("\r")
                with contextlib.suppress(NotTegrastats):
                    parse_line(text)
                    lines.append(text)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    return lines[:count], None


def describe(seen: dict[str, Any]) -> list[str]:
    """What was read, in lines for people; what the board does not show is said to be missing."""
    gpu, sysfs = seen["gpu"], seen["sysfs"]
    lines = [f"{seen['board']}, {seen['release']}, power mode {seen['power_mode']}"]
    if gpu is None:
        lines.append("GPU: no devfreq node")
    else:
        clocks = [hz / 1e6 for hz in gpu["available_frequencies_hz"]]
        table = f"{len(clocks)} clocks, {clocks[0]:g} to {clocks[-1]:g} MHz" if clocks else "no clock table"
        lines.append(f"GPU {gpu['path']}: {table}; load file {gpu['load_path'] or 'none'}")
    lines += [f"kernel's files: {_sample(sysfs)}"]
    lines += [f"tegrastats: {_sample(sample)}" for sample in seen["tegrastats"]]
    return lines


def _sample(sample: dict[str, Any]) -> str:
    if "error" in sample:
        return str(sample["error"])
    rails = ", ".join(f"{rail} {power:g} W" for rail, power in sample["rails_w"].items()) or "no rail"
    power, hz, load = sample["input_power_w"], sample["gpu_frequency_hz"], sample["gpu_utilization"]
    return (
        f"input {'not measured' if power is None else f'{power:g} W'} ({rails}); "
        f"GPU {'clock unknown' if hz is None else f'{hz / 1e6:g} MHz'}, "
        f"{'load unknown' if load is None else f'{load:.0%} busy'}"
    )


def _config(files: tuple[Path, ...]) -> Config:
    try:
        return load_config(files or None)
    except ConfigError as error:
        raise WrongInput(str(error)) from None
