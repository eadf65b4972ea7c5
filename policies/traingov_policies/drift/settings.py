"""What an administrator can set about drift; the defaults are those of etc/traingov.yaml."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DriftSettings:
    """How a table is watched, and what follows when it no longer holds.

    ``shift``: the relative change that is looked for; ``tolerance``: one that is none yet. ``probe_budget``: share of
    time that may be spent at other points (0: no probes); ``probe_most_s``: a point whose probe would last longer is
    not probed, nor measured again for drift where there are enough others. ``points_share``: share of the table's
    points that a partial re-profile measures at most (but three always may be). ``uniform``: points whose ratios
    live / table differ by less count as changed alike. ``verified``: a corrected value is right when the measurement
    differs by at most this. ``wait_most_s``: how long thermal throttling and the like are waited out before a drift is
    looked into all the same. ``again_s``: pause between two full re-profiles for drift. ``history``: old tables kept
    for each workload.
    """

    enabled: bool = True
    shift: float = 0.05
    tolerance: float = 0.01
    probe_budget: float = 0.005
    probe_most_s: float = 20.0
    points_share: float = 0.15
    uniform: float = 0.02
    verified: float = 0.03
    wait_most_s: float = 600.0
    again_s: float = 1800.0
    history: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < self.shift < 1:
            raise ValueError(
                f"drift: shift {self.shift!r} must lie above tolerance {self.tolerance!r}, both between 0 and 1"
            )
        if not 0 <= self.probe_budget <= 0.1:
            raise ValueError(f"drift: probe_budget must lie between 0 and 0.1 of time, not {self.probe_budget!r}")
        if not 0 < self.points_share <= 1:
            raise ValueError(f"drift: points_share must lie above 0 and not above 1, not {self.points_share!r}")
