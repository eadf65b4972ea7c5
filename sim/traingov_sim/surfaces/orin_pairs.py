"""The energy paper's 81 workloads on the AGX Orin: nine models × six test tasks and three training tasks, as data.

``SAVINGS_714`` is FFG's column of table II and calibrates the family; ``SAVINGS_TREE`` is MLG's column and calibrates
nothing. Layers are the paper's, hidden sizes the models' cards'. Not published, so chosen: average sequence lengths
(near what GLUE has), step times (near the paper's 100 steps of QQP: 350 s for Pythia-1B, 10 s for Pythia-31M),
utilization and rail power. The small models' utilization is left wide, because the tree asks whether it passes 22 %.
"""

from __future__ import annotations

from dataclasses import dataclass

from .clocks import CLOCKS_HZ
from .facts import CALIBRATION, CHOICE, BestClock, BusyShare, Case, Fact, LevelPower, Saving, StepTime
from .published_orin import BATCH, FFG_HZ, SAVING_TOLERANCE

CLOCKS = CLOCKS_HZ["agx-orin"]
TOP_HZ = CLOCKS[-1]
TEST_TASKS = ("qqp", "rte", "cola", "stsb", "mnli", "wnli")
TRAINING_TASKS = ("sst2", "qnli", "mrpc")
_MHZ = 1_000_000
LABELS_HZ = tuple(_MHZ * m for m in (510, 612, 714, 816, 1020, 1122))

# Examples in one epoch (GLUE's training sets).
EXAMPLES = {
    **{"qqp": 363_846, "rte": 2_490, "cola": 8_551, "stsb": 5_749, "mnli": 392_702, "wnli": 635},
    **{"sst2": 67_349, "qnli": 104_743, "mrpc": 3_668},
}
# Average length in tokens, (BERT and DeBERTa, Pythia).
LENGTHS = {
    **{"qqp": (30.4, 29.6), "rte": (66.4, 69.2), "cola": (11.3, 10.5), "stsb": (31.2, 31.8), "mnli": (39.1, 39.8)},
    **{"wnli": (37.1, 36.0), "sst2": (13.3, 12.1), "qnli": (50.6, 52.2), "mrpc": (53.2, 54.6)},
}


@dataclass(frozen=True)
class Model:
    """A model: features, and the levels chosen for it.

    ``step_s`` is a constant and seconds per token of average length, at the top clock and batch 32;
    ``utilization_percent`` and ``compute_w`` are level and half width. ``spiky``: the paper's "small-scale models",
    whose curves fluctuate.
    """

    name: str
    model_type: str
    layers: int
    hidden_size: int
    step_s: tuple[float, float]
    utilization_percent: tuple[float, float]
    compute_w: tuple[float, float]
    spiky: bool = False


MODELS = (
    Model("bert-small", "bert", 4, 512, (0.070, 0.0003), (24.0, 10.0), (10.0, 2.5), True),
    Model("bert-medium", "bert", 8, 512, (0.080, 0.0007), (42.0, 12.0), (15.0, 4.0), True),
    Model("bert-base", "bert", 12, 768, (0.075, 0.0028), (70.0, 18.0), (25.0, 7.0)),
    Model("bert-large", "bert", 24, 1024, (0.120, 0.0095), (86.0, 8.0), (33.0, 5.0)),
    Model("deberta-xlarge", "deberta-v2", 24, 1536, (0.300, 0.0850), (93.0, 5.0), (36.0, 6.0)),
    Model("pythia-31m", "pythia", 6, 256, (0.080, 0.0006), (26.0, 12.0), (10.5, 2.5), True),
    Model("pythia-70m", "pythia", 6, 512, (0.080, 0.0009), (28.0, 12.0), (11.5, 3.0), True),
    Model("pythia-410m", "pythia", 24, 1024, (0.120, 0.0350), (88.0, 8.0), (34.0, 5.0)),
    Model("pythia-1b", "pythia", 16, 2048, (0.150, 0.1100), (94.0, 5.0), (37.0, 6.0)),
)

# Table II, percent of mode 0's energy, in the order of TEST_TASKS.
SAVINGS_714 = {
    "bert-small": (2.49, -7.27, -9.44, -2.94, -3.12, -1.94),
    "bert-medium": (18.38, 0.48, -2.31, 9.49, 4.56, 1.45),
    "bert-base": (24.37, 9.38, 16.65, 22.22, 24.50, 26.73),
    "bert-large": (24.91, 17.58, 20.95, 23.69, 24.51, 23.44),
    "deberta-xlarge": (22.83, 22.86, 22.82, 22.39, 25.68, 23.27),
    "pythia-31m": (-9.72, -4.15, 9.82, -9.96, -5.23, -3.05),
    "pythia-70m": (6.79, -1.34, -1.57, 6.41, -3.97, -5.21),
    "pythia-410m": (24.43, 17.88, 19.89, 23.47, 24.62, 22.67),
    "pythia-1b": (24.98, 20.53, 21.54, 24.31, 25.38, 22.27),
}
SAVINGS_TREE = {
    "bert-small": (3.00, -1.49, -8.63, -0.55, -0.31, -0.53),
    "bert-medium": (18.38, 6.90, -2.31, 9.49, 4.56, 1.45),
    "bert-base": (24.37, 12.37, 16.65, 22.32, 24.05, 25.80),
    "bert-large": (24.91, 18.94, 20.95, 23.69, 24.51, 23.44),
    "deberta-xlarge": (22.83, 23.10, 22.82, 22.39, 25.68, 23.27),
    "pythia-31m": (-7.66, 8.71, -0.35, -6.79, -0.41, -0.64),
    "pythia-70m": (6.22, -0.52, 2.94, 9.38, -0.98, -7.23),
    "pythia-410m": (24.43, 18.86, 19.89, 23.47, 24.62, 22.67),
    "pythia-1b": (24.98, 20.98, 21.54, 24.31, 25.38, 22.27),
}
# Section IV-1, on MRPC: best clock, and the saving at 714 MHz where it is told.
MRPC_BEST_HZ = {"bert-small": 1020 * _MHZ, "pythia-70m": 1122 * _MHZ, "pythia-31m": 612 * _MHZ}
MRPC_SAVING_714 = {"pythia-31m": -5.0}
# Algorithm 1 was fitted to the training tasks, so a leaf holds the commonest best clock of the workloads that reach it.
LEAF_HZ = {
    "shallow": {"sst2": 510 * _MHZ, "qnli": 612 * _MHZ},
    "deep": {"sst2": 714 * _MHZ, "qnli": 714 * _MHZ, "mrpc": 816 * _MHZ},
}


