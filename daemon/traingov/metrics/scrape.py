"""Between the server's threads and the control loop: values asked for, and the listener's troubles made a condition."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from typing import TYPE_CHECKING

from .access import NOT_SERVED, MetricsOptions
from .collect import collect
from .server import MetricsServer
from .text import Readings

if TYPE_CHECKING:
    from ..loop import Loop

log = logging.getLogger("traingov.metrics")

_ASK_S = 2.0


def serve_metrics(options: MetricsOptions | None, loop: Loop) -> MetricsServer | None:
    """Serve the values of ``loop``, whose event loop is the running one; None where metrics are switched off."""
    if options is None:
        return None
    events = asyncio.get_running_loop()
    if not options.loopback and not (options.users and options.certificate):
        lacking = "TLS" if options.users else "TLS or a password" if not options.certificate else "a password"
        log.warning("metrics are open to the network on %s without %s: see docs/metrics.md", options.where, lacking)

    def ask() -> Readings:
        """Values of one moment. Raises TimeoutError where the loop does not answer or has ended."""
        answer: concurrent.futures.Future[Readings] = concurrent.futures.Future()

        def give() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(collect(loop))
            except Exception as error:  # a defect in here must not reach the loop
                log.exception("metrics could not be read")
                answer.set_exception(TimeoutError(str(error)))

        try:
            events.call_soon_threadsafe(give)
            return answer.result(_ASK_S)
        except (RuntimeError, concurrent.futures.TimeoutError) as error:  # RuntimeError: the loop is closed
            answer.cancel()
            raise TimeoutError(str(error)) from None

    def told(text: str | None) -> None:
        def note() -> None:
            if text is None:
                loop.conditions.pop(NOT_SERVED, None)
            else:
                loop.conditions[NOT_SERVED] = text

        try:
            events.call_soon_threadsafe(note)
        except RuntimeError:  # the service ends
            return

    server = MetricsServer(options, ask, told)
    server.start()
    return server
