"""A thread that writes to disk for the loop; a failed write is told once and never stops anything."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger("traingov.keeper")


class Keeper:
    """Runs writes one after another."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="traingov-keeper")

    def keep(self, what: str, write: Callable[[], None]) -> None:
        """Do ``write`` soon. OSError is logged as "WHAT could not be kept", anything else with where it came from."""

        def guarded() -> None:
            try:
                write()
            except OSError as error:
                log.error("%s could not be kept (%s): it is used until the service ends", what, error.strerror or error)
            except Exception:
                log.exception("%s could not be kept; this must not happen, please report it", what)

        self._pool.submit(guarded)

    def close(self) -> None:
        """Finish what was begun."""
        self._pool.shutdown(wait=True)
