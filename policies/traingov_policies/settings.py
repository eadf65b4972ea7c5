"""What an administrator can set about the decisions; the defaults are those of etc/traingov.yaml."""

from __future__ import annotations

from dataclasses import dataclass, field

from .guard import GuardSettings
from .robust import VIOLATION_PROBABILITY
from .tree import Tree
from .values import Objective, PolicyName


@dataclass(frozen=True)
class ProfileSettings:
    """How a point is measured.

    ``samples``: the table's s, so that T_s is comparable over batch sizes. A measurement ends once ``min_window_s``
    and ``min_steps`` are both reached, or after one step when steps are longer than ``long_step_s``; it is given up
    after ``max_window_s``. ``max_frequencies``: larger clock tables are thinned to at most this many. ``attempts``:
    how often an invalid measurement is repeated before the point is marked failed.
    """

    samples: int = 4096
    settle_s: float = 0.8
    min_window_s: float = 1.5
    min_steps: int = 3
    long_step_s: float = 5.0
    max_window_s: float = 120.0
    min_readings: int = 5
    max_frequencies: int = 8
    attempts: int = 2
    clock_tolerance: float = 0.03


@dataclass(frozen=True)
class Settings:
    """The governor's settings; ``stale_after_s`` as in DESIGN 5.3, ``apply_timeout_s`` bounds how slow a job may be.

    ``violation_probability``: a point is chosen only where it exceeds the cap with less than this probability.
    """

    policy: PolicyName = PolicyName.JOINT
    objective: Objective = Objective.TIME
    tree: Tree | None = None
    fixed_frequency_hz: int | None = None
    profile: ProfileSettings = field(default_factory=ProfileSettings)
    guard: GuardSettings = field(default_factory=GuardSettings)
    sampling_interval_s: float = 0.01
    idle_interval_s: float | None = None
    stale_after_s: float = 0.5
    reference_window_s: float = 3.0
    apply_timeout_s: float = 60.0
    rewrite_tries: int = 3
    violation_probability: float = VIOLATION_PROBABILITY
