"""`traingov metrics`: what belongs to serving metrics."""

from __future__ import annotations

import click

from ..metrics.access import hash_password


@click.group("metrics")
def group() -> None:
    """Passwords for the metrics that the service offers to Prometheus."""


@group.command("password")
@click.option("--password", prompt=True, hide_input=True, confirmation_prompt=True, help="Asked for when not given.")
def password(*, password: str) -> None:
    """Hash a password for `metrics.users` in the configuration."""
    click.echo(hash_password(password))
