"""GPU clock tables of the virtual boards (Hz, ascending) and the memory that training may use on them.

Tables as real boards print them in ``available_frequencies``, where that is known: see the ``note`` of each file in
data/boards.
"""

from __future__ import annotations

from ..board.boardspec import board_names, load_board

CALIBRATED = ("nano", "tx2-nx", "agx-orin")
"""Boards whose surfaces were fitted to published figures. Those of the others are predicted from these by scaling."""

_NANO_STEP_HZ = 76_800_000
_BOARDS = {name: load_board(name) for name in (*CALIBRATED, *sorted(set(board_names()) - set(CALIBRATED)))}

CLOCKS_HZ: dict[str, tuple[int, ...]] = {name: spec.gpu.frequencies_hz for name, spec in _BOARDS.items()}

# The six clocks that the paper's figures tick for the Nano (method A); its operating points are among these.
NANO_TICKED_HZ: tuple[int, ...] = tuple(_NANO_STEP_HZ * k for k in (2, 4, 6, 8, 10, 12))

# What is left for a training process once the system has taken its share: about 3 GB of the Nano's and the
# TX2 NX's 4 GB. The batch sizes that the papers could not run must not fit.
USABLE_MEMORY_BYTES: dict[str, int] = {
    name: spec.memory_total_bytes - spec.memory_used_bytes for name, spec in _BOARDS.items()
}
