"""``traingovd``: reads the configuration, puts the knobs right if the last run was killed, and runs the loop."""

from __future__ import annotations

# isort: off
from . import lean  # noqa: F401  (before asyncio)

# isort: on
import argparse
import asyncio
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .config import Config, ConfigError, load_config
from .data import data_dir
from .desk import Desk
from .device.restore import JOURNAL_NAME, restore
from .device.worker import DeviceWorker
from .logs import log_from_a_thread
from .loop import Loop
from .metrics.scrape import serve_metrics
from .notify import notify
from .recorder import Recorder
from .reload import Reloader
from .schema_check import check_apart
from .sessions.listener import ListenError, inherited_listener
from .sessions.peer import Access, group_id
from .sessions.server import SessionServer
from .telemetry.choose import at_pace_of, choose
from .telemetry.rails import RailRule, RailTable, RailTableError
from .telemetry.samples import Sampler
from .watchdog import Watchdog, period_s

log = logging.getLogger("traingov.service")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service. Exit status: 0 after a clean stop, 2 for a wrong configuration, 1 for any other failure."""
    parser = argparse.ArgumentParser(prog="traingovd", description="Governor for neural-network training on Jetson.")
    parser.add_argument(
        "--config",
        type=Path,
        action="append",
        metavar="FILE",
        help="use these files over the defaults instead of /etc/traingov (may be given several times)",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="write every event and action to FILE")
    parser.add_argument("--version", action=_Version)
    options = parser.parse_args(argv)
    try:
        config = load_config(options.config, check_apart)
        table = RailTable.load(data_dir() / "boards")
    except (ConfigError, RailTableError, FileNotFoundError) as error:
        print(f"traingovd: {error}", file=sys.stderr)
        return 2
    if not os.path.isdir(config.root):  # never so of a board, whose root is /
        print(
            f"traingovd: root: there is no folder {config.root}: start the virtual board first that makes it "
            "(traingov-sim board --dir FOLDER), or leave root out of the settings to govern this machine",
            file=sys.stderr,
        )
        return 2
    listener = log_from_a_thread(config.log_level)
    try:
        return asyncio.run(_serve(config, table, options.record, options.config))
    except (ListenError, OSError, ConfigError) as error:
        print(f"traingovd: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    finally:
        listener.stop()


class _Version(argparse.Action):
    """``--version``: the installed package's, looked up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and end")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            print(f"traingovd, version {version('traingov')}")
        except PackageNotFoundError:
            parser.exit(1, "traingovd: no version: traingov runs from a source tree without its metadata\n")
        parser.exit()


async def _serve(config: Config, table: RailTable, record: Path | None, files: Sequence[Path] | None) -> int:
    os.makedirs(config.state_dir, mode=0o755, exist_ok=True)
    _restore_leftover(config)
    recorders: list[Recorder] = []

    def wrote(entry: dict[str, Any]) -> None:
        for recorder in recorders:
            recorder.entry(entry)

    worker = DeviceWorker(config.root, config.state_dir, wrote)
    board = worker.find()
    sampler = Sampler(table, board.name, _say_rule, config.corrections)
    telemetry = choose(config.telemetry, config.root, config.tegrastats)
    log.log(logging.INFO if telemetry.usable else logging.WARNING, "telemetry: %s: %s", telemetry.name, telemetry.why)
    settings = at_pace_of(telemetry.name, config.settings(sampler.rule))
    if group_id(config.user_group) is None:
        log.warning("no group %s on this machine: only root and this user may register jobs", config.user_group)
    if record is not None:
        recorders.append(Recorder(record, board, settings, config.cap, root=config.root))
    recorder = recorders[0] if recorders else None
    loop = Loop(config, settings, board, worker=worker, sampler=sampler, recorder=recorder, telemetry=telemetry.name)
    desk = Desk(config, loop)
    access = Access.from_system(config.user_group, config.admin_group)
    listener = inherited_listener(os.environ)  # systemd's socket unit, where there is one
    server = SessionServer(config.socket, desk, access=access, board=board.name, listener=listener)
    stop = asyncio.Event()
    reloader = Reloader(files, config, lambda: sampler.rule, desk.configured)
    # At a terminal, SIGHUP says that it is gone; to a service, that its configuration changed.
    hang_up = stop.set if sys.stdin is not None and sys.stdin.isatty() else reloader.request
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):  # their default would end us with the clock pinned
        signal.signal(number, signal.SIG_IGN)
    config.socket.parent.mkdir(parents=True, exist_ok=True)
    await server.start()
    loop.start(desk.advise)
    desk.begin()
    where = worker.node.path if worker.node is not None else "not found: it is looked for again when a job registers"
    log.info("%s, %s, power mode %s; GPU %s", board.name, board.release, board.power_mode, where)
    watchdog = Watchdog(loop.stuck, period_s(os.environ))
    notify("READY=1")
    watchdog.start()
    metrics = serve_metrics(config.metrics, loop)
    try:
        await stop.wait()
    finally:
        notify("STOPPING=1")
        if metrics is not None:
            metrics.stop()
        await server.close()
        report = await loop.stop()
        watchdog.stop()
        if recorder is not None:
            recorder.close()
    log.log(logging.ERROR if report.status == "failed" else logging.INFO, "restore: %s", report.text)
    return report.exit_status


def _restore_leftover(config: Config) -> None:
    """What a killed run left in the knobs goes back before anything else (DESIGN 5.1)."""
    out = io.StringIO()
    report = restore(config.root, str(config.state_dir / JOURNAL_NAME), out)
    if report.status != "nothing":
        log.warning("left over from an earlier run: %s", report.text)


def _say_rule(rule: RailRule, unknown: tuple[str, ...]) -> None:
    log.info("%s", rule.describe())
    if unknown:
        log.info("rails kept but in no sum: %s", ", ".join(unknown))


if __name__ == "__main__":
    sys.exit(main())
