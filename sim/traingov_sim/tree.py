"""A virtual board's tree in a plain folder: written at start, refreshed, and its knobs polled.

A kernel carries a write out while the writer waits and can refuse it. A plain folder cannot: what is written to a
knob is found at the next poll (each sample, each step, 50 times a second at least), and a refused or snapped value
is then put right in the file. A reader who looks within that time sees its own text. The FUSE tree is exact.
"""

from __future__ import annotations

import os
from pathlib import Path

from .entries import Entries, bounds, changing, clocks, entries, knob_paths, mode
from .physics import Snapshot, VirtualBoard


def apply_write(board: VirtualBoard, knob: str, text: str, t_s: float) -> None:
    """What a write to a knob ("min", "max", "governor", "userspace") does, as the kernel does it.

    Raises OSError(EINVAL) for what the kernel refuses, which includes text that is no number.
    """
    board.advance(max(t_s, board.t_s))
    if knob == "governor":
        board.clock.set_governor(text.strip())
        return
    try:
        value = int(text.strip())
    except ValueError:
        raise OSError(22, f"{text.strip()!r} is not a frequency in Hz") from None
    if knob == "userspace":
        board.clock.set_userspace(value)
    else:
        board.write_bound(knob, value, t_s)


class FolderTree:
    """The tree as plain files under ``root``. Files are rewritten in place, so open descriptors stay good."""

    def __init__(self, root: Path, board: VirtualBoard, boot: str) -> None:
        self.root = root
        self._board = board
        self._shown: dict[str, str] = {}
        self._width: dict[str, int] = {}
        self._descriptors: dict[str, int] = {}
        self._knobs = knob_paths(board.spec)
        self.refused: list[str] = []
        self._create(entries(board, boot))

    def _create(self, tree: Entries) -> None:
        for path, text in tree.files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
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
            if path not in tree.writable:
                (self.root / path).chmod(0o444)

    def poll(self, t_s: float) -> bool:
        """Carry out what was written to the knobs since the last poll. True when something was."""
        changed = False
        for path, knob in self._knobs.items():
            text = os.pread(self._descriptor(path), 256, 0).decode(errors="replace")
            if text.rstrip("\n") == self._shown[path].rstrip("\n"):
                continue
            if not text.strip():
                continue  # truncated, and not written yet
            changed = True
            try:
                apply_write(self._board, knob, text, t_s)
            except OSError as error:
                self.refused.append(f"/{path}: {error.strerror}")
                del self.refused[:-100]
            self._width[path] = max(len(text), len(self._shown[path]))
            self._shown[path] = text
        if changed:
            self.put(bounds(self._board))
        return changed

    def refresh_clocks(self, snapshot: Snapshot) -> None:
        """Rewrite the GPU's clock and load."""
        self.put(clocks(self._board.spec, snapshot.gpu_frequency_hz, snapshot.gpu_utilization))

    def refresh(self, snapshot: Snapshot) -> None:
        """Rewrite every file that moves by itself."""
        self.put(changing(self._board.spec, snapshot))

    def refresh_mode(self) -> None:
        """Rewrite what a change of power mode changes."""
        self.put(mode(self._board) | bounds(self._board))

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
