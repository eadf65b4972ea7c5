"""`traingov doctor`: whether this machine is ready, with what to do where it is not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from ..config import SYSTEM_FILE, Config, ConfigError, load_config
from ..device.files import SystemFiles
from ..doctor import access, board, sensors, software
from ..doctor.finding import ATTENTION, OK, PROBLEM, UNSEEN, Finding
from ..metrics.access import NOT_SERVED
from .errors import WrongInput, print_json, systemd_runs
from .rpc import call

_STYLE = {OK: "green", ATTENTION: "yellow", PROBLEM: "red", UNSEEN: "cyan"}
_WIDTH = 15


@click.command("doctor")
@click.option(
    "--config", "files", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="Look with these settings instead of /etc/traingov, as traingovd takes them: a virtual board's, say.",
)  # fmt: skip
@click.option(
    "--socket",
    type=click.Path(path_type=Path, readable=False),
    envvar="TRAINGOV_SOCKET",
    show_envvar=True,
    help="Where the service listens, if not where the settings say.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")  # fmt: skip
def command(files: tuple[Path, ...], socket: Path | None, as_json: bool) -> None:
    """Look at board, sensors, permissions, service and libraries. Exit status 1 where there is a problem.

    Needs no root, writes nothing, and says what it could not look at.
    """
    config, found = _configuration(files)
    findings = [found, *_look(config, socket or config.socket)]
    counts = {state: sum(f.state == state for f in findings) for state in _STYLE}
    if as_json:
        print_json({"findings": [f.to_json() for f in findings], "counts": counts})
    else:
        for finding in findings:
            state = (
                click.style(f"{finding.state:<10}", fg=_STYLE[finding.state]) if _colour() else f"{finding.state:<10}"
            )
            click.echo(f"{state}{finding.check:<{_WIDTH}} {finding.text}")
            if finding.advice and finding.state != OK:
                click.echo(f"{'':<10}{'':<{_WIDTH}} → {finding.advice}")
        click.echo(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    raise SystemExit(1 if counts[PROBLEM] else 0)


def _configuration(files: tuple[Path, ...]) -> tuple[Config, Finding]:
    """The settings to look with: where the files are wrong, the defaults."""
    try:
        config = load_config(files or None)
        config.settings(sensors.any_rule())  # reads the decision tree as well
    except ConfigError as error:
        advice = "traingov check FILE looks again; the defaults are used for what follows"
        return load_config(()), Finding("configuration", PROBLEM, str(error), advice)
    if files:
        return config, Finding("configuration", OK, f"{', '.join(map(str, files))} over the defaults")
    there = f"{SYSTEM_FILE}" if SYSTEM_FILE.exists() else f"the defaults ({SYSTEM_FILE} is not there)"
    return config, Finding("configuration", OK, f"{there}; policy {config.values['policy']}")


def _look(config: Config, socket: Path) -> list[Finding]:
    system = SystemFiles(config.root)
    status: dict[str, Any] | None = None
    why = ""
    try:
        status = call(socket, "status")
    except WrongInput as error:
        why = error.format_message()
    answers, systemd = status is not None, systemd_runs()
    not_served = None if status is None else status["conditions"].get(NOT_SERVED)
    looks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("board", lambda: board.look(system, governed=bool(status and status["jobs"]))),
        ("telemetry", lambda: sensors.look(system, config.tegrastats, config.telemetry)),
        ("permissions", lambda: access.groups(access.this_user(), config.user_group, config.admin_group)),
        (
            "service",
            lambda: [
                software.service(status, why, systemd=systemd),
                software.unit(answers, systemd=systemd),
                software.metrics(config.metrics, answers, not_served),
            ],
        ),
        ("state", lambda: access.state(config.state_dir, answers)),
        ("other programs", software.others),
        ("software", lambda: [software.kernel(), *software.libraries()]),
    ]
    out: list[Finding] = []
    for name, look in looks:
        try:
            out += look()
        except OSError as error:  # one thing that cannot be looked at hides nothing else
            out.append(Finding(name, UNSEEN, f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")))
    return out


def _colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
