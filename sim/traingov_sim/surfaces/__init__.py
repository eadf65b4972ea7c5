"""Calibrated surfaces of the virtual boards: time and power of a training step by batch size and GPU clock.

Everything here is simulated: parameters chosen so that the surfaces meet what the papers publish, see
docs/calibration.md.
"""

from .clocks import CLOCKS_HZ, NANO_TICKED_HZ, USABLE_MEMORY_BYTES
from .generator import GeneratedSurface
from .store import features, load, names

__all__ = [
    "CLOCKS_HZ",
    "NANO_TICKED_HZ",
    "USABLE_MEMORY_BYTES",
    "GeneratedSurface",
    "features",
    "load",
    "names",
]
