"""Who is at the other end of a connection, and what they may do (DESIGN 4).

The kernel says who connected (SO_PEERCRED, unix(7)); nothing that a client writes about itself counts.
"""

from __future__ import annotations

import errno
import grp
import os
import socket
import struct
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

PROC = Path("/proc")

# Constants of include/uapi/asm-generic/socket.h that Python does not name.
SO_PEERGROUPS = 59  # Linux 4.13
SO_PEERPIDFD = 77  # Linux 6.5
_UCRED = struct.Struct("iII")
_MAX_OPTION_BYTES = 1024  # the most that Python's getsockopt takes: 256 groups


@dataclass(frozen=True)
class Peer:
    """A process, as it was when it connected. ``pid`` is None where it lies outside our PID namespace."""

    pid: int | None
    uid: int
    gid: int
    groups: frozenset[int]


class Role(Enum):
    """What a peer may do."""

    NONE = "none"
    USER = "user"
    ADMIN = "admin"


@dataclass(frozen=True)
class Access:
    """Who may do what. ``user_gid`` and ``admin_gid`` are None where the machine has no such group.

    Administrators: root and group ``admin_group``; and, where the daemon itself does not run as root (development,
    demo), its own user, who could stop it anyway. Users: the daemon's own user, group ``user_group``, administrators.
    """

    daemon_uid: int
    user_group: str = "traingov"
    admin_group: str = "traingov-admin"
    user_gid: int | None = None
    admin_gid: int | None = None

    @classmethod
    def from_system(cls, user_group: str = "traingov", admin_group: str = "traingov-admin") -> Access:
        """Look the groups up, once: a lookup may ask the network, so none is made while the loop runs."""
        return cls(os.geteuid(), user_group, admin_group, group_id(user_group), group_id(admin_group))

    def role(self, peer: Peer) -> Role:
        """The role of ``peer``."""
        belongs = peer.groups | {peer.gid}
        if peer.uid in (0, self.daemon_uid) or (self.admin_gid is not None and self.admin_gid in belongs):
            return Role.ADMIN
        if self.user_gid is not None and self.user_gid in belongs:
            return Role.USER
        return Role.NONE


def group_id(name: str) -> int | None:
    """The number of a group, None where there is no such group."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def peer_of(connection: socket.socket, proc: Path = PROC) -> Peer:
    """The peer of a connected Unix socket. Raises OSError where the kernel does not say."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, gid = _UCRED.unpack(raw)
    groups = _groups_from_socket(connection)
    if groups is None:
        groups = _groups_from_proc(pid, uid, proc)
    return Peer(pid if pid > 0 else None, uid, gid, groups)


def peer_pidfd(connection: socket.socket) -> int | None:
    """A pidfd of the peer, safe from a reused pid; None before Linux 6.5. The caller closes it."""
    try:
        fd = connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError:
        return None
    return fd if fd > 0 else None


def process_uids(pid: int, proc: Path = PROC) -> frozenset[int] | None:
    """The real and the effective user of a process; None where there is none."""
    fields = _status(pid, proc)
    if fields is None or len(fields.get("Uid", ())) < 2:
        return None
    return frozenset(int(word) for word in fields["Uid"][:2])


def may_register(peer: Peer, pid: int, proc: Path = PROC) -> bool:
    """Whether ``peer`` may register the process ``pid``: its own, one of the same user, or, for root, any that runs."""
    if pid == peer.pid:
        return True
    uids = process_uids(pid, proc)
    if uids is None:
        return False
    return peer.uid == 0 or uids == {peer.uid}


def _groups_from_socket(connection: socket.socket) -> frozenset[int] | None:
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, _MAX_OPTION_BYTES)
    except OSError as error:
        if error.errno in (errno.ENOPROTOOPT, errno.ERANGE, errno.EOPNOTSUPP, errno.EINVAL):
            return None
        raise
    return frozenset(struct.unpack(f"{len(raw) // 4}I", raw))


def _groups_from_proc(pid: int, uid: int, proc: Path) -> frozenset[int]:
    """Supplementary groups by /proc (JetPack 4's kernel 4.9 has no SO_PEERGROUPS); none where it is another user."""
    fields = _status(pid, proc) if pid > 0 else None
    if fields is None or fields.get("Uid", [""])[0] != str(uid):
        return frozenset()
    return frozenset(int(word) for word in fields.get("Groups", ()))


def _status(pid: int, proc: Path) -> dict[str, list[str]] | None:
    try:
        text = (proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in text.splitlines())}
