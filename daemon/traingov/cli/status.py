"""`traingov status`: what the governor does now and what the board draws, once or live."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .errors import Failure, WrongInput, print_json
from .remote import service_options
from .rpc import call
from .status_view import Row, bar, line, rows, sparkline
from .terminal import Keys, ended_in_order
from .times import clock_time, now

_STYLES = {"warning": "yellow", "good": "green", "": ""}
_LABEL = 11
_NARROW = 60
_KEPT = 300  # readings for the sparkline


@click.command("status")
@click.option("--watch", is_flag=True, help="Show it live until q or Ctrl-C; plain lines where the output is a pipe.")
@click.option(
    "--interval", "interval_s", type=click.FloatRange(0.2, 3600), default=1.0, show_default=True,
    help="Seconds between two looks of --watch.",
)  # fmt: skip
@service_options
def command(watch: bool, interval_s: float, path: Path, as_json: bool) -> None:
    """What the governor does now, and what the board draws."""

    def ask() -> dict[str, Any]:
        answer = call(path, "status")
        assert isinstance(answer, dict)
        return answer

    try:
        if watch:
            _live(ask, interval_s, as_json=as_json)
        elif as_json:
            print_json(ask())
        else:
            for row in rows(ask()):
                click.echo(f"{row.label:<{_LABEL}}{row.text}")
    except KeyError as error:
        raise Failure(f"the service does not tell {error}: it is of another version; restart it") from None


def _live(ask: Callable[[], dict[str, Any]], interval_s: float, *, as_json: bool) -> None:
    console = Console()
    try:
        with ended_in_order():
            if as_json or not console.is_terminal or console.is_dumb_terminal:
                _follow(ask, interval_s, as_json=as_json)
            else:
                _watch(ask, interval_s, console)
    except KeyboardInterrupt:
        pass


def _follow(ask: Callable[[], dict[str, Any]], interval_s: float, *, as_json: bool) -> None:
    """A line each time. The first answer has to come; later ones may fail while the service starts anew."""
    lost = False
    first = True
    with Keys() as keys:
        while first or not keys.quit_within(interval_s):
            try:
                status = ask()
            except WrongInput as error:
                if first:
                    raise
                if not lost:
                    click.echo(f"{clock_time(now())} {error.format_message()}; trying again", err=True)
                lost = True
            else:
                lost = False
                print_json(status) if as_json else click.echo(line(status))
            first = False


def _watch(ask: Callable[[], dict[str, Any]], interval_s: float, console: Console) -> None:
    status = ask()  # no service: one line, and no screen is taken
    powers: deque[float | None] = deque(maxlen=_KEPT)
    trouble: str | None = None
    with Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            powers.append(None if trouble else status["input_power_w"])
            live.update(screen(status, list(powers), trouble, console), refresh=True)
            if keys.quit_within(interval_s):
                return
            try:
                status, trouble = ask(), None
            except WrongInput as error:
                trouble = trouble or f"since {clock_time(now())}: {error.format_message()}; trying again"


def screen(status: dict[str, Any], powers: list[float | None], trouble: str | None, console: Console) -> RenderableType:
    """The live view: the rows of `status`, power as a bar and over time. ``trouble``: the status is an old one."""
    ascii_only = not (console.encoding or "").lower().startswith("utf")
    narrow = console.width < _NARROW
    head = Text(f"traingov  {clock_time(status['at'])}  (q quits)", style="bold", overflow="ellipsis", no_wrap=True)
    shown = [Row("no answer", trouble, "warning")] if trouble else []
    found = rows(status)
    if narrow:  # what does not change is the first to go
        found = [row for row in found if row.label not in ("GPU", "telemetry") or row.mood]
    room = max(8, console.width - _LABEL - 2)
    for row in found:
        shown.append(row)
        if row.label == "power":
            shown += _power(status, powers, room, ascii_only=ascii_only)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, width=_LABEL - 1)
    table.add_column(overflow="fold", ratio=1)
    for row in shown:
        style = "dim" if trouble and row.label != "no answer" else _STYLES[row.mood]
        table.add_row(Text(row.label, style="cyan"), Text(row.text, style=style))
    return Group(head, Text(""), table)


def _power(status: dict[str, Any], powers: list[float | None], room: int, *, ascii_only: bool) -> list[Row]:
    power_w, cap_w = status["input_power_w"], status["cap_w"]
    out = []
    if power_w is not None and cap_w is not None:
        text = bar(power_w, cap_w, max(4, min(40, room - 6)), ascii_only=ascii_only)
        out.append(Row("", f"{text} {100 * power_w / cap_w:.0f} %", "warning" if power_w > cap_w else "good"))
    known = [value for value in powers if value is not None]
    if known:
        top = max([*known, *([] if cap_w is None else [cap_w])])
        out.append(Row("", sparkline(powers[-min(room, 60) :], top, ascii_only=ascii_only).rstrip()))
    return out
