"""What the history keeps of a run, as values. Times are wall-clock seconds since 1970 (UTC), durations are monotonic.

A missing reading is None, never 0: a board without a power sensor has runs without energies.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PointUse:
    """How long a run used one operating point, and what that took.

    ``gpu_frequency_hz`` None is the board's own governor (mode 0). Energies are those of the whole board.
    """

    batch_size: int
    gpu_frequency_hz: int | None
    time_s: float
    samples: int
    steps: int
    input_energy_j: float | None
    compute_energy_j: float | None


@dataclass(frozen=True)
class CapUse:
    """A cap in force from ``at_s`` on; ``power_w`` None: none."""

    at_s: float
    power_w: float | None
    window_s: float | None
    burst_w: float | None
    source: str


@dataclass(frozen=True)
class Choice:
    """A decision of the governor, numbered from 1 within its run."""

    number: int
    at_s: float
    kind: str
    text: str
    batch_size: int | None
    gpu_frequency_hz: int | None
    reasons: str | None = None
    """Why, a sentence a line, as ``traingov explain`` says it; None where the text says all."""


@dataclass(frozen=True)
class Notice:
    """A condition that holds with ``text`` from ``at_s`` on; ``text`` None: no longer."""

    at_s: float
    name: str
    text: str | None


@dataclass(frozen=True, slots=True)  # a running job holds up to 1440
class Span:
    """A stretch of a run, from ``start_s`` (seconds since it began) for ``width_s``.

    Input power is the mean, least and largest of the ``readings`` that came, all None without one; ``window_w`` is the
    largest mean over the cap's window; ``cap_w`` and ``batch_size`` are those at the stretch's end; the clock is the
    lowest and the highest that telemetry showed (or, where it shows none, the one that was set).
    """

    start_s: float
    width_s: float
    readings: int
    power_w: float | None
    least_w: float | None
    most_w: float | None
    window_w: float | None
    cap_w: float | None
    low_hz: int | None
    high_hz: int | None
    batch_size: int


@dataclass(frozen=True)
class Run:
    """One run of a job, from registration to its end or to now (``end_reason`` None).

    ``samples_done`` is the progress that it brought; ``samples`` and ``steps`` are those of this run. Of
    ``judged_s`` seconds under a cap the window mean lay above it for ``above_cap_s``. ``gap_s`` seconds could not be
    integrated: energies are lower bounds then. ``shared``: another job ran in the meantime.
    ``spans`` are its timeline; they were merged ``merges`` times so that they stay few. ``root``: the folder that stood
    for / when the board was read (a virtual board's); None for the machine's own files.
    """

    job: str
    workload: str
    signature: str
    board: str
    release: str
    power_mode: str
    policy: str
    objective: str
    batch_sizes: tuple[int, ...]
    samples_done: int
    samples_total: int | None
    started_s: float
    updated_s: float
    ended_s: float | None
    end_reason: str | None
    elapsed_s: float
    samples: int
    steps: int
    input_energy_j: float | None
    compute_energy_j: float | None
    above_cap_s: float
    judged_s: float
    gap_s: float
    shared: bool
    guard_steps: int
    points: tuple[PointUse, ...] = ()
    caps: tuple[CapUse, ...] = ()
    choices: tuple[Choice, ...] = ()
    notices: tuple[Notice, ...] = ()
    spans: tuple[Span, ...] = ()
    merges: int = 0
    root: str | None = None
