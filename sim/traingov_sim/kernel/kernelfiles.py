"""A folder tree with the kernel's manners: what the virtual board's /sys, /proc and /etc answer.

Nodes registered with `KernelFiles.add_devfreq` validate, snap, clamp and delay as `devfreqnode` says; every other
file is an ordinary file of the folder. The folder mirrors the nodes' contents, so that it can be looked at.
Used directly it has the methods of the daemon's file interface; `fusefs` serves it to other processes.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .devfreqnode import DevfreqSettings, SimulatedDevfreq

_MAX_LINKS = 40


@dataclass
class _Fault:
    path: str
    operation: str
    number: int
    skip: int
    times: int | None


class KernelFiles:
    """The tree below ``folder``. Paths are absolute, as on the board. Thread-safe.

    ``on_read`` gets the path before a file is read (a model may refresh it then with `put`), ``on_write`` the path
    and the text after a write was taken. Both are lists of callables.
    """

    def __init__(self, folder: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = os.path.abspath(folder)
        self.on_read: list[Callable[[str], None]] = []
        self.on_write: list[Callable[[str, str], None]] = []
        self._clock = clock
        self._nodes: dict[str, SimulatedDevfreq] = {}
        self._faults: list[_Fault] = []
        self._lock = threading.RLock()
        os.makedirs(self.folder, exist_ok=True)

    # Building the tree

    def put(self, path: str, text: str) -> None:
        """Set a file's content, past every rule; makes the folders above it."""
        with self._lock:
            host = self.folder + self.real_path(path)
            os.makedirs(os.path.dirname(host), exist_ok=True)
            with open(host, "w", encoding="utf-8") as file:
                file.write(text)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link at ``path``, as sysfs has them (``target`` relative to its folder)."""
        host = self.folder + self.real_path(os.path.dirname(path))
        os.makedirs(host, exist_ok=True)
        os.symlink(target, os.path.join(host, os.path.basename(path)))

    def add_devfreq(self, path: str, settings: DevfreqSettings) -> SimulatedDevfreq:
        """Make a devfreq node at ``path``; returns it, so that a model can set its demand and ceiling."""
        with self._lock:
            node = SimulatedDevfreq(settings, self._clock)
            real = self.real_path(path)
            self._nodes[real] = node
            self._mirror(real, node)
            return node

    def fail(self, path: str, number: int, *, operation: str = "write", nth: int = 1, times: int | None = 1) -> None:
        """From the ``nth`` write (or read) of ``path`` from now on, fail ``times`` times with errno ``number``.

        ``times`` None means for good: EACCES for a missing group, EIO for some INA3221 files.
        """
        if operation not in {"read", "write"} or nth < 1:
            raise ValueError(f"fail: operation must be read or write and nth at least 1, not {operation!r}, {nth!r}")
        with self._lock:
            self._faults.append(_Fault(self.real_path(path), operation, number, nth - 1, times))

    def mend(self) -> None:
        """Forget every fault."""
        with self._lock:
            self._faults.clear()

    # The file interface

    def read_text(self, path: str) -> str:
        """The content. Raises OSError as the kernel does."""
        with self._lock:
            real = self.real_path(path)
            self._trip(real, "read")
            for hook in list(self.on_read):
                hook(real)
            found = self._node(real)
            if found is not None:
                return found[1].read(found[2])
            with open(self.folder + real, "rb") as file:
                return file.read().decode("utf-8", "replace")

    def write_text(self, path: str, text: str) -> None:
        """One write() to a file that exists. Raises OSError as the kernel does."""
        with self._lock:
            real = self.real_path(path)
            host = self.folder + real
            if not os.path.lexists(host):
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._trip(real, "write")
            found = self._node(real)
            if found is not None:
                found[1].write(found[2], text)
                self._mirror(found[0], found[1])
            else:
                with open(host, "r+b") as file:
                    file.write(text.encode())
                    file.truncate()
            for hook in list(self.on_write):
                hook(real, text)

    def exists(self, path: str) -> bool:
        """Whether the path leads to something."""
        try:
            return os.path.lexists(self.folder + self.real_path(path))
        except OSError:
            return False

    def list(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted."""
        return tuple(sorted(os.listdir(self.folder + self.real_path(path))))

    def real_path(self, path: str) -> str:
        """The path with every link resolved; an absolute link counts from the tree's root."""
        done: list[str] = []
        rest = [part for part in path.split("/") if part not in {"", "."}]
        links = 0
        while rest:
            part = rest.pop(0)
            if part == "..":
                del done[-1:]
                continue
            done.append(part)
            host = os.path.join(self.folder, *done)
            if os.path.islink(host):
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(host)
                done = [] if target.startswith("/") else done[:-1]
                rest = [step for step in target.split("/") if step not in {"", "."}] + rest
        return "/" + "/".join(done)

    # Within

    def _node(self, real: str) -> tuple[str, SimulatedDevfreq, str] | None:
        for path, node in self._nodes.items():
            name = real[len(path) + 1 :]
            if real.startswith(path + "/") and name in node.names():
                return path, node, name
        return None

    def _mirror(self, path: str, node: SimulatedDevfreq) -> None:
        for name in node.names():
            self.put(f"{path}/{name}", node.read(name))
        if "userspace/set_freq" not in node.names() and os.path.lexists(f"{self.folder}{path}/userspace/set_freq"):
            os.unlink(f"{self.folder}{path}/userspace/set_freq")
            os.rmdir(f"{self.folder}{path}/userspace")

    def _trip(self, real: str, operation: str) -> None:
        for fault in self._faults:
            if fault.path != real or fault.operation != operation:
                continue
            if fault.skip:
                fault.skip -= 1
            elif fault.times is None or fault.times > 0:
                if fault.times is not None:
                    fault.times -= 1
                raise OSError(fault.number, os.strerror(fault.number), real)
