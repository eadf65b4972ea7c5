"""Writes traingov.1 and traingovd.8 into a folder, from the commands' own help.

python3 packaging/manpages.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from traingov.cli.main import main as traingov

VERSION = "0.1.0"


def escaped(text: str) -> str:
    """Text as roff takes it: no backslash, hyphen or leading dot of it is a command."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in lines)


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """``command`` and all below it, each with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from commands(child, f"{path} {name}")


def section(path: str, command: click.Command) -> str:
    """One command: how it is called, what it does, its options."""
    context = click.Context(command, info_name=path)
    words = " ".join(command.collect_usage_pieces(context))
    out = [f".SS {escaped(path)} {escaped(words)}", escaped(" ".join((command.help or "").replace("\b", "").split()))]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != "help":
            out += [".TP", f".B {escaped(record[0])}", escaped(" ".join(record[1].split()))]
    return "\n".join(out)


def traingov_page() -> str:
    """traingov(1)."""
    sections = [section(path, c) for path, c in commands(traingov, "traingov") if not isinstance(c, click.Group)]
    return "\n".join([
        f'.TH TRAINGOV 1 "" "traingov {VERSION}" "User Commands"',
        ".SH NAME", "traingov \\- ask and command the governor for neural\\-network training",
        ".SH SYNOPSIS", ".B traingov", ".I COMMAND", "[\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        "Talks to \\fBtraingovd\\fR(8) over its socket, and reads and writes the files that it uses. Members of group",
        "traingov may ask; root and members of group traingov\\-admin may set caps and policies.",
        ".SH COMMANDS", *sections,
        ".SH EXIT STATUS", "0 on success, 1 on a failure, 2 for wrong input; the reason is one line on stderr.",
        ".SH SEE ALSO", ".BR traingovd (8)", "",
    ])  # fmt: skip


def traingovd_page() -> str:
    """traingovd(8)."""
    return "\n".join([
        f'.TH TRAINGOVD 8 "" "traingov {VERSION}" "System Administration"',
        ".SH NAME", "traingovd \\- governor for neural\\-network training on NVIDIA Jetson",
        ".SH SYNOPSIS", ".B traingovd", "[\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fB\\-\\-record\\fR \\fIFILE\\fR]",
        "[\\fB\\-\\-version\\fR]",
        ".SH DESCRIPTION",
        "Watches board power, takes registrations of training jobs on /run/traingov/traingov.sock, sets the GPU",
        "clock and advises the batch size. Gives the clock back when the last job ends, when it stops, and after a",
        "crash (\\fBtraingov restore\\fR). Normally started by traingov.service.",
        ".SH OPTIONS",
        ".TP", ".BI \\-\\-config \\ FILE",
        "Use these files over the defaults instead of /etc/traingov; may be repeated.",
        ".TP", ".BI \\-\\-record \\ FILE", "Write every event and action to FILE, for \\fBtraingov replay\\fR.",
        ".TP", ".B \\-\\-version", "Show the version and end.",
        ".SH SIGNALS",
        ".TP", ".B SIGHUP", "Read the configuration again. Cap, policy, objective and log level take effect at once,",
        "other keys with the next start; a wrong file changes nothing and is logged. At a terminal: stop.",
        ".TP", ".B SIGTERM, SIGINT, SIGQUIT", "Give the clock back and end.",
        ".SH FILES",
        ".TP", ".I /etc/traingov/traingov.yaml, /etc/traingov/conf.d/*.yaml", "Settings, laid over the defaults.",
        ".TP", ".I /usr/lib/python3/dist\\-packages/traingov/etc/traingov.yaml", "The defaults, each explained.",
        ".TP", ".I /var/lib/traingov", "Saved clocks (restore.json), measured tables, runs (history.sqlite).",
        ".SH EXIT STATUS", "0 after a clean stop, 2 for a wrong configuration, 1 for any other failure.",
        ".SH SEE ALSO", ".BR traingov (1)", "",
    ])  # fmt: skip


def main() -> int:
    """Write both pages."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print("manpages.py: name the folder to write to", file=sys.stderr)
        return 2
    for name, page in (("traingov.1", traingov_page()), ("traingovd.8", traingovd_page())):
        (Path(sys.argv[1]) / name).write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
