"""Bytes from a pipe into lines, with every quantity bounded."""

from __future__ import annotations

from typing import Final

LINE_LIMIT: Final = 8192  # bytes; the longest real line is below 1 KiB


class LineSplitter:
    """Collects bytes and hands out whole lines, newest last.

    A line longer than ``limit`` is dropped up to its end and counted in ``oversized``. Lines that exceed what the
    caller is ready to handle at once are dropped, oldest first, and counted in ``skipped``. Not valid ASCII
    becomes a replacement character: the parser sees that it is no number.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.oversized = 0
        self.skipped = 0
        self._limit = limit
        self._rest = b""
        self._dropping = False

    def feed(self, data: bytes, at_most: int) -> list[str]:
        """The lines that ``data`` completes; of more than ``at_most`` the newest ones."""
        if not self._rest and not self._dropping and data.find(b"\n") == len(data) - 1 < self._limit:
            return [str(data, "ascii", "replace")]  # what happens at nearly every wake-up: one whole line
        lines = data.split(b"\n")
        if len(lines) == 1:
            self._keep(lines[0])
            return []
        whole: list[bytes] = []
        if not self._dropping:
            whole.append(self._rest + lines[0])
        whole += lines[1:-1]
        self._dropping, self._rest = False, b""
        self._keep(lines[-1])
        short = [line for line in whole if len(line) <= self._limit]
        self.oversized += len(whole) - len(short)
        if len(short) > at_most:
            self.skipped += len(short) - at_most
            short = short[-at_most:]
        return [str(line, "ascii", "replace") for line in short]

    def _keep(self, part: bytes) -> None:
        """Remember the beginning of a line, unless it is already too long."""
        if self._dropping:
            return
        if len(self._rest) + len(part) > self._limit:
            self.oversized += 1
            self._dropping, self._rest = True, b""
        else:
            self._rest += part

    def reset(self) -> None:
        """Forget a line that was begun: its writer is gone."""
        self._rest, self._dropping = b"", False
