"""sd_notify(3) without a library: one datagram to $NOTIFY_SOCKET; nothing where systemd did not start us."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Tell the service manager ``state``, such as "READY=1". Never raises and never blocks."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address[0] == "@":
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as s:
        s.setblocking(False)
        s.sendto(state.encode(), address)
