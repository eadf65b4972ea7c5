"""Which plan fills a job's table, and what its choice minimises."""

from __future__ import annotations

from ..context import Context, Job
from ..lut import Lut
from ..plans import AdaptivePlan, AdaptiveSettings, FullPlan, Plan, StaircasePlan
from ..values import Objective


def objective_of(job: Job, ctx: Context) -> Objective:
    """What this job's choice minimises: its own wish, else the configuration's."""
    return job.registered.objective or ctx.objective


def plan_for(lut: Lut, ctx: Context, job: Job, prior: Lut | None = None) -> Plan:
    """The plan that the configuration names. The staircase answers for time only: other objectives get every point.

    ``prior``: what to start from in place of the job's own.
    """
    objective, profile = objective_of(job, ctx), ctx.settings.profile
    if profile.plan == "adaptive":
        settings = AdaptiveSettings(
            max_points=profile.max_points,
            violation_probability=ctx.settings.violation_probability,
            switch_s=min(profile.settle_s, profile.settle_seen_s + 0.2),
            window_s=profile.min_window_s,
        )
        return AdaptivePlan(
            lut, ctx.cap_w, job.registered.relation, objective,
            prior=job.registered.prior if prior is None else prior, settings=settings,
        )  # fmt: skip
    if profile.plan == "staircase" and objective is Objective.TIME:
        return StaircasePlan(lut, ctx.cap_w)
    return FullPlan(lut)
