"""What a governor asks for. The shell carries the actions out in order and never answers back except by events."""

from __future__ import annotations

from dataclasses import dataclass, field

from .lut import Lut
from .search.curves import Curve
from .sweep import SweepRow
from .values import OperatingPoint


@dataclass(frozen=True)
class SetGpuBounds:
    """Write the GPU's devfreq bounds, in Hz, both ends (a pin when they are equal)."""

    min_hz: int
    max_hz: int
    reason: str


@dataclass(frozen=True)
class RestoreGpuBounds:
    """Give the GPU's bounds back as they were found (DESIGN 5.1)."""

    reason: str


@dataclass(frozen=True)
class AdviseBatch:
    """Advise a job to use ``batch_size`` from its next safe point on.

    ``phase`` is "profile" (measure: synchronise at window edges), "train" or "hold" (keep what you use).
    ``advice`` numbers the advice, so that the answer can be told from the answer to an older one.
    """

    job: str
    batch_size: int
    phase: str
    advice: int
    reason: str


@dataclass(frozen=True)
class JobIdle:
    """``job`` idles from now on (no steps, and the GPU does not work for it), or no longer. For the accounts."""

    job: str
    idle: bool
    reason: str = ""


@dataclass(frozen=True)
class SetSamplingInterval:
    """Sample every ``interval_s`` seconds; None switches sampling off."""

    interval_s: float | None


@dataclass(frozen=True)
class PersistLut:
    """Keep this table: ``job`` just measured (part of) it.

    It is laid over the one that is kept. With ``replaces``, which says why, it takes the place of that one, which goes
    into the history.
    """

    lut: Lut
    job: str = ""
    replaces: str | None = None


@dataclass(frozen=True)
class PersistSweep:
    """Keep these rows of an energy sweep of ``job``: all that were measured of its workload so far."""

    job: str
    rows: tuple[SweepRow, ...]


@dataclass(frozen=True)
class PersistCurve:
    """Keep this energy curve: ``job`` just measured (part of) it."""

    curve: Curve
    job: str = ""


@dataclass(frozen=True)
class RaiseCondition:
    """Something an operator should know holds from now on."""

    name: str
    text: str


@dataclass(frozen=True)
class ClearCondition:
    """The condition no longer holds."""

    name: str


@dataclass(frozen=True)
class Decided:
    """A decision and why, for the log and ``traingov explain``. ``point`` is None where none was chosen."""

    job: str | None
    kind: str
    text: str
    point: OperatingPoint | None = None
    detail: dict[str, object] = field(default_factory=dict)


Action = (
    SetGpuBounds
    | RestoreGpuBounds
    | AdviseBatch
    | JobIdle
    | SetSamplingInterval
    | PersistLut
    | PersistSweep
    | PersistCurve
    | RaiseCondition
    | ClearCondition
    | Decided
)
