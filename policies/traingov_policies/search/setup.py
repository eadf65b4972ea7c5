"""Begins a search for a job: the prior from the board's other curves and from what is remembered of the job itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..values import Objective
from .curves import most_alike
from .options import SearchSettings
from .prior import Known, prior, remembered
from .search import Search

if TYPE_CHECKING:
    from ..context import Job


def objective_of(job: Job, settings: SearchSettings) -> Objective:
    """What the search lowers: the job's own wish where it is energy or edp, else the configuration's."""
    own = job.registered.objective
    return own if own in (Objective.ENERGY, Objective.EDP) else settings.objective


def build(job: Job, settings: SearchSettings, clocks: tuple[int, ...], start: int) -> Search:
    """A search over ``clocks`` from index ``start`` for the job at its present batch size."""
    registered, objective = job.registered, objective_of(job, settings)
    top = clocks[-1]
    u = np.log(np.array(clocks, float) / top)
    own = next((c for c in registered.remembered if c.batch_size == job.batch_size), None)
    others = most_alike([c for c in (*registered.remembered, *registered.curves) if c != own], clocks)
    known = [k for c in others if (k := c.known(settings.power, objective, top)) is not None]
    belief = prior(u, known, float(u[start]))
    best = None
    if own is not None and (mine := own.known(settings.power, objective, top)) is not None:
        places = [i for i, x in enumerate(mine.u) if np.min(np.abs(u - x)) < 1e-9]
        if places:
            index = [int(np.argmin(np.abs(u - mine.u[i]))) for i in places]
            belief = remembered(belief, index, Known(mine.u[places], mine.value[places], mine.sd[places]))
            if own.best_frequency_hz in clocks:
                best = clocks.index(own.best_frequency_hz)
    return Search(
        belief, start, probes_most=settings.probes_most, noise_sd=settings.standard_error, known=best,
    )  # fmt: skip
