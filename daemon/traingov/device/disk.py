"""Files that survive a crash: replaced as a whole, locked, set aside when damaged. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time

from .journal_format import SIZE_LIMIT_BYTES, JournalError


class Disk:
    """The file operations of the journal, one system call each, so that a test can stop at every one of them."""

    def read(self, path: str) -> bytes:
        """The whole file. Never follows a link: root reads here what the service's user wrote."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            return file.read(SIZE_LIMIT_BYTES + 1)

    def create(self, path: str) -> int:
        """Open an empty file for writing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags, 0o644)

    def write(self, fd: int, data: bytes) -> int:
        """Write once; returns the number of bytes taken."""
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Push the file to the medium."""
        os.fsync(fd)

    def rename(self, source: str, target: str) -> None:
        """Replace ``target`` by ``source``, at once."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def sync_folder(self, path: str) -> None:
        """Push a folder's entries to the medium."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """Something that changes when the file is replaced or removed; None where there is none."""
        try:
            stat = os.stat(path, follow_symlinks=False)
        except OSError:
            return None
        return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


class FolderLock:
    """An flock on the journal's folder: a live governor and a restore never work on one journal at once.

    The kernel drops it when the process dies, so a SIGKILL leaves no stale lock.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._fd: int | None = None

    def acquire(self, wait_s: float) -> None:
        """Take the lock unless held, waiting at most ``wait_s`` seconds.

        Raises JournalError when somebody else keeps it, OSError when the folder cannot be opened.
        """
        if self._fd is not None:
            return
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    os.close(fd)
                    raise JournalError(
                        f"{self._folder} is held by a running traingovd or restore: stop that one first"
                    ) from None
                time.sleep(0.01)
            else:
                self._fd = fd
                return

    def release(self) -> None:
        """Let go; harmless when not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def save(disk: Disk, temporary: str, path: str, raw: bytes) -> None:
    """Replace ``path`` at once: temporary file, fsync, rename, fsync of the folder. Raises OSError."""
    fd = disk.create(temporary)
    try:
        view = memoryview(raw)
        while view:
            taken = disk.write(fd, bytes(view))
            if taken <= 0:
                raise OSError(errno.EIO, "nothing was taken", temporary)
            view = view[taken:]
        disk.sync(fd)
    finally:
        os.close(fd)
    disk.rename(temporary, path)
    disk.sync_folder(os.path.dirname(path))


def remove_journal(path: str, disk: Disk) -> None:
    """Remove the journal and a temporary file beside it, durably. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        disk.remove(f"{path}.tmp")
    with contextlib.suppress(FileNotFoundError):
        disk.remove(path)
    disk.sync_folder(os.path.dirname(path))


def set_aside(path: str, disk: Disk) -> str:
    """Move a damaged journal to the first free name ``PATH.damaged-N``; returns the name."""
    number = 1
    while os.path.lexists(f"{path}.damaged-{number}"):
        number += 1
    aside = f"{path}.damaged-{number}"
    disk.rename(path, aside)
    return aside
