"""What an administrator can set about the decisions; the defaults are those of etc/traingov.yaml."""

from __future__ import annotations

from dataclasses import dataclass, field

from .drift.settings import DriftSettings
from .following import FollowSettings
from .guarding.options import GuardSettings
from .idling import IdleSettings
from .robust import VIOLATION_PROBABILITY
from .search.options import SearchSettings
from .tree import Tree
from .values import Objective, PolicyName

PLANS = ("adaptive", "staircase", "full")


@dataclass(frozen=True)
class ProfileSettings:
    """How a point is measured.

    ``plan``: which points are measured, one of PLANS; ``max_points`` bounds the adaptive one. ``samples``: the
    table's s, so that T_s is comparable over batch sizes. A point settles for ``settle_s``, or,
    where telemetry shows its clock, at least ``settle_seen_s``. A measurement lasts at least ``min_window_s`` and
    ``min_steps``, or one step where steps are longer than ``long_step_s``; it ends once the step time's relative
    standard deviation is below ``precision`` and the peak is clear of the cap, and after ``decide_window_s`` at the
    latest; without steps it is given up after ``max_window_s``. ``power_noise``: relative standard deviation of a
    window mean that is taken for granted, since noise is correlated within a window and cannot be seen there.
    ``max_frequencies``: larger clock tables are thinned to at most this many. ``attempts``: how often an invalid
    measurement is repeated before the point is marked failed.
    """

    plan: str = "adaptive"
    max_points: int = 12
    samples: int = 4096
    settle_s: float = 0.8
    settle_seen_s: float = 0.8
    min_window_s: float = 1.2
    min_steps: int = 2
    long_step_s: float = 1.5
    decide_window_s: float = 4.0
    max_window_s: float = 120.0
    precision: float = 0.01
    power_noise: float = 0.005
    min_readings: int = 5
    max_frequencies: int = 16
    attempts: int = 2
    clock_tolerance: float = 0.03

    def __post_init__(self) -> None:
        if self.plan not in PLANS:
            raise ValueError(f"profile.plan is {self.plan!r}; use one of {', '.join(PLANS)}")


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
    following: FollowSettings = field(default_factory=FollowSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    drift: DriftSettings = field(default_factory=DriftSettings)
    idle: IdleSettings = field(default_factory=IdleSettings)
    sampling_interval_s: float = 0.01
    idle_interval_s: float | None = None
    stale_after_s: float = 0.5
    reference_window_s: float = 3.0
    apply_timeout_s: float = 60.0
    rewrite_tries: int = 3
    violation_probability: float = VIOLATION_PROBABILITY
