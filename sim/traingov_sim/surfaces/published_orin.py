"""What the energy paper publishes of fine-tuning on the AGX Orin (table II, section IV), as data.

Savings are those of the fixed governor (714 MHz) and, where its clock differs, of the tree, against mode 0, taken
as the top clock under load. Layers come from the paper, hidden sizes from the models' cards. Average sequence
lengths, step times, utilizations and power levels are not published: those given here are choices near what the
tasks and models have. A family of all 54 pairs is made by adding rows to WORKLOADS.
"""

from __future__ import annotations

from dataclasses import dataclass

from .clocks import CLOCKS_HZ
from .facts import (
    CALIBRATION,
    CHOICE,
    BestClock,
    BusyShare,
    Case,
    Fact,
    Irregularity,
    LevelPower,
    Measure,
    Saving,
    StepTime,
)

CLOCKS = CLOCKS_HZ["agx-orin"]
BATCH = 32
FFG_HZ = 714_000_000
SAVING_TOLERANCE = 1.5  # percentage points
USUAL_BEST_HZ = tuple(hz for hz in CLOCKS if 510_000_000 <= hz <= 816_000_000)


@dataclass(frozen=True)
class FineTuning:
    """A model and task: features, chosen levels, and the anchors on its energy curve.

    ``savings_percent`` maps a clock in Hz to the published saving; ``best_hz`` are the clocks among which the
    optimum lies; ``step_s``, ``utilization_percent`` and ``compute_w`` are levels at the top clock, batch 32;
    ``irregular`` allows per-clock irregularities (small models: "spikes in the curve"). ``usual_saving_percent`` is
    the model's mean saving at 714 MHz over other tasks, where this pair's own is not published.
    """

    name: str
    model_type: str
    layers: int
    hidden_size: int
    seq_len_avg: float
    step_s: float
    utilization_percent: float
    compute_w: float
    savings_percent: dict[int, float]
    best_hz: tuple[int, ...]
    irregular: bool = False
    usual_saving_percent: float | None = None


WORKLOADS = (
    FineTuning("bert-base/qqp", "bert", 12, 768, 30.4, 0.16, 78.0, 26.0, {FFG_HZ: 24.37}, USUAL_BEST_HZ),
    FineTuning("bert-base/mnli", "bert", 12, 768, 39.1, 0.18, 82.0, 27.0, {FFG_HZ: 24.50}, USUAL_BEST_HZ),
    FineTuning(
        *("bert-base/rte", "bert", 12, 768, 66.4, 0.26, 60.0, 24.0),
        *({FFG_HZ: 9.38, 816_000_000: 12.37}, (714_000_000, 816_000_000, 918_000_000, 1_020_000_000)),
    ),
    FineTuning(
        *("bert-small/mrpc", "bert", 4, 512, 53.2, 0.085, 20.0, 9.5),
        *({}, (1_020_000_000,), True, -3.7),
    ),
    FineTuning(
        *("pythia-31m/mrpc", "pythia", 6, 256, 54.6, 0.10, 32.0, 10.0),
        *({FFG_HZ: -5.0}, (612_000_000,), True),
    ),
    FineTuning(
        *("pythia-70m/mrpc", "pythia", 6, 512, 54.6, 0.11, 28.0, 11.0),
        *({}, (1_122_000_000,), True, 0.19),
    ),
)


def workload(name: str) -> FineTuning:
    """The workload of that name. Raises KeyError with the known names."""
    for w in WORKLOADS:
        if w.name == name:
            return w
    raise KeyError(f"no published facts for {name!r}; known: {', '.join(w.name for w in WORKLOADS)}")


def orin_case(name: str) -> Case:
    """The facts of a fine-tuning workload on the AGX Orin."""
    w = workload(name)
    top = CLOCKS[-1]
    rows: list[tuple[str, str, Measure, float, str]] = []
    for hz, percent in w.savings_percent.items():
        text = f"{hz / 1e6:.0f} MHz saves {percent:g} % of the compute energy of mode 0"
        source = "section IV-1" if w.irregular else "table II"
        rows.append((text, CALIBRATION, Saving(hz, percent), SAVING_TOLERANCE, source))
    best = " or ".join(f"{hz / 1e6:.0f}" for hz in w.best_hz)
    source = "section IV-1" if w.irregular else "section III-B, figure 2"
    # An optimum is told apart by 0.5 %; the tolerance is how far another clock may be better, in percent.
    rows.append((f"the best clock is {best} MHz", CALIBRATION, BestClock(w.best_hz), 0.5, source))
    free = "free: not published"
    rows += [
        (f"a step takes about {w.step_s:g} s at the top clock", CHOICE, StepTime(BATCH, top, w.step_s), 0.1, free),
        (f"GPU utilization is about {w.utilization_percent:g} %", CHOICE, BusyShare(w.utilization_percent), 3, free),
        (f"the rails draw about {w.compute_w:g} W", CHOICE, LevelPower(BATCH, top, w.compute_w, True), 2, free),
    ]
    if w.usual_saving_percent is not None:
        text = f"714 MHz saves about {w.usual_saving_percent:g} %, as with the model's other tasks"
        source = "free; near the model's mean in table II"
        rows.append((text, CHOICE, Saving(FFG_HZ, w.usual_saving_percent), 3.0, source))
    if w.irregular:
        rows.append(("clocks are irregular by no more than 5 % (rms)", CHOICE, Irregularity(0.0), 0.05, free))
    facts = tuple(Fact(*r) for r in rows)
    return Case("agx-orin", name, (BATCH,), CLOCKS, 0, facts)
