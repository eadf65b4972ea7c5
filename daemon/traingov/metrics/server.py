"""Serves the metrics page over HTTP from threads of its own: the control loop only hands over values when asked.

A small server on purpose: two paths, GET and HEAD, one answer a connection, every wait and every number bounded.
``http.server`` does the same with 2 MB more memory and without the bounds.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable

from .access import Certificate, Doorkeeper, MetricsOptions
from .process import read_process
from .text import CONTENT_TYPE, Readings

log = logging.getLogger("traingov.metrics")

_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
_CONNECTION_S = 10.0  # a connection ends after so long, whatever the other side does
_AT_ONCE = 8
_HEAD_MOST = 16 * 1024  # bytes of a request's head
_FRESH_S = 0.05  # a page this young is given again: a flood of scrapes costs the loop nothing
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {431: "Request Header Fields Too Large", 503: "Service Unavailable"}
_WELCOME = b"<!doctype html><title>traingov</title><p><a href=/metrics>metrics</a>\n"


class MetricsServer:
    """``ask`` gives the values (it may wait or raise TimeoutError); ``told`` hears what is wrong, None when nothing is.

    Both are called from threads other than the loop's.
    """

    def __init__(
        self, options: MetricsOptions, ask: Callable[[], Readings], told: Callable[[str | None], None]
    ) -> None:
        self._options = options
        self._ask = ask
        self._told = told
        self._doorkeeper = Doorkeeper(options.users)
        self._certificate = None if options.certificate is None else Certificate(options.certificate, options.key)
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._open: dict[socket.socket, float] = {}
        self._page_lock = threading.Lock()
        self._page, self._page_s = b"", float("-inf")
        self._thread = threading.Thread(target=self._run, name="traingov-metrics", daemon=True)

    def start(self) -> None:
        """Listen soon; where that cannot be, try again and again."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. Connections that are open end by themselves."""
        self._stopping.set()
        listener = self._listener
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._thread.join(1.0)

    # -- the thread that listens -------------------------------------------------------
    def _run(self) -> None:
        wait_s, said = _FIRST_WAIT_S, None
        while not self._stopping.is_set():
            try:
                self._listener = self._listen()
            except OSError as error:
                text = f"the metrics are not served on {self._options.where}, tried again: {error.strerror or error}"
                if text != said:
                    log.warning("%s", text)
                    self._told(text)
                    said = text
                self._stopping.wait(wait_s)
                wait_s = min(2 * wait_s, _MOST_WAIT_S)
                continue
            wait_s, said = _FIRST_WAIT_S, None
            scheme = "http" if self._certificate is None else "https"
            log.info("metrics on %s://%s/metrics", scheme, self._options.where)
            self._told(None)
            with self._listener:
                self._accept(self._listener)

    def _listen(self) -> socket.socket:
        if self._certificate is not None:
            self._certificate.context()  # a certificate that cannot be used is told at once
        listener = socket.socket(self._options.family, socket.SOCK_STREAM)
        try:
            # Connections that just ended must not keep the port from the next start.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._options.host, self._options.port))
            listener.listen(_AT_ONCE)
        except BaseException:
            listener.close()
            raise
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                if self._stopping.wait(0.1):
                    return
                continue  # out of descriptors, say: it passes
            self._end_late_ones()
            if not self._free.acquire(timeout=1.0):
                connection.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            except RuntimeError:  # no more threads
                self._free.release()
                connection.close()

    def _end_late_ones(self) -> None:
        """A handshake or a reader that trickles outlives every timeout of a single operation."""
        now_s = time.monotonic()
        for connection, until_s in list(self._open.items()):
            if now_s > until_s:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    # -- a connection's thread ---------------------------------------------------------
    def _serve(self, connection: socket.socket) -> None:
        until_s = time.monotonic() + _CONNECTION_S
        try:
            with contextlib.suppress(OSError, ValueError):
                connection.settimeout(_CONNECTION_S / 2)
                if self._certificate is None:
                    self._open[connection] = until_s
                else:
                    context = self._certificate.context()
                    connection = secured = context.wrap_socket(
                        connection, server_side=True, do_handshake_on_connect=False
                    )
                    self._open[connection] = until_s
                    secured.do_handshake()
                head = _read_head(connection, until_s)
                if head is not None:
                    connection.settimeout(max(0.1, until_s - time.monotonic()))
                    connection.sendall(self._answer(head))
        finally:
            self._open.pop(connection, None)
            connection.close()
            self._free.release()

    def _answer(self, head: bytes) -> bytes:
        if len(head) > _HEAD_MOST:
            return _response(431)
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(400)
        method, path = words[0], words[1].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return _response(405, extra="Allow: GET, HEAD\r\n")
        headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        if not self._doorkeeper.admits(headers.get("authorization")):
            return _response(401, extra='WWW-Authenticate: Basic realm="traingov"\r\n')
        if path == "/":
            return _response(200, _WELCOME, "text/html; charset=utf-8", bare=method == "HEAD")
        if path != "/metrics":
            return _response(404, b"see /metrics\n")
        page = self._fresh_page()
        if page is None:
            return _response(503, b"the control loop does not answer\n")
        return _response(200, page, CONTENT_TYPE, bare=method == "HEAD")

    def _fresh_page(self) -> bytes | None:
        """The page; None where the loop does not answer."""
        with self._page_lock:
            if time.monotonic() - self._page_s > _FRESH_S:
                try:
                    readings = self._ask()
                except TimeoutError:
                    return None
                read_process(readings)
                self._page, self._page_s = readings.page(), time.monotonic()
            return self._page


def _read_head(connection: socket.socket, until_s: float) -> bytes | None:
    """A request's head without its closing empty line; None where it does not come. Longer than allowed where it is."""
    head = b""
    while len(head) <= _HEAD_MOST:
        left = until_s - time.monotonic()
        if left <= 0:
            return None
        connection.settimeout(left)
        data = connection.recv(4096)
        if not data:
            return None
        head += data
        before, end, _ = head.partition(b"\r\n\r\n")
        if end:
            return before
    return head


def _response(
    status: int, body: bytes = b"", kind: str = "text/plain; charset=utf-8", *, extra: str = "", bare: bool = False
) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{extra}Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if bare else body)
