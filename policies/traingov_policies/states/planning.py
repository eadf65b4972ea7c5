"""Which plan fills a job's table, and what its choice minimises."""

from __future__ import annotations

import math

from ..context import Context, Job
from ..lut import Lut
from ..plans import AdaptivePlan, AdaptiveSettings, FullPlan, Plan, StaircasePlan
from ..values import Objective


def objective_of(job: Job, ctx: Context) -> Objective:
    """What this job's choice minimises: its own wish, else the configuration's."""
    return job.registered.objective or ctx.objective


def _horizon_s(ctx: Context) -> float:
    """For how long a point measured now may serve: an hour, or as long as caps hold, in powers of two."""
    expected_s = ctx.pace.expected_s(ctx.now_s)
    if expected_s >= AdaptiveSettings.horizon_s:
        return AdaptiveSettings.horizon_s
    return float(2 ** math.floor(math.log2(max(1.0, expected_s))))


def plan_for(lut: Lut, ctx: Context, job: Job, prior: Lut | None = None, *, lasting: bool = False) -> Plan:
    """The plan that the configuration names. The staircase answers for time only: other objectives get every point.

    ``prior``: what to start from in place of the job's own. ``lasting``: as if the present cap held for good.
    """
    objective, profile = objective_of(job, ctx), ctx.settings.profile
    if profile.plan == "adaptive":
        ahead_s = AdaptiveSettings.horizon_s if lasting else _horizon_s(ctx)
        moves = ahead_s < AdaptiveSettings.horizon_s
        settings = AdaptiveSettings(
            max_points=profile.max_points,
            violation_probability=ctx.settings.violation_probability,
            switch_s=min(profile.settle_s, profile.settle_seen_s + 0.2),
            window_s=profile.min_window_s,
            horizon_s=ahead_s,
            # Where the cap is another one soon, so is what lies close to it: neither above it nor twice.
            overshoot=1.0 if moves else AdaptiveSettings.overshoot,
            repeats=0 if moves else AdaptiveSettings.repeats,
        )
        return AdaptivePlan(
            lut, ctx.cap_w, job.registered.relation, objective,
            prior=job.registered.prior if prior is None else prior, settings=settings,
        )  # fmt: skip
    if profile.plan == "staircase" and objective is Objective.TIME:
        return StaircasePlan(lut, ctx.cap_w)
    return FullPlan(lut)