@dataclass(frozen=True)
class Pair:
    """A model on a task."""

    model: Model
    task: str

    @property
    def name(self) -> str:
        """Such as "bert-base/qqp"."""
        return f"{self.model.name}/{self.task}"

    @property
    def seq_len_avg(self) -> float:
        """Average length in tokens."""
        return LENGTHS[self.task][self.model.model_type == "pythia"]

    @property
    def step_s(self) -> float:
        """About how long a step of 32 takes at the top clock."""
        return self.model.step_s[0] + self.model.step_s[1] * self.seq_len_avg

    @property
    def saving_714(self) -> float | None:
        """FFG's published saving in percent; None for a training task."""
        return SAVINGS_714[self.model.name][TEST_TASKS.index(self.task)] if self.task in TEST_TASKS else None

    @property
    def saving_tree(self) -> float | None:
        """MLG's published saving in percent, where its cell differs from FFG's."""
        if self.task not in TEST_TASKS:
            return None
        published = SAVINGS_TREE[self.model.name][TEST_TASKS.index(self.task)]
        return None if published == self.saving_714 else published


TEST_PAIRS = tuple(Pair(m, t) for m in MODELS for t in TEST_TASKS)
TRAINING_PAIRS = tuple(Pair(m, t) for m in MODELS for t in TRAINING_TASKS)
PAIRS = TEST_PAIRS + TRAINING_PAIRS


def case_of(pair: Pair) -> Case:
    """The facts of a pair. Nothing of MLG's column is among them."""
    m = pair.model
    facts: list[Fact] = []
    usual = sum(SAVINGS_714[m.name]) / len(TEST_TASKS)
    known = pair.saving_714 if pair.task in TEST_TASKS else MRPC_SAVING_714.get(m.name) if pair.task == "mrpc" else None
    if known is not None:
        source = "table II" if pair.task in TEST_TASKS else "section IV-1"
        text = f"714 MHz saves {known:g} % of the compute energy of mode 0"
        facts.append(Fact(text, CALIBRATION, Saving(FFG_HZ, known), SAVING_TOLERANCE, source))
    else:
        text = f"714 MHz saves about {usual:.1f} %, as with the model's test tasks"
        facts.append(Fact(text, CHOICE, Saving(FFG_HZ, usual), 8.0 if m.spiky else 4.0, "free; mean of table II"))
    best, told = _best_hz(pair)
    source = told or ("free: the paper's labels" if m.spiky else "section III-B, figure 2")
    text = f"the best clock is {' or '.join(f'{hz / 1e6:.0f}' for hz in best)} MHz"
    # An optimum is told apart by 0.5 %; the tolerance is how far another clock may be better, in percent.
    facts.append(Fact(text, CALIBRATION if told else CHOICE, BestClock(best), 0.5, source))
    free = "free: not published"
    busy, watts = m.utilization_percent, m.compute_w
    facts += [
        Fact(f"a step takes about {pair.step_s:.3g} s", CHOICE, StepTime(BATCH, TOP_HZ, pair.step_s), 0.15, free),
        Fact(f"GPU utilization is {busy[0]:g} ± {busy[1]:g} %", CHOICE, BusyShare(busy[0]), busy[1], free),
        Fact(f"the rails draw {watts[0]:g} ± {watts[1]:g} W", CHOICE, LevelPower(BATCH, TOP_HZ, watts[0], True),
             watts[1], free),
    ]  # fmt: skip
    return Case("agx-orin", pair.name, (BATCH,), CLOCKS, 0, tuple(facts))


def _best_hz(pair: Pair) -> tuple[tuple[int, ...], str]:
    """Clocks among which the best one lies, and where the paper says so for this pair (empty: it does not)."""
    m = pair.model
    if pair.task == "mrpc" and m.name in MRPC_BEST_HZ:
        return (MRPC_BEST_HZ[m.name],), "section IV-1"
    leaf = LEAF_HZ["shallow" if m.layers <= 7 else "deep"].get(pair.task)
    if leaf is not None and m.name != "bert-medium":  # the one deep model whose curves fluctuate is left free
        return (leaf,), "the leaf of algorithm 1 that it reaches"
    if m.spiky:
        return LABELS_HZ, ""
    # Where 714 MHz saves clearly less than with the model's other tasks, the best clock may lie higher.
    highest = 1_020_000_000 if (pair.saving_714 or 100.0) < 15.0 else 816_000_000
    return tuple(hz for hz in CLOCKS if 510_000_000 <= hz <= highest), ""
