"""The discrete-event twin: the governor that runs live, on a virtual board, in pseudo-time (DESIGN 1).

No process, thread, socket or clock: one event queue drives ``VirtualBoard`` and ``Governor``. At 10 ms sampling it
runs hundreds of times faster than real time. Everything here is simulated.
"""

from .job import Progress, SamplesToAccuracy, Steps, TwinJob
from .recording import Recording
from .telemetry import Telemetry, coarse
from .twin import Moment, Twin, settings_for

__all__ = [
    "Moment",
    "Progress",
    "Recording",
    "SamplesToAccuracy",
    "Steps",
    "Telemetry",
    "Twin",
    "TwinJob",
    "coarse",
    "settings_for",
]
