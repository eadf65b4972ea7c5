"""A virtual board's tree in a plain folder: written at start, refreshed, and its knobs polled.

A kernel carries a write out while the writer waits and can refuse it. A plain folder cannot: what is written to a
knob is found at the next poll (each sample, each step, 50 times a second at least), and a refused or snapped value
is then put right in the file. A reader who looks within that time sees its own text, and the order of two writes
within that time is lost. The FUSE tree is exact.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ..board.physics import Snapshot, VirtualBoard
from . import health
from .entries import Entries, changing, clocks, entries, knobs, mode


class FolderTree:
    """The tree as plain files under ``root``. Files are rewritten in place, so open descriptors stay good.

    ``lock`` guards the board where other threads use it too; here the caller holds it already.
    """

    def __init__(self, root: Path, board: VirtualBoard, boot: str, lock: threading.Lock) -> None:
        self.root = root
        self._lock = lock
        self._board = board
        self._shown: dict[str, str] = {}
        self._width: dict[str, int] = {}
        self._descriptors: dict[str, int] = {}
        self._node = board.spec.gpu.node + "/"
        self._knobs = tuple(knobs(board))
        self.refused: list[str] = []
        self._create(entries(board, boot))

    @property
    def tool_folder(self) -> Path:
        """Where the tegrastats executable goes."""
        return self.root / "usr" / "bin"

    def _create(self, tree: Entries) -> None:
        for path, text in tree.files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)  # an earlier run left it read-only
            file.write_bytes(text.encode())
            self._shown[path], self._width[path] = text, len(text)
        for path, target in tree.links.items():
            link = self.root / path
            link.parent.mkdir(parents=True, exist_ok=True)
            if link.is_symlink():
                link.unlink()
            # Links are relative, as those of /sys are: they hold under any root.
            link.symlink_to(os.path.relpath(self.root / target, link.parent))
        for path in tree.files:
            if path not in self._knobs:
                (self.root / path).chmod(0o444)

    def start(self) -> Path:
        """Make the tree reachable. Where it is."""
        return self.root

    def poll(self, t_s: float) -> bool:
        """Carry out what was written to the knobs since the last poll. True when something was."""
        written: dict[str, str] = {}
        for path in self._knobs:
            text = os.pread(self._descriptor(path), 256, 0).decode(errors="replace")
            # Without text the file is truncated and not written yet.
            if text.strip() and text.rstrip("\n") != self._shown[path].rstrip("\n"):
                written[path] = text
        for path in self._in_order(written):
            text = written[path]
            self._width[path], self._shown[path] = len(text), text
            try:
                self._board.write_devfreq(path.removeprefix(self._node), text.rstrip("\n"), t_s)
            except OSError as error:
                self.refused.append(f"/{path}: {error.strerror}")
                del self.refused[:-100]
        if written:
            self.refresh_knobs()
        return bool(written)

    def _in_order(self, written: dict[str, str]) -> list[str]:
        """Both bounds found written in one look: which came first cannot be seen; take the order that is accepted."""
        paths = sorted(written)
        high = written.get(self._node + "max_freq", "").strip()
        if high.isdecimal() and int(high) < self._board.clock.bounds()[0]:
            paths.reverse()
        return paths

    def refresh_knobs(self) -> None:
        """Show the knobs as the kernel holds them. userspace/set_freq comes and goes with its governor."""
        now = knobs(self._board)
        for path in set(self._knobs) - set(now):
            os.close(self._descriptors.pop(path))
            (self.root / path).unlink()
            self._shown.pop(path)
            self._width.pop(path)
        for path in set(now) - set(self._knobs):
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).touch()
        self._knobs = tuple(now)
        self.put(now)

    def refresh_clocks(self, snapshot: Snapshot) -> None:
        """Rewrite the GPU's clock and load."""
        self.put(clocks(self._board.spec, snapshot.gpu_frequency_hz, snapshot.gpu_utilization))

    def refresh(self, snapshot: Snapshot) -> None:
        """Rewrite every file that moves by itself."""
        self.put(changing(self._board.spec, snapshot))
        if self._board.battery is not None:
            self.put(health.battery(self._board.battery))

    def refresh_mode(self) -> None:
        """Rewrite what a change of power mode changes."""
        self.put(mode(self._board))
        self.refresh_knobs()

    def refresh_surroundings(self) -> None:
        """Rewrite what an administrator or a plug changed: current limits, a battery that came or went."""
        files, links = health.set_by_others(self._board), health.battery_links(self._board)
        for path in [p for p in self._shown if p.startswith(health.BATTERY) and p not in files]:
            if path in self._descriptors:
                os.close(self._descriptors.pop(path))
            (self.root / path).unlink(missing_ok=True)
            del self._shown[path]
            self._width.pop(path, None)
        new = {path: text for path, text in files.items() if path not in self._shown}
        self._create(Entries(new, links))
        if not links:
            (self.root / health.SUPPLIES / "BAT0").unlink(missing_ok=True)
        self.put(files)

    def put(self, files: dict[str, str]) -> None:
        """Show these texts. One write each, filled up with newlines to the file's length: never empty, never torn."""
        for path, text in files.items():
            if self._shown.get(path) == text:
                continue
            width = self._width[path] = max(self._width.get(path, 0), len(text))
            os.pwrite(self._descriptor(path), text.encode().ljust(width, b"\n"), 0)
            self._shown[path] = text

    def close(self) -> None:
        """Close the descriptors; the files stay."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _descriptor(self, path: str) -> int:
        descriptor = self._descriptors.get(path)
        if descriptor is None:
            file = self.root / path
            if not os.access(file, os.W_OK):
                file.chmod(0o644)
            descriptor = self._descriptors[path] = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        return descriptor
