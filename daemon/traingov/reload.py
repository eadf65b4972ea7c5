"""Reload on SIGHUP: reads the configuration again, takes over what may change while jobs run, names what may not.

A wrong file changes nothing: the old configuration stays, and the log and `systemctl status` say why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .config import Config, ConfigError, load_config
from .notify import notify
from .schema_check import check_apart
from .telemetry.rails import RailRule

log = logging.getLogger("traingov.reload")

LIVE = ("cap", "cap_sources", "policy", "objective", "guard", "rails", "log_level")
"""Keys that take effect at once; all others are read at the start only."""


class Reloader:
    """Reads the files anew each time ``request`` is called. ``apply`` gets the old and the new configuration."""

    def __init__(
        self,
        files: Sequence[Path] | None,
        config: Config,
        rule: Callable[[], RailRule],
        apply: Callable[[Config, Config], None],
        send: Callable[[str], None] = notify,
    ) -> None:
        self._files = files
        self._config = config
        self._rule = rule
        self._apply = apply
        self._send = send
        self._running: asyncio.Task[None] | None = None
        self._again = False

    def request(self) -> None:
        """Reload soon. One that comes while another runs is carried out after it."""
        if self._running is not None and not self._running.done():
            self._again = True
            return
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        while True:
            self._again = False
            text = await self._reload()
            if not self._again:
                break
        self._send(f"READY=1\nSTATUS={text}")

    async def _reload(self) -> str:
        try:
            new = await asyncio.get_running_loop().run_in_executor(None, self._read)
        except (ConfigError, OSError) as error:
            log.error("reload: %s; the old configuration stays", error)
            return f"The old configuration stays: {error}"
        old, self._config = self._config, new
        changed = list(_changed(old.values, new.values))
        self._apply(old, new)
        if old.log_level != new.log_level:
            logging.getLogger().setLevel(new.log_level.upper())
        later = [key for key in changed if key.partition(".")[0] not in LIVE]
        if later:
            log.warning("reload: %s changed, which takes effect when the service is restarted", ", ".join(later))
        now = [key for key in changed if key not in later]
        log.info("reload: %s", f"taken over: {', '.join(now)}" if now else "nothing changed that is taken over now")
        return "Configuration reloaded"

    def _read(self) -> Config:
        config = load_config(self._files, check_apart)
        config.settings(self._rule())  # what the schema cannot see, such as a decision tree that is not there
        return config


def _changed(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The key paths whose values differ."""
    for key in sorted({*old, *new}):
        a, b, where = old.get(key), new.get(key), f"{path}{key}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from _changed(a, b, f"{where}.")
        elif a != b:
            yield where
