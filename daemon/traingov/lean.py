"""Keeps OpenSSL out of the service: import this before anything that imports asyncio or hashlib.

asyncio and hashlib load OpenSSL wherever they find it, and do without where they do not. The service speaks TLS and
hashes passwords only where its metrics are configured so, and loads OpenSSL then. Until then that is 4 MB less.
"""

from __future__ import annotations

import sys

_OPENSSL = ("ssl", "_hashlib")
_hidden = [name for name in _OPENSSL if name not in sys.modules]
for _name in _hidden:
    sys.modules[_name] = None  # type: ignore[assignment]  # the import system's own sign for "there is none"
try:
    import asyncio  # noqa: F401
    import secrets  # noqa: F401  (numpy.random's; brings hmac and hashlib)
finally:
    for _name in _hidden:
        del sys.modules[_name]
