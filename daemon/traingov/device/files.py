"""System files under a root prefix: the only door through which the device layer reads and writes.

Standard library only: the restore command needs it (DESIGN 5.1).
A virtual or recorded board differs from a real one by ``root`` alone (DESIGN 1).
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Protocol

BOOT_ID = "/proc/sys/kernel/random/boot_id"
_READ_LIMIT_BYTES = 1 << 20
_MAX_LINKS = 40  # as in the kernel (MAXSYMLINKS)


class Files(Protocol):
    """What the device layer needs of a file system. Paths are absolute, as on the board, without the root.

    Every method may raise OSError with the kernel's errno, but ``exists``, which then says False.
    """

    def read_text(self, path: str) -> str:
        """The whole content of a small file."""

    def write_text(self, path: str, text: str) -> None:
        """Write ``text`` with one write() call to a file that exists."""

    def exists(self, path: str) -> bool:
        """Whether the path leads to something."""

    def list(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted."""

    def real_path(self, path: str) -> str:
        """The path with every symbolic link resolved, links kept inside the root."""


class SystemFiles:
    """`Files` of this machine, under ``root``: "/" on a board, a folder for a virtual or recorded one."""

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.abspath(root)

    def read_text(self, path: str) -> str:
        """The content, decoded as UTF-8; bytes that are not are replaced, never fatal."""
        fd = os.open(self._host(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            chunks = []
            size = 0
            while size < _READ_LIMIT_BYTES:
                chunk = os.read(fd, 65536)
                if not chunk:
                    break
                chunks.append(chunk)
                size += len(chunk)
        finally:
            os.close(fd)
        return b"".join(chunks).decode("utf-8", "replace")

    def write_text(self, path: str, text: str) -> None:
        """Write ``text`` in one system call, as sysfs wants it; the file is never created.

        In a plain folder the rest of a longer, older content is cut off afterwards. Truncating first would leave
        an empty file to a SIGKILL in between; so end the text with a newline and read the first line.
        """
        data = text.encode()
        fd = os.open(self._host(path), os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            count = os.write(fd, data)
            if count != len(data):
                raise OSError(errno.EIO, f"only {count} of {len(data)} bytes were taken", path)
            with contextlib.suppress(OSError):  # sysfs ignores it, as it ignores the shell's O_TRUNC
                os.ftruncate(fd, len(data))
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """Whether the path leads to something; False where it cannot be looked at."""
        try:
            return os.path.exists(self._host(path))
        except OSError:
            return False

    def list(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted."""
        return tuple(sorted(os.listdir(self._host(path))))

    def real_path(self, path: str) -> str:
        """The path with links resolved. An absolute link counts from the root, as it does on the board.

        Raises OSError (ELOOP) where links lead in circles; a missing tail is kept as it is.
        """
        if self.root == "/":
            return os.path.realpath(path)
        done: tuple[str, ...] = ()
        rest = _parts(path)
        links = 0
        while rest:
            part, rest = rest[0], rest[1:]
            if part == "..":
                done = done[:-1]
                continue
            here = os.path.join(self.root, *done, part)
            if not os.path.islink(here):
                done = (*done, part)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(here)
            if target.startswith("/"):
                done = ()
            rest = _parts(target) + rest
        return "/" + "/".join(done)

    def _host(self, path: str) -> str:
        # On a real board the kernel resolves; under a root an absolute link must not lead out of it.
        if self.root == "/":
            return path
        return self.root + self.real_path(path)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in {"", "."})


def errno_name(error: OSError) -> str:
    """The kernel's name of an error, such as "EINVAL"."""
    return errno.errorcode.get(error.errno or 0, "an unknown error")


def read_or_none(files: Files, path: str) -> str | None:
    """The stripped content, or None where it cannot be read: a missing reading is missing (DESIGN 5.5)."""
    try:
        return files.read_text(path).strip("\0 \t\r\n")
    except (OSError, ValueError):
        return None


def read_line(files: Files, path: str) -> str | None:
    """The first line, stripped, of a file that holds one value; None where it cannot be read or is empty."""
    text = read_or_none(files, path)
    return (text.split("\n", 1)[0].strip() or None) if text else None


def list_or_empty(files: Files, path: str) -> tuple[str, ...]:
    """The names in a folder, none where it cannot be listed."""
    try:
        return files.list(path)
    except OSError:
        return ()


def boot_id(files: Files) -> str:
    """The kernel's identity of this boot; "unknown" where it cannot be read."""
    return read_or_none(files, BOOT_ID) or "unknown"
