"""A look at the file that another program writes a cap to. Runs in a thread: a network file system may not answer."""

from __future__ import annotations

import errno
import os
import stat

from traingov_policies.cap_file import MAX_BYTES, FileLook

_ODD = "is no plain file (a link, pipe, device or folder): name the file itself"


def look_at(path: str) -> FileLook:
    """What the file holds now. A link, a pipe or a device is never opened for reading; errors are told, not raised."""
    try:
        # Looked at before it is opened, since opening a device may do something; and after, since it may be another.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return FileLook(None, error=_ODD)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return FileLook(None, error=_ODD)
            if found.st_mode & stat.S_IWOTH:
                return FileLook(None, error="may be written by every user: chmod o-w it")
            content = os.read(fd, MAX_BYTES + 1)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return FileLook(None, error="is not there")
    except OSError as error:
        if error.errno == errno.ELOOP:
            return FileLook(None, error=_ODD)
        return FileLook(None, error=f"cannot be read ({error.strerror or error})")
    return FileLook(content, (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size))
