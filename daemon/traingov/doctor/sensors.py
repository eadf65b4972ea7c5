"""Telemetry: which sources there are, a real line of tegrastats, and which rails make up input power."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

from ..data import data_dir
from ..device.board import identify
from ..device.files import SystemFiles
from ..telemetry.choose import choose, survey
from ..telemetry.rails import RailRule, RailTable, RailTableError
from ..telemetry.sampling import set_interval
from ..telemetry.tegrastats import NotTegrastats, parse_line
from .finding import ATTENTION, OK, PROBLEM, UNSEEN, Finding

_PATIENCE_S = 5.0
_LINE_MOST = 16_384


def look(files: SystemFiles, tegrastats: Sequence[str], wanted: str) -> list[Finding]:
    """The sources, and where tegrastats can be run, a line of it and its rails."""
    chosen = choose(wanted, files.root, tegrastats)
    out = [
        Finding(
            "telemetry",
            OK if chosen.usable else PROBLEM,
            f"{chosen.name}: {chosen.why}",
            "" if chosen.usable else "install what is missing, or name another source: telemetry: in the settings",
        )
    ]
    usable = False
    for source in survey(files.root, tegrastats):
        usable |= source.name == "tegrastats" and source.usable
        if source.name != chosen.name:
            out.append(Finding(f"source {source.name}", OK if source.usable else UNSEEN, source.why))
    if not usable:
        return out
    text, why = first_line(tegrastats)
    if text is None:
        state = PROBLEM if chosen.name == "tegrastats" else ATTENTION
        return [*out, Finding("tegrastats", state, why, "run it by hand; sudo may be needed on older releases")]
    return [*out, *_line(text, files)]


def _line(text: str, files: SystemFiles) -> list[Finding]:
    try:
        reading = parse_line(text)
    except NotTegrastats:
        return [
            Finding(
                "tegrastats",
                PROBLEM,
                f"its line is not understood: {text[:120]!r}",
                "please report this line; traingov tegrastats parse shows what is read of it",
            )
        ]
    unknown = f"; not understood: {' '.join(reading.unknown)[:120]}" if reading.unknown else ""
    busy = "not shown" if reading.gpu_utilization is None else f"{100 * reading.gpu_utilization:.0f} %"
    out = [
        Finding(
            "tegrastats",
            ATTENTION if unknown else OK,
            f"a line was read: {len(reading.rails_w)} rails, GPU load "
            f"{busy}, {len(reading.temperatures_celsius)} temperatures{unknown}",
            "please report what was not understood: it is kept, and used for nothing" if unknown else "",
        )
    ]
    try:
        table = RailTable.load(data_dir() / "boards")
    except (RailTableError, FileNotFoundError) as error:
        return [*out, Finding("rails", PROBLEM, str(error), "reinstall traingov")]
    rule = table.rule_for(reading.rails_w, identify(files).name)
    shown = ", ".join(f"{name} {watts:.2f} W" for name, watts in reading.rails_w.items()) or "none"
    if not reading.rails_w:
        return [
            *out,
            Finding(
                "rails",
                ATTENTION,
                "tegrastats shows no power rail to this user: no cap can be kept",
                "sudo traingov doctor shows whether root sees them; then use the drop-in rails.conf",
            ),
        ]
    if rule.input_power_w(reading.rails_w) is None:
        return [
            *out,
            Finding(
                "rails",
                ATTENTION,
                f"{shown}; {rule.describe()}: input power is not known",
                "write a board file, as etc/boards shows",
            ),
        ]
    left = rule.unknown(reading.rails_w)
    return [
        *out,
        Finding("rails", OK, f"{shown}; {rule.describe()}" + (f"; in no sum: {', '.join(left)}" if left else "")),
    ]


def any_rule() -> RailRule:
    """A rule to read settings with, where the board's own does not matter."""
    return RailRule("unknown", "unknown board", (), ())


def first_line(command: Sequence[str]) -> tuple[str | None, str]:
    """The first line that ``command`` prints, or None and why there is none. The program is ended."""
    words = list(command)
    set_interval(words, 0.2)
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return None, f"{words[0]} cannot be started: {error.strerror or error}"
    try:
        assert process.stdout is not None
        fd = process.stdout.fileno()
        data = b""
        until = time.monotonic() + _PATIENCE_S
        while b"\n" not in data and len(data) < _LINE_MOST:
            ready, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(fd, 4096) if ready else b""
            if not chunk:
                said = f"ended with status {process.wait(1)}" if ready else f"printed no line in {_PATIENCE_S:g} s"
                return None, f"{words[0]} {said}"
            data += chunk
        return data.split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r\0 "), ""
    except subprocess.TimeoutExpired:
        return None, f"{words[0]} closed its output and goes on"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
