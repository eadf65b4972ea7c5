"""`traingov service`: the systemd units of an installation by pip or uv. The Debian package brings its own."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from .errors import Failure, WrongInput, print_json

_MARK = "# Written by `traingov service install`; `traingov service uninstall` removes it. Change it by drop-ins.\n"
_PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGED = "lib/systemd/system/traingov.service"
_CONFIG = "etc/traingov/traingov.yaml"
# file of packaging/ → where it goes
_FILES = {
    "systemd/traingov.service": "etc/systemd/system/traingov.service",
    "systemd/traingov.socket": "etc/systemd/system/traingov.socket",
    "systemd/traingov.sysusers": "etc/sysusers.d/traingov.conf",
    "systemd/traingov.tmpfiles": "etc/tmpfiles.d/traingov.conf",
    "udev/traingov.udev": "etc/udev/rules.d/60-traingov.rules",
}
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""Folders that the unit's sandbox hides from the service."""


@click.group("service")
def group() -> None:
    """Install the systemd units of an installation by pip or uv, and look at them."""


@group.command("install")
@click.option("--root", default="/", metavar="DIR", help="Write below DIR and start nothing, for building an image.")
@click.option("--no-start", is_flag=True, help="Install, but neither enable nor start.")
def install(root: str, no_start: bool) -> None:
    """Write units, users, udev rule and a first configuration, then enable and start the service."""
    base = _base(root)
    if (base / _PACKAGED).exists() or (base / "usr" / _PACKAGED).exists():
        raise WrongInput("the Debian package is installed and has its own units: use systemctl, or purge it first")
    scripts = _scripts()
    written = []
    for source, target in _FILES.items():
        text = _source(source)
        if source.endswith(".service"):
            text = with_commands(text, scripts)
        written.append(_write(base / target, _MARK + text))
    if not (base / _CONFIG).exists():  # an administrator's settings are never touched
        written.append(_write(base / _CONFIG, _source("config/traingov.yaml")))
    for path in written:
        click.echo(f"wrote {path}")
    if root != "/":
        return
    _run("systemd-sysusers", str(base / "etc/sysusers.d/traingov.conf"))
    _run("systemd-tmpfiles", "--create", str(base / "etc/tmpfiles.d/traingov.conf"))
    if Path("/run/udev/control").exists():  # none in a container
        _run("udevadm", "control", "--reload")
        _run("udevadm", "trigger", "--subsystem-match=devfreq", "--action=change")
    _run("systemctl", "daemon-reload")
    if not no_start:
        _run("systemctl", "enable", "traingov.service", "traingov.socket")
        # Not `enable --now`: a service that runs already is to run the new program.
        _run("systemctl", "restart", "traingov.service")
        click.echo("traingov runs and observes; choose a policy in /etc/traingov/traingov.yaml")


@group.command("uninstall")
@click.option("--root", default="/", metavar="DIR", help="Remove below DIR and stop nothing.")
def uninstall(root: str) -> None:
    """Stop the service and remove what `install` wrote. Configuration, tables, users and groups stay."""
    base = _base(root)
    ours = [base / target for target in _FILES.values() if _is_ours(base / target)]
    if not ours:
        raise WrongInput(f"nothing below {base} was written by `traingov service install`")
    if root == "/":
        # Stopping gives the clock back; a failure must not leave the units half removed.
        _run("systemctl", "disable", "--now", "traingov.service", "traingov.socket")
    for path in ours:
        path.unlink()
        click.echo(f"removed {path}")
    if root == "/":
        _run("systemctl", "daemon-reload")
    click.echo(f"kept {base / 'etc/traingov'} and {base / 'var/lib/traingov'}: remove them by hand if you like")


@group.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Whether the service is installed, enabled and running, and how it ended last. Exit status 1 unless it runs."""
    keys = (
        "LoadState",
        "UnitFileState",
        "ActiveState",
        "SubState",
        "Result",
        "NRestarts",
        "StatusText",
        "FragmentPath",
    )
    text = _run("systemctl", "show", "--property", ",".join(keys), "traingov.service")
    found: dict[str, Any] = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    found = {key: found.get(key, "") for key in keys}
    if as_json:
        print_json(found)
    elif found["LoadState"] == "not-found":
        click.echo("not installed: `sudo traingov service install`")
    else:
        click.echo(f"{found['ActiveState']} ({found['SubState']}), {found['UnitFileState'] or 'not enabled'}, "
                   f"{found['NRestarts'] or 0} restarts, last result {found['Result']}")  # fmt: skip
        click.echo(f"unit {found['FragmentPath']}")
        if found["StatusText"]:
            click.echo(found["StatusText"])
    sys.exit(0 if found["ActiveState"] in ("active", "reloading") else 1)


def with_commands(unit: str, scripts: Path) -> str:
    """The unit's text with the commands of ``scripts`` in place of those in /usr/bin."""
    quoted = str(scripts).replace("%", "%%")
    return unit.replace("=/usr/bin/traingovd", f"={quoted}/traingovd").replace(
        "=+/usr/bin/traingov ", f"=+{quoted}/traingov "
    )


def unreadable(path: Path) -> str | None:
    """Why the service could not run a program at ``path``; None where it can."""
    hidden = next((folder for folder in _HIDDEN if path.is_relative_to(folder)), None)
    if hidden is not None:
        return f"{path} lies in {hidden}, which the service does not see"
    for folder in (path, *path.parents):
        try:
            if not folder.stat().st_mode & (stat.S_IXOTH if folder.is_dir() else stat.S_IROTH):
                return f"{folder} is closed to other users, so the service's own cannot enter it"
        except OSError as error:
            return f"{folder}: {error.strerror}"
    if any(character.isspace() for character in str(path)):
        return f"{path} has a space in it"
    return None


def _scripts() -> Path:
    """The folder of traingovd and traingov, which the service must be able to run. Raises WrongInput."""
    scripts = Path(sys.executable).parent
    if not (scripts / "traingovd").exists():
        scripts = Path(sys.argv[0]).resolve().parent
    if not (scripts / "traingovd").exists():
        raise WrongInput(f"traingovd is not beside {sys.executable}: install with pip into an environment of its own")
    for path in (scripts / "traingovd", Path(sys.executable).resolve(), _PACKAGE):
        reason = unreadable(path)
        if reason is not None:
            raise WrongInput(
                f"{reason}: install elsewhere, such as python3 -m venv /opt/traingov && /opt/traingov/bin/pip install "
                "traingov"
            )
    return scripts


def _source(name: str) -> str:
    """A file of packaging/: beside the package in a wheel, at the top of the tree in a checkout. Raises Failure."""
    for folder in (_PACKAGE / "packaging", _PACKAGE.parents[1] / "packaging"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise Failure(f"{name} is missing from this installation: reinstall traingov")


def _base(root: str) -> Path:
    base = Path(root)
    if not base.is_dir():
        raise WrongInput(f"--root {root} is no folder")
    if root == "/" and os.geteuid() != 0:
        raise Failure("writes to /etc: run it as root, with sudo")
    return base


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _is_ours(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8").startswith(_MARK)
    except (OSError, UnicodeDecodeError):
        return False


def _run(*words: str) -> str:
    """Run a program; its output. Raises Failure with what it said."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=90)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{words[0]}: {error}: this needs a running systemd") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise Failure(f"{shlex.join(words)}: {said}")
    return done.stdout
