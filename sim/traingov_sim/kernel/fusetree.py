"""A virtual board's tree mounted with FUSE: a write to a knob is carried out, or refused, while the writer waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..board.physics import VirtualBoard
from .devfreqnode import DevfreqSettings, SimulatedDevfreq
from .fusefs import mounted
from .kernelfiles import KernelFiles
from .tree import FolderTree


class BoardNode(SimulatedDevfreq):
    """The board's devfreq node, for KernelFiles. Every call takes the board's lock and sees the present."""

    def __init__(self, board: VirtualBoard, lock: threading.Lock) -> None:
        super().__init__(DevfreqSettings(board.clock.table), time.monotonic)
        self._board = board
        self._lock = lock

    def names(self) -> tuple[str, ...]:
        """The node's files."""
        return self._board.clock.names()

    def read(self, name: str) -> str:
        """Content of a file, at the present time."""
        with self._lock:
            self._board.advance(max(time.monotonic(), self._board.t_s))
            return self._board.clock.read(name)

    def write(self, name: str, text: str) -> None:
        """Carry a write out now. Raises OSError as the kernel does."""
        with self._lock:
            self._board.write_devfreq(name, text, time.monotonic())


class BoardFiles(KernelFiles):
    """Kernel files whose devfreq node is the board's; ``mirror`` shows its files in the backing folder."""

    def __init__(self, folder: Path, path: str, node: BoardNode, mirror: Callable[[], None]) -> None:
        super().__init__(str(folder))
        self._nodes[self.real_path(path)] = node
        self._show = mirror

    def _mirror(self, path: str, node: SimulatedDevfreq) -> None:
        self._show()


class FuseTree(FolderTree):
    """The tree at ``root``, served by a thread of this process from plain files in ``backing`` beside it.

    ``lock`` must be held by whoever else uses the board. Raises FuseUnavailableError where no mount can be made.
    """

    def __init__(self, root: Path, board: VirtualBoard, boot: str, lock: threading.Lock) -> None:
        super().__init__(root.parent / "backing", board, boot, lock)
        node = BoardNode(board, lock)
        self._kernel = BoardFiles(self.root, "/" + board.spec.gpu.node, node, self._mirror_knobs)
        self._mountpoint = root
        self._mount = contextlib.ExitStack()

    def start(self) -> Path:
        """Mount. Where the tree is reached."""
        self._mount.enter_context(mounted(self._kernel, str(self._mountpoint)))
        return self._mountpoint

    def poll(self, t_s: float) -> bool:
        """Nothing to look for: writes come by themselves."""
        return False

    def close(self) -> None:
        """Unmount, and close the backing files."""
        self._mount.close()
        super().close()

    def _mirror_knobs(self) -> None:
        with self._lock:
            self.refresh_knobs()
