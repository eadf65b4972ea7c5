"""``traingov cap``: the cap in force, what every source asks for, and caps set by command."""

from __future__ import annotations

import math
import pwd
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .errors import WrongInput, print_json
from .remote import service_options
from .rpc import call


@click.group("cap")
def group() -> None:
    """The power cap: mean input power over a window stays below it."""


@group.command("get")
@service_options
def cap_get(path: Path, as_json: bool) -> None:
    """The cap in force and what every source asks for."""
    _show(call(path, "cap.get"), as_json)


def _positive(unit: str, most: int) -> Callable[[click.Context, click.Parameter | None, str | None], float | None]:
    """A check of an argument or option: a positive number of ``unit``, ``most`` at most. It raises WrongInput."""

    def check(_: click.Context, param: click.Parameter | None, value: str | None) -> float | None:
        if value is None:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number <= most:
            name = param.opts[0] if isinstance(param, click.Option) else "POWER_W"
            raise WrongInput(f"{name}: must be a positive number of {unit}, {most} at most, not {value}")
        return number

    return check


_watts = _positive("watts", 10_000)


class _CapSet(click.Command):
    """Takes a negative number for what it is meant as, and not for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            for word in given:
                if re.match(r"-[0-9.]", word) and word.startswith(error.option_name):
                    _watts(ctx, None, word)
            raise


@group.command("set", cls=_CapSet)
@click.argument("power_w", callback=_watts)
@click.option(
    "--window",
    "window_s",
    metavar="NUMBER",
    callback=_positive("seconds", 3600),
    help="Seconds over which the mean is taken (default 1).",
)
@click.option("--burst", "burst_w", metavar="NUMBER", callback=_watts, help="Bound for the 100 ms mean as well.")
@click.option("--source", help="In whose name, such as that of a program; each name holds one cap.")
@click.option(
    "--ttl",
    "ttl_s",
    metavar="NUMBER",
    callback=_positive("seconds", 31_536_000),
    help="Lapses after so many seconds unless it is set again.",
)
@click.option("--override", is_flag=True, help="Holds alone, also where another source asks for less power.")
@service_options
def cap_set(power_w: float, override: bool, path: Path, as_json: bool, **more: Any) -> None:
    """Ask for a cap of POWER_W watts. The lowest of all sources is in force."""
    params: dict[str, Any] = {"power_w": power_w, **{k: v for k, v in more.items() if v is not None}}
    if override:
        params["override"] = True
    answer = call(path, "cap.set", params)
    _show(answer, as_json)
    mine = "command" if more["source"] is None else f"command {more['source']}"
    if not as_json and answer["source"] != mine:
        click.echo(f"what was set is kept, but {answer['source']} asks for less; --override makes it hold alone")


@group.command("clear")
@click.option("--source", help="Only what was set in this name.")
@service_options
def cap_clear(source: str | None, path: Path, as_json: bool) -> None:
    """Take back what was set by command. What the configuration asks for stays."""
    _show(call(path, "cap.clear", {} if source is None else {"source": source}), as_json)


def _show(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    if answer["power_w"] is None:
        click.echo("no cap: no source asks for one")
    else:
        click.echo(f"{_limit(answer)} ({_who(answer)})")
    if len(answer["sources"]) > 1 or any(s["override"] or s["expires_in_s"] is not None for s in answer["sources"]):
        for source in answer["sources"]:
            mark = "*" if source["in_force"] else " "
            lapses = "" if source["expires_in_s"] is None else f", lapses in {source['expires_in_s']:.0f} s"
            override = ", overrides the others" if source["override"] else ""
            click.echo(f"{mark} {_limit(source):<18} {_who(source)}{lapses}{override}")
    if answer["battery"] is not None:
        click.echo(f"  battery: {_battery(answer['battery'])}")
    for name, text in answer["problems"].items():
        click.echo(f"  {name}: {text}")


def _limit(values: dict[str, Any]) -> str:
    burst = "" if values.get("burst_w") is None else f", 100 ms mean below {values['burst_w']:g} W"
    return f"{values['power_w']:g} W over {values['window_s']:g} s{burst}"


def _who(values: dict[str, Any]) -> str:
    user = "" if values["uid"] is None else f" by {_user(values['uid'])}"
    return f"{values['source']}{user}, since {values['set_at']}"


def _user(uid: int) -> str:
    # Looked up here and not in the service: a lookup may ask the network.
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _battery(values: dict[str, Any]) -> str:
    percent = "charge not shown" if values["percent"] is None else f"{values['percent']:.0f} %"
    power = "" if values["power_w"] is None else f", {values['power_w']:.1f} W"
    return f"{values['name']}, {percent}, {values['status'] or 'status not shown'}{power}"
