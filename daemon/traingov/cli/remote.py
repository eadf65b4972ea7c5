"""Commands that ask or tell the running service: jobs, policy (others have modules of their own)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from traingov_policies.values import Objective, PolicyName

from .errors import print_json
from .rpc import call
from .times import duration, energy

_DEFAULT_SOCKET = "/run/traingov/traingov.sock"


def service_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every command takes which speaks to the service."""
    socket = click.option(
        "--socket", "path", type=click.Path(path_type=Path, readable=False),
        envvar="TRAINGOV_SOCKET", show_envvar=True, default=_DEFAULT_SOCKET,
        show_default=True, help="Where the service listens.",
    )  # fmt: skip
    return socket(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command))


@click.command("jobs")
@service_options
def jobs(path: Path, as_json: bool) -> None:
    """Running jobs and the last that ended, with time and energy."""
    answer = call(path, "jobs")
    if as_json:
        print_json(answer)
        return
    if not answer["running"] and not answer["ended"]:
        click.echo("no job has registered since the service started; `traingov history` shows earlier ones")
    for state in ("running", "ended"):
        for job in answer[state]:
            batches = ", ".join(f"{n} at {b}" for b, n in job["samples_by_batch"].items())
            spent = None if job["mean_input_power_w"] is None else job["input_energy_j"]
            click.echo(
                f"{job['job']} ({state if job['ended'] is None else job['ended']}): {duration(job['elapsed_s'])}, "
                f"energy {energy(spent)}, {job['above_cap_s']:.1f} s above the cap; samples: {batches or '—'}"
            )


@click.group("policy")
def policy() -> None:
    """The policy for jobs that do not ask for one themselves."""


@policy.command("get")
@service_options
def policy_get(path: Path, as_json: bool) -> None:
    """The policy in force."""
    _show_policy(call(path, "policy.get"), as_json)


@policy.command("set")
@click.argument("name", type=click.Choice([p.value for p in PolicyName]))
@click.option("--objective", type=click.Choice([o.value for o in Objective]))
@service_options
def policy_set(name: str, objective: str | None, path: Path, as_json: bool) -> None:
    """Choose another policy, for the running jobs too."""
    params = {"policy": name} | ({} if objective is None else {"objective": objective})
    _show_policy(call(path, "policy.set", params), as_json)


def _show_policy(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{answer['policy']} ({answer['objective']})")
