"""NumPy's ``RandomState(seed).random_sample``, bit for bit, from the standard library's Mersenne Twister.

``numpy.random`` alone takes 2.5 MB of memory in a service that shall stay below 45 MB, for a few thousand numbers.
Both libraries use MT19937 and make doubles of 53 bits in the same way; only their seeding differs (Matsumoto and
Nishimura, "Mersenne Twister", 1998; NumPy takes init_genrand of their reference implementation of 2002).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

_WORDS = 624


class Uniforms:
    """Numbers in [0, 1), equally likely; the same ones for a ``seed`` with every version of NumPy and Python."""

    def __init__(self, seed: int) -> None:
        words = [seed & 0xFFFFFFFF]
        for i in range(1, _WORDS):
            words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + i) & 0xFFFFFFFF)
        self._source = random.Random()
        self._source.setstate((3, (*words, _WORDS), None))

    def random_sample(self, count: int) -> Any:
        """``count`` numbers, [count]."""
        bits = self._source.getrandbits(64 * count).to_bytes(8 * count, "little")
        words = np.frombuffer(bits, "<u4").reshape(count, 2)
        return ((words[:, 0] >> 5) * 67108864.0 + (words[:, 1] >> 6)) / 9007199254740992.0
