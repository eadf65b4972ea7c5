"""The kinds of published fact that a surface is held against. Values only; ``misfit`` measures them.

A fact is satisfied when its residual, in units of its tolerance, lies within -1 … 1. Inequalities have residual 0
while they hold.
"""

from __future__ import annotations

from dataclasses import dataclass

CALIBRATION = "calibration"  # published, and the search tries to meet it
CHOICE = "choice"  # not published: a level that the publications leave free, set to a plausible value
CHECK = "check"  # published, never searched for: reported as a prediction


@dataclass(frozen=True)
class Cell:
    """Seconds to accuracy at (b, f): T_s(b, f) · N with one free N per ``group`` (a batch size and data set)."""

    batch_size: int
    frequency_hz: int
    seconds: float
    group: str
    known_samples: float | None = None  # N is known from another board: then it is not free


@dataclass(frozen=True)
class Samples:
    """Passes over the data set that ``group``'s batch size needs: N, from its cells."""

    group: str
    passes: float


@dataclass(frozen=True)
class TimeRatio:
    """T_s(first) / T_s(second), seconds per sample at operating points (b, f)."""

    first: tuple[int, int]
    second: tuple[int, int]
    ratio: float


@dataclass(frozen=True)
class HighestClock:
    """Among the fact's clocks, ``frequency_hz`` is the highest for ``batch_size`` with peak power below ``cap_w``.

    ``at_least``: a higher one may be feasible too.
    """

    batch_size: int
    frequency_hz: int
    cap_w: float
    at_least: bool = False


@dataclass(frozen=True)
class ClockAbove:
    """Under ``cap_w`` the highest feasible clock of batch ``higher`` lies above that of ``lower``."""

    higher: int
    lower: int
    cap_w: float


@dataclass(frozen=True)
class SafeClock:
    """``frequency_hz`` keeps peak power below ``cap_w`` for every batch size of the workload."""

    frequency_hz: int
    cap_w: float


@dataclass(frozen=True)
class CappedTimeRatio:
    """T_s(first) / T_s(second), each at its highest feasible clock under ``cap_w``, lies in (low, high)."""

    first: int
    second: int
    cap_w: float
    low: float
    high: float


@dataclass(frozen=True)
class StepTime:
    """Seconds that a step of ``batch_size`` takes at ``frequency_hz``."""

    batch_size: int
    frequency_hz: int
    seconds: float


@dataclass(frozen=True)
class Saving:
    """Compute energy saved at ``frequency_hz`` against mode 0 (the top clock under load), in percent."""

    frequency_hz: int
    percent: float


@dataclass(frozen=True)
class BestClock:
    """The clock of least compute energy is one of ``frequencies_hz``."""

    frequencies_hz: tuple[int, ...]


@dataclass(frozen=True)
class BusyShare:
    """GPU utilization at mode 0, in percent."""

    percent: float


@dataclass(frozen=True)
class LevelPower:
    """Mean input power (``compute``: of the GPU and CPU rails) at (b, f), in watts."""

    batch_size: int
    frequency_hz: int
    watts: float
    compute: bool = False


@dataclass(frozen=True)
class Shape:
    """Mean power over the clock, scaled to 0 at the lowest and 1 at the highest clock of ``frequencies_hz``."""

    batch_size: int
    frequencies_hz: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Irregularity:
    """The per-clock irregularities (factors on step time) are 1 but for a few percent: their rms is small."""

    rms: float


Measure = (
    Cell
    | Samples
    | TimeRatio
    | HighestClock
    | ClockAbove
    | SafeClock
    | CappedTimeRatio
    | StepTime
    | Saving
    | BestClock
    | BusyShare
    | LevelPower
    | Shape
    | Irregularity
)


@dataclass(frozen=True)
class Fact:
    """One statement about a workload on a board.

    ``tolerance`` is relative for times and ratios, watts for power, percentage points for savings and utilization,
    a share of the range for shapes. ``source`` names the paper's place.
    """

    name: str
    kind: str
    measure: Measure
    tolerance: float
    source: str


@dataclass(frozen=True)
class Case:
    """A workload, the operating points its facts speak of, and the facts.

    ``clocks_hz`` are the clocks among which "highest" is meant; ``batch_sizes`` those the paper trains with.
    """

    board: str
    workload: str
    batch_sizes: tuple[int, ...]
    clocks_hz: tuple[int, ...]
    pass_samples: int  # training samples in one pass over the data set
    facts: tuple[Fact, ...]
