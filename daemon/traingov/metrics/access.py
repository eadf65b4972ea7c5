"""Where the metrics are served and who may read them: ``metrics:`` of the configuration, checked and made usable.

TLS and password hashing load OpenSSL, so they are imported only where the configuration asks for them.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

NOT_SERVED = "metrics-not-served"
"""The condition that the service raises while it cannot listen there."""

_SCHEME = "pbkdf2-sha256"
_ITERATIONS = 100_000
_ITERATIONS_MOST = 2_000_000
_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)|(?P<name>localhost)):(?P<port>[0-9]{1,5})")
_REMEMBERED_MOST = 16


@dataclass(frozen=True)
class MetricsOptions:
    """``family``, ``host``, ``port``: where to listen. ``certificate`` and ``key``: paths, both or none.

    ``users``: name to hashed password; empty lets everybody read.
    """

    family: socket.AddressFamily
    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    users: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The address as one types it."""
        host = f"[{self.host}]" if self.family == socket.AF_INET6 else self.host
        return f"{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "::1" or self.host.startswith("127.")


def metrics_options(values: Mapping[str, Any]) -> MetricsOptions | None:
    """``metrics:`` of the configuration; None where it is switched off. Raises ValueError naming the key."""
    listen = values["listen"]
    if listen is None:
        return None
    match = _ADDRESS.fullmatch(listen)
    six = match["six"] if match else None
    host = (six or match["four"] or "127.0.0.1") if match else ""
    family = socket.AF_INET6 if six else socket.AF_INET
    port = int(match["port"]) if match else 0
    try:
        socket.inet_pton(family, host)
    except OSError:
        port = 0
    if not 0 < port < 65536:
        raise ValueError(
            f"metrics.listen: must be ADDRESS:PORT, such as 127.0.0.1:28520 or [::1]:28520, or null, not {listen!r}"
        )
    tls = values["tls"] or {}
    users = {str(name): hashed for name, hashed in values["users"].items()}
    for name, hashed in users.items():
        if ":" in name or not name:
            raise ValueError(f"metrics.users: a name must not be empty or have a colon: {name!r}")
        if _parts(hashed) is None:
            raise ValueError(
                f"metrics.users.{name}: is not a hashed password; make one with `traingov metrics password`"
            )
    return MetricsOptions(family, host, port, tls.get("certificate"), tls.get("key"), users)


def hash_password(password: str, salt: bytes | None = None, iterations: int = _ITERATIONS) -> str:
    """The line for ``metrics.users``: scheme, iterations, salt and hash (PBKDF2, RFC 8018, with HMAC-SHA-256)."""
    salt = os.urandom(16) if salt is None else salt
    digest = _derive(password.encode(), salt, iterations)
    return f"{_SCHEME}:{iterations}:{base64.b64encode(salt).decode()}:{base64.b64encode(digest).decode()}"


class Doorkeeper:
    """Judges the ``Authorization`` header. A password that was right is remembered, by a hash with a key of our own.

    Remembering is what makes a scrape cheap: the hash is slow on purpose. Used by several threads: each operation
    on the set is one step for the interpreter.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = dict(users)
        self._key = os.urandom(16)
        self._remembered: set[bytes] = set()

    def admits(self, header: str | None) -> bool:
        """Whether whoever sent ``header`` may read."""
        if not self._users:
            return True
        given = _credentials(header)
        if given is None:
            return False
        import hashlib  # noqa: PLC0415  (loads OpenSSL)
        import hmac  # noqa: PLC0415

        name, password = given
        seal = hashlib.blake2b(name.encode() + b":" + password, key=self._key).digest()
        if seal in self._remembered:
            return True
        # An unknown name costs as much time as a known one.
        known = _parts(self._users.get(name, ""))
        iterations, salt, digest = known or (_ITERATIONS, b"0" * 16, b"")
        if not hmac.compare_digest(_derive(password, salt, iterations), digest):
            return False
        if len(self._remembered) >= _REMEMBERED_MOST:
            self._remembered.clear()
        self._remembered.add(seal)
        return True


class Certificate:
    """The TLS context; read again when its files change, so that a renewed certificate needs no restart."""

    def __init__(self, certificate: str, key: str | None) -> None:
        self._files = (certificate, key or certificate)
        self._seen: tuple[int, ...] = ()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The context to use now. Raises OSError (ssl.SSLError is one) where there is no usable one yet.

        Files that became unreadable while one was in use leave that one in use.
        """
        import ssl  # noqa: PLC0415  (loads OpenSSL)

        try:
            seen = tuple(os.stat(path).st_mtime_ns for path in self._files)
            if self._context is None or seen != self._seen:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.minimum_version = ssl.TLSVersion.TLSv1_2
                context.load_cert_chain(*self._files)
                self._context, self._seen = context, seen
        except OSError:
            if self._context is None:
                raise
        assert self._context is not None
        return self._context


def _derive(password: bytes, salt: bytes, iterations: int) -> bytes:
    try:
        from _hashlib import pbkdf2_hmac  # noqa: PLC0415  (OpenSSL's: hashlib may have been loaded without, see lean.py)
    except ImportError:
        from hashlib import pbkdf2_hmac  # noqa: PLC0415
    return pbkdf2_hmac("sha256", password, salt, iterations)


def _parts(hashed: str) -> tuple[int, bytes, bytes] | None:
    scheme, _, rest = hashed.partition(":")
    pieces = rest.split(":")
    if scheme != _SCHEME or len(pieces) != 3 or not (pieces[0].isascii() and pieces[0].isdigit()):
        return None
    iterations = int(pieces[0][:9])
    try:
        salt, digest = (base64.b64decode(piece, validate=True) for piece in pieces[1:])
    except (binascii.Error, ValueError):
        return None
    return (iterations, salt, digest) if 0 < iterations <= _ITERATIONS_MOST and salt and len(digest) == 32 else None


def _credentials(header: str | None) -> tuple[str, bytes] | None:
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None
