"""Serve a `KernelFiles` tree as a real file system, so that other processes meet the kernel's manners.

Needs mfusepy (optional), /dev/fuse and fusermount3. A write that the tree refuses comes back as that errno. Reads
are never cached (direct_io). As in sysfs, sizes are 4096, truncating does nothing, and nothing can be created.
"""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .kernelfiles import KernelFiles

_PAGE = 4096


class FuseUnavailableError(RuntimeError):
    """A mount cannot be made here; the text says what is missing."""


def unavailable() -> str | None:
    """Why a tree cannot be mounted here, in one line; None where it can."""
    try:
        importlib.import_module("mfusepy")
    except (ImportError, OSError, AttributeError) as error:
        return f"mfusepy cannot be used ({error}): pip install mfusepy, and libfuse3 from the system"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened: load the fuse module, or run as root"
    if shutil.which("fusermount3") is None and shutil.which("fusermount") is None:
        return "fusermount3 is missing: install the package fuse3"
    return None


class FuseTree:
    """The FUSE operations over one tree (the method names are libfuse's). Every OSError becomes its errno."""

    use_ns = True

    def __init__(self, kernel: KernelFiles) -> None:
        self._kernel = kernel
        self._open: dict[int, bytes] = {}
        self._next = 1

    def getattr(self, path: str, _fh: int | None = None) -> dict[str, Any]:
        """Attributes of the file itself, links not followed."""
        stat = os.lstat(self._host(path))
        fields = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_atime_ns", "st_mtime_ns", "st_ctime_ns")
        attributes: dict[str, Any] = {name.removesuffix("_ns"): getattr(stat, name) for name in fields}
        attributes["st_size"] = stat.st_size if os.path.islink(self._host(path)) else _PAGE
        return attributes

    def readdir(self, path: str, _fh: int) -> list[str]:
        """Names in a folder."""
        return [".", "..", *os.listdir(self._host(path))]

    def readlink(self, path: str) -> str:
        """A link's target."""
        return os.readlink(self._host(path))

    def open(self, path: str, _flags: int) -> int:
        """A new handle."""
        if os.path.isdir(self._host(path)):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._next += 1
        return self._next

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """As sysfs: a read at offset 0 asks the kernel anew, a read further on continues that answer."""
        if offset == 0 or fh not in self._open:
            self._open[fh] = self._kernel.read_text(path).encode()
        return self._open[fh][offset : offset + size]

    def write(self, path: str, data: bytes, _offset: int, _fh: int) -> int:
        """One write is one value."""
        self._kernel.write_text(path, data.decode("utf-8", "replace"))
        return len(data)

    def truncate(self, _path: str, _length: int, _fh: int | None = None) -> int:
        """Ignored, as sysfs ignores it."""
        return 0

    def release(self, _path: str, fh: int) -> int:
        """The handle is done."""
        self._open.pop(fh, None)
        return 0

    def _host(self, path: str) -> str:
        # The links above the last part are resolved by FUSE already; the last one must be seen as a link.
        return self._kernel.folder + path.rstrip("/")


def serve(kernel: KernelFiles, mountpoint: str, *, allow_other: bool = False) -> None:
    """Mount and serve in this thread until it is unmounted. Raises FuseUnavailableError."""
    reason = unavailable()
    if reason is not None:
        raise FuseUnavailableError(reason)
    mfusepy = importlib.import_module("mfusepy")
    mfusepy.FUSE(
        FuseTree(kernel),
        os.path.abspath(mountpoint),
        foreground=True,
        nothreads=True,
        direct_io=True,
        allow_other=allow_other,
        attr_timeout=0,
        entry_timeout=0,
        fsname="traingov-sim",
    )


@contextmanager
def mounted(kernel: KernelFiles, mountpoint: str, *, allow_other: bool = False, wait_s: float = 10.0) -> Iterator[str]:
    """Serve the tree at ``mountpoint`` from a thread of this process; unmounted at the end of the block.

    Raises FuseUnavailableError when the mount does not appear within ``wait_s`` seconds.
    """
    reason = unavailable()
    if reason is not None:
        raise FuseUnavailableError(reason)
    os.makedirs(mountpoint, exist_ok=True)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            serve(kernel, mountpoint, allow_other=allow_other)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="fuse", daemon=True)
    thread.start()
    deadline = time.monotonic() + wait_s
    while not os.path.ismount(mountpoint):
        if not thread.is_alive() or time.monotonic() > deadline:
            unmount(mountpoint)
            raise FuseUnavailableError(f"{mountpoint} was not mounted: {failures[0] if failures else 'no answer'}")
        time.sleep(0.01)
    try:
        yield mountpoint
    finally:
        unmount(mountpoint)
        thread.join(wait_s)


def unmount(mountpoint: str) -> None:
    """Unmount, lazily where a process still has a file open; harmless when nothing is mounted."""
    tool = shutil.which("fusermount3") or shutil.which("fusermount")
    if tool is None:
        return
    for flag in ("-u", "-uz"):
        if subprocess.run([tool, flag, mountpoint], capture_output=True, check=False).returncode == 0:
            return
