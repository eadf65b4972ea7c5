"""The GPU's knob as the daemon's device worker handles it: original kept, written in a safe order, read back."""

from __future__ import annotations

from collections.abc import Callable

from ..board.physics import VirtualBoard

OnWrite = Callable[[str, int, str | None], None]


class Knob:
    """``on_write`` is told path, value and the kernel's refusal of each write."""

    def __init__(self, board: VirtualBoard, on_write: OnWrite) -> None:
        self._board = board
        self._on_write = on_write
        self._original: tuple[int, int] | None = None
        self._ours: tuple[int, int] | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """min_freq and max_freq as they read back."""
        return self._board.clock.bounds()

    def set_bounds(self, min_hz: int, max_hz: int, t_s: float) -> str | None:
        """Raising, maximum first; else minimum first; the second write is adjusted to what the first one left.

        The kernel's refusal in one line, or None.
        """
        if self._original is None:
            self._original = self.bounds
        names = ("max_freq", "min_freq") if max_hz > self.bounds[1] else ("min_freq", "max_freq")
        error = None
        for name in names:
            low, high = self.bounds
            hz = min(min_hz, high) if name == "min_freq" else max(max_hz, low)
            refusal = self._write(name, hz, t_s)
            error = error or refusal
        self._ours = self.bounds
        return error

    def restore(self, t_s: float) -> None:
        """The originals come back where the knob still holds what was written; another program's value stays."""
        original, self._original = self._original, None
        if original is None or self.bounds != self._ours:
            return
        order = [("min_freq", original[0]), ("max_freq", original[1])]
        if original[1] > self.bounds[1]:
            order.reverse()
        for name, hz in order:
            self._write(name, hz, t_s)

    def _write(self, name: str, hz: int, t_s: float) -> str | None:
        path = f"/{self._board.spec.gpu.node}/{name}"
        try:
            self._board.write_devfreq(name, str(hz), t_s)
        except OSError as error:
            text = f"{path}: {hz} was refused ({error.strerror})"
            self._on_write(path, hz, error.strerror or "refused")
            return text
        self._on_write(path, hz, None)
        return None
