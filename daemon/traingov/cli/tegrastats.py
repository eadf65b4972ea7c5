"""``traingov tegrastats``: read tegrastats lines as the daemon reads them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import IO

import click

from traingov.telemetry.tegrastats import NotTegrastats, Reading, parse_line


@click.group("tegrastats")
def group() -> None:
    """Read the output of tegrastats."""


@group.command("parse")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def parse(file: str, as_json: bool) -> None:
    """Parse a tegrastats log, or standard input, line by line.

    Every line gives one line of output. A line that is not tegrastats gives {"error": ...} with --json, and a
    line that begins with "error:" without it.
    """
    for text in _lines(file):
        try:
            reading = parse_line(text)
        except NotTegrastats as error:
            click.echo(json.dumps({"error": str(error)}) if as_json else f"error: {error}")
            continue
        click.echo(json.dumps(reading.to_json()) if as_json else _describe(reading))


def _lines(file: str) -> Iterator[str]:
    """Lines of ``file`` or of standard input ("-"); whatever is not UTF-8 is replaced. Exits with 2 if it cannot."""
    if file == "-":
        yield from _decoded(sys.stdin.buffer)
        return
    try:
        with open(file, "rb") as stream:
            yield from _decoded(stream)
    except OSError as error:
        click.echo(f"error: {file}: {error.strerror}; give a file with tegrastats output, or - for stdin", err=True)
        sys.exit(2)


def _decoded(stream: IO[bytes]) -> Iterator[str]:
    for line in stream:
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def _describe(reading: Reading) -> str:
    """One line for people; what the line did not say is left out, never shown as 0."""
    parts = [reading.timestamp] if reading.timestamp else []
    gpu = _engine(reading.gpu_utilization, reading.gpu_frequency_hz)
    emc = _engine(reading.emc_utilization, reading.emc_frequency_hz)
    parts += [f"GPU {gpu}"] if gpu else []
    parts += [f"EMC {emc}"] if emc else []
    if reading.ram_used_bytes is not None:
        total = "?" if reading.ram_total_bytes is None else f"{reading.ram_total_bytes >> 20}"
        parts.append(f"RAM {reading.ram_used_bytes >> 20}/{total} MiB")
    if reading.cpus:
        parts.append(f"CPU {sum(cpu.online is True for cpu in reading.cpus)} of {len(reading.cpus)} online")
    parts += [f"{name} {power:.3f} W" for name, power in reading.rails_w.items()]
    if reading.temperatures_celsius:
        zone, hottest = max(reading.temperatures_celsius.items(), key=lambda item: item[1])
        parts.append(f"hottest {zone} {hottest:g} °C")
    if reading.unknown:
        parts.append(f"not understood: {' '.join(reading.unknown)}")
    return "  ".join(parts)


def _engine(utilization: float | None, frequency_hz: int | None) -> str:
    load = "" if utilization is None else f"{utilization:.0%}"
    clock = "" if frequency_hz is None else f"{frequency_hz // 1_000_000} MHz"
    return " ".join(part for part in (load, clock) if part)
