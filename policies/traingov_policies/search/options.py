"""What an administrator can set about the energy search; the defaults are those of etc/traingov.yaml."""

from __future__ import annotations

from dataclasses import dataclass

from ..values import Objective


@dataclass(frozen=True)
class SearchSettings:
    """How the energy policy looks for a better clock than the tree's.

    ``objective`` is energy or edp (a job's own wish goes before it); ``power`` says whether "compute" (GPU + CPU
    rails) or "input" (the whole board) counts; ``slowdown_limit`` keeps the time per sample below so many times that
    of mode 0. At most ``probes_most`` probes a search. A reading takes ``window_s`` to ``window_most_s``, until its
    standard error is ``standard_error``. A probe has to repay itself over the rest of the job: its ``samples_total``,
    else ``horizon_s``. ``loss_share`` and ``loss_s``: away from the tree's clock the job spends at most this share of
    its energy so far, plus what it uses in so many seconds, more than the tree's clock would have cost.
    A settled search is looked at again after ``again_s``, then after twice that, and so on. ``length_period_s`` and
    ``length_margin``: the tree is asked again when the mean sequence length of two such periods calls for another
    clock, by this margin.
    """

    enabled: bool = True
    objective: Objective = Objective.ENERGY
    power: str = "compute"
    slowdown_limit: float | None = None
    probes_most: int = 4
    window_s: float = 4.0
    window_most_s: float = 30.0
    standard_error: float = 0.01
    horizon_s: float = 3600.0
    loss_share: float = 0.005
    loss_s: float = 5.0
    again_s: float = 3600.0
    length_period_s: float = 60.0
    length_margin: float = 0.1
