"""GPU clock tables of the virtual boards (Hz, ascending) and the memory that training may use on them.

Tables as real boards print them in ``available_frequencies``: Nano and TX2 under L4T R32, AGX Orin under R36.
"""

from __future__ import annotations

_NANO_STEP_HZ = 76_800_000

CLOCKS_HZ: dict[str, tuple[int, ...]] = {
    "nano": tuple(_NANO_STEP_HZ * k for k in range(1, 13)),
    "tx2-nx": (
        *(114_750_000, 216_750_000, 318_750_000, 420_750_000, 522_750_000, 624_750_000, 726_750_000),
        *(854_250_000, 930_750_000, 1_032_750_000, 1_122_000_000, 1_236_750_000, 1_300_500_000),
    ),
    "agx-orin": (*(306_000_000 + 102_000_000 * k for k in range(10)), 1_300_500_000),
}

# The six clocks that the paper's figures tick for the Nano (method A); its operating points are among these.
NANO_TICKED_HZ: tuple[int, ...] = tuple(_NANO_STEP_HZ * k for k in (2, 4, 6, 8, 10, 12))

# What is left for a training process once the system has taken its share: about 3 GB of the Nano's and the
# TX2 NX's 4 GB. The batch sizes that the papers could not run must not fit.
USABLE_MEMORY_BYTES: dict[str, int] = {
    "nano": 3_000_000_000,
    "tx2-nx": 3_000_000_000,
    "agx-orin": 58_000_000_000,
}
