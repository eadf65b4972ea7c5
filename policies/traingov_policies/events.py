"""What a governor is told. Times ``t_s`` are CLOCK_MONOTONIC seconds, never wall-clock time.

The shell feeds these live, a replay feeds them from a recording, a simulation feeds them from its own clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .guarding.options import GuardSettings
from .lut import Lut
from .relation import RelationVector
from .search.curves import Curve
from .sweep import SweepRow
from .values import Board, Cap, Features, Objective, PolicyName


@dataclass(frozen=True)
class Sample:
    """One telemetry sample. A missing reading is None, never 0 (DESIGN 5.5)."""

    t_s: float
    input_power_w: float | None = None
    compute_power_w: float | None = None
    gpu_frequency_hz: int | None = None
    gpu_utilization: float | None = None
    temperature_celsius: float | None = None


@dataclass(frozen=True)
class JobRegistered:
    """A training process registered.

    ``batch_sizes`` are those the job can use, ascending; ``batch_size`` the one it uses now.
    ``samples_done`` is the progress that a resuming job brings. ``lut`` and ``relation`` are what the store
    holds for this workload, so that the governor itself reads no file. ``prior`` is a table from elsewhere (a
    vendor's, another board's), its cells marked predicted: a starting point that is verified, not trusted.
    ``policy`` and ``objective`` override the configuration where the job asked for it. ``samples_total`` is the job's
    length where it is known. ``remembered`` are this workload's own energy curves on this board, by batch size;
    ``curves`` those of other workloads on it.
    """

    t_s: float
    job: str
    workload: str
    batch_sizes: tuple[int, ...]
    batch_size: int
    policy: PolicyName | None = None
    objective: Objective | None = None
    features: Features = field(default_factory=Features)
    lut: Lut | None = None
    relation: RelationVector | None = None
    samples_done: int = 0
    prior: Lut | None = None
    samples_total: int | None = None
    remembered: tuple[Curve, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True)
class StepsReported:
    """A job finished ``steps`` steps (``samples`` samples) at ``batch_size`` in ``elapsed_s`` seconds.

    The window ends at ``t_s``. ``seq_len_avg`` is the measured mean sequence length, not the padding length.
    ``synced``: the device was synchronised at both edges of the window, so ``elapsed_s`` is device time too.
    """

    t_s: float
    job: str
    batch_size: int
    steps: int
    samples: int
    elapsed_s: float
    synced: bool = False
    seq_len_avg: float | None = None


@dataclass(frozen=True)
class BatchApplied:
    """The job now trains with ``batch_size``; ``advice`` is the number of the advice it follows, if any."""

    t_s: float
    job: str
    batch_size: int
    advice: int | None = None


@dataclass(frozen=True)
class BatchFailed:
    """The job cannot use ``batch_size`` (out of memory, say); it leaves the candidates."""

    t_s: float
    job: str
    batch_size: int
    reason: str = "out_of_memory"


@dataclass(frozen=True)
class JobEnded:
    """The job ended: "end" (it said so), "disconnected" or "exited"."""

    t_s: float
    job: str
    reason: str = "end"


@dataclass(frozen=True)
class JobPaused:
    """The job makes no steps for a while and says so: evaluation, a checkpoint. ``reason`` is its own word for it."""

    t_s: float
    job: str
    reason: str = "pause"


@dataclass(frozen=True)
class JobResumed:
    """The pause is over."""

    t_s: float
    job: str


@dataclass(frozen=True)
class CapChanged:
    """A new cap is in force; None lifts it. ``source`` says who set it."""

    t_s: float
    cap: Cap | None
    source: str = "configuration"


@dataclass(frozen=True)
class PolicyChanged:
    """An administrator chose another policy for jobs that did not ask for one themselves."""

    t_s: float
    policy: PolicyName
    objective: Objective


@dataclass(frozen=True)
class KnobReadBack:
    """What the GPU bounds really are after a write (or after a periodic look, ``requested`` None).

    ``error`` is the kernel's refusal in one line, None when the write went through.
    """

    t_s: float
    requested_min_hz: int | None
    requested_max_hz: int | None
    min_hz: int | None
    max_hz: int | None
    error: str | None = None


@dataclass(frozen=True)
class Stored:
    """What the store holds for ``job`` on the board as it is now; the fields as in ``JobRegistered``."""

    job: str
    lut: Lut | None = None
    prior: Lut | None = None
    remembered: tuple[Curve, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True)
class BoardFound:
    """The board as it is now: sent before the first job registers, since drivers load late, and when the power mode
    or the clock table changes while jobs run. ``stored`` is then what the store holds for the new mode, a job each.
    """

    t_s: float
    board: Board
    stored: tuple[Stored, ...] = ()


@dataclass(frozen=True)
class Zone:
    """A thermal zone: its temperature (None: gated or unreadable) and its lowest passive trip point, if any."""

    name: str
    celsius: float | None = None
    trip_celsius: float | None = None


@dataclass(frozen=True)
class Thermals:
    """The board's thermal zones, and the cooling devices that hold something back now (fans are none of them).

    ``cooling`` are name and state, above 0. Sent about once a second while a job is registered.
    """

    t_s: float
    zones: tuple[Zone, ...] = ()
    cooling: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class OverCurrentCounted:
    """The board's over-current counters rose: by how much each, since the last look. Not sent when none did."""

    t_s: float
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GuardChanged:
    """Other settings of the guard are in force (a reload of the configuration)."""

    t_s: float
    guard: GuardSettings


@dataclass(frozen=True)
class SweepRequested:
    """Somebody wants the energy of ``job`` at mode 0 and at ``clocks_hz``, for a time or a number of steps each.

    With neither, the paper's five minutes. ``done`` are the rows that an earlier, interrupted sweep measured.
    """

    t_s: float
    job: str
    clocks_hz: tuple[int, ...]
    duration_s: float | None = None
    steps: int | None = None
    done: tuple[SweepRow, ...] = ()


@dataclass(frozen=True)
class SweepStopped:
    """The sweep shall go no further; what was measured is kept."""

    t_s: float


@dataclass(frozen=True)
class Tick:
    """Time passed; sent at least every 100 ms while a job is registered, so that every wait is bounded."""

    t_s: float


Event = (
    Sample
    | JobRegistered
    | StepsReported
    | BatchApplied
    | BatchFailed
    | JobEnded
    | JobPaused
    | JobResumed
    | CapChanged
    | PolicyChanged
    | KnobReadBack
    | BoardFound
    | Thermals
    | OverCurrentCounted
    | GuardChanged
    | SweepRequested
    | SweepStopped
    | Tick
)
