"""How commands fail: one line on stderr, exit status 2 for wrong input, 1 for a failure (DESIGN 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


class WrongInput(click.ClickException):
    """The caller gave something wrong: exit status 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """One line."""
        click.echo(f"traingov: {self.format_message()}", err=True)


class Failure(WrongInput):
    """Something failed that the caller could not have known: exit status 1."""

    exit_code = 1


def systemd_runs(system: Path = Path("/run/systemd/system")) -> bool:
    """Whether systemd runs here, so that advice may name its commands (as sd_booted finds out)."""
    return system.is_dir()


def read_json(path: str) -> Any:
    """The JSON document in ``path``. Raises WrongInput naming file and line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise WrongInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise WrongInput(f"{path}: is not UTF-8 text") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise WrongInput(f"{path}:{error.lineno}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
        raise WrongInput(f"{path}: is no JSON that can be read here: nested too deeply, or a number too long") from None


def print_json(value: Any) -> None:
    """One JSON value on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))
