"""The listening socket: made at a path, or handed over by systemd (socket activation, sd_listen_fds(3)).

What lies at the path is told apart before anything is removed: a socket that a daemon listens on, one that a daemon
left behind, and a file that is none of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator, MutableMapping
from pathlib import Path

MAX_PATH_BYTES = 107  # sun_path of unix(7), less its closing zero
BACKLOG = 128
_FIRST_INHERITED_FD = 3


class ListenError(Exception):
    """The socket cannot be listened on: one line saying why, and what to do."""


class SocketInUseError(ListenError):
    """Another daemon listens there."""


class ForeignFileError(ListenError):
    """Something that is not a socket lies there; it is left alone."""


async def listen(path: Path, *, mode: int = 0o660, gid: int | None = None) -> socket.socket:
    """Listen at ``path`` with ``mode`` and group ``gid`` (None: left as it is).

    Raises SocketInUseError, ForeignFileError or ListenError.
    """
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise ListenError(f"{path}: a socket's path has at most {MAX_PATH_BYTES} bytes: choose a shorter one")
    lock = await _lock_folder(path.parent)
    try:
        with _explained(path):
            _remove_stale(path)
            return _bind(path, mode, gid)
    finally:
        os.close(lock)


def inherited_listener(environ: MutableMapping[str, str], first_fd: int = _FIRST_INHERITED_FD) -> socket.socket | None:
    """The listening socket that systemd handed over, None where it handed none to this process.

    LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES are taken out of ``environ``, so that no child mistakes them for its
    own. Raises ListenError where what was handed over is not one listening Unix stream socket.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal() or count == "0":
        return None
    if count != "1":
        raise ListenError(f"systemd handed over {count} sockets: the .socket unit must list one ListenStream=")
    os.set_inheritable(first_fd, False)
    try:
        listener = socket.socket(fileno=first_fd)
    except OSError as error:
        raise ListenError(f"descriptor {first_fd} from systemd is not a socket: {error.strerror}") from None
    listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if listener.family != socket.AF_UNIX or listener.type != socket.SOCK_STREAM or not listening:
        listener.detach()
        raise ListenError(f"descriptor {first_fd} from systemd is no listening Unix stream socket: use ListenStream=")
    listener.setblocking(False)
    return listener


def remove_own(path: Path, identity: tuple[int, int]) -> None:
    """Remove the socket at ``path`` where it is still the one with ``identity`` (device, inode)."""
    with contextlib.suppress(OSError):
        if identity_of(path) == identity:
            path.unlink()


def identity_of(path: Path) -> tuple[int, int]:
    """Device and inode of what lies at ``path``. Raises OSError."""
    status = os.lstat(path)
    return status.st_dev, status.st_ino


def _remove_stale(path: Path) -> None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise ForeignFileError(f"{path} is not a socket, so it is left alone: move it away, or set another socket path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        result = probe.connect_ex(os.fspath(path))
    if result == errno.ECONNREFUSED:
        path.unlink()
    elif result in (0, errno.EAGAIN, errno.EINPROGRESS):
        raise SocketInUseError(f"{path}: another daemon listens there: stop it, or set another socket path")
    elif result != errno.ENOENT:
        # Also EPROTOTYPE: a socket of another type, of somebody else.
        raise ForeignFileError(
            f"{path} is a socket that is not ours ({os.strerror(result)}): move it away, or set another path"
        )


def _bind(path: Path, mode: int, gid: int | None) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    bound = False
    try:
        # Linux takes the new file's mode from the descriptor's, so there is no moment at which others could connect.
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(os.fspath(path))
        bound = True
        if gid is not None:
            os.chown(path, -1, gid)
        os.chmod(path, mode)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        if bound:
            path.unlink(missing_ok=True)
        raise
    return listener


async def _lock_folder(folder: Path) -> int:
    """Hold the folder's lock, so that two daemons starting at once do not remove each other's socket."""
    with _explained(folder):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(20):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            return lock
    os.close(lock)
    raise SocketInUseError(f"{folder} is locked by another process, perhaps a daemon that starts: try again")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ListenError(f"{path}: {error.strerror}: check the folder and its rights") from error
