"""Three more proxies for small fully connected networks: wine, breast cancer, and texts that it makes up itself.

A relation vector is carried from a proxy to a target; how well that goes can only be seen with several proxies. These
come with scikit-learn (nothing to download) or out of a random generator:

- wine: 178 wines, 13 measurements, 3 cultivars; breast-cancer: 569 tumours, 30 measurements, 2 kinds. Both are small
  and easy, so every measurement is blurred by Gaussian noise as large as its own spread, drawn anew for each training
  sample. A test sample counts under COPIES blurs, which makes accuracy steps fine.
- text: bags of words of five topics. Every sample is a new text.

The network, Adam, the learning rate and the square-root rule are those of ``digits``: only the data differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_wine
from threadpoolctl import threadpool_limits  # type: ignore[import-not-found,import-untyped,unused-ignore]

from traingov_policies.relation import scaled_learning_rate

from ..recipe import Recipe
from .digits import BATCH_SIZES, HIDDEN, LEARNING_RATE, LEARNING_RATE_RULE, MAX_SAMPLES, REFERENCE_BATCH
from .mlp import Adam, Floats, Labels, Mlp

TARGET_ACCURACY = {"wine": 0.88, "breast-cancer": 0.91, "text": 0.65}
DATASET = {
    "wine": "scikit-learn wine, blurred",
    "breast-cancer": "scikit-learn breast cancer, blurred",
    "text": "generated texts of five topics",
}
EVALUATE_EVERY = 128
"""Samples between two evaluations: these tasks are learnt in fewer samples than the digits."""
BLUR = 1.0
"""Standard deviation of the noise, in those of the measurement."""
COPIES = {"wine": 30, "breast-cancer": 10}
_TEST_SHARE = 0.3
_TOPICS, _WORDS, _LENGTH, _TEST_TEXTS = 5, 400, 20, 2000
_TOPIC_SHARE = 0.2

Batch = tuple[Floats, Labels]


@dataclass(frozen=True)
class SmallTask:
    """A task: ``test_inputs`` [n][features], and ``stream(seed)``, which gives training batches of any size."""

    name: str
    classes: int
    stream: Callable[[int], Callable[[int], Batch]]
    test_inputs: Floats = field(repr=False)
    test_labels: Labels = field(repr=False)


@lru_cache(maxsize=3)
def load_task(name: str) -> SmallTask:
    """The task "wine", "breast-cancer" or "text", always the same. Raises ValueError."""
    if name == "text":
        return _text()
    if name not in COPIES:
        raise ValueError(f"small: no task {name!r}; there are {', '.join(DATASET)}")
    data = load_wine() if name == "wine" else load_breast_cancer()
    measured: Floats = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    labels: Labels = data.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    held_out = int(len(labels) * _TEST_SHARE)
    test, train = order[:held_out], order[held_out:]
    copies = np.tile(measured[test], (COPIES[name], 1))
    blurred = copies + BLUR * np.random.default_rng(1).normal(size=copies.shape)
    return SmallTask(
        name=name,
        classes=int(labels.max()) + 1,
        stream=partial(_Blurred, measured[train], labels[train]),
        test_inputs=blurred,
        test_labels=np.tile(labels[test], COPIES[name]),
    )


class _Blurred:
    """Every sample once an epoch, blurred anew; the sequence does not depend on the batch sizes it is cut into."""

    def __init__(self, inputs: Floats, labels: Labels, seed: int) -> None:
        self._inputs, self._labels = inputs, labels
        self._order_rng = np.random.default_rng([seed, 1])
        self._blur_rng = np.random.default_rng([seed, 2])
        self._rows: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def __call__(self, batch_size: int) -> Batch:
        while len(self._rows) < batch_size:
            self._rows = np.concatenate([self._rows, self._order_rng.permutation(len(self._labels))])
        rows, self._rows = self._rows[:batch_size], self._rows[batch_size:]
        blur = self._blur_rng.normal(size=(batch_size, self._inputs.shape[1]))
        return self._inputs[rows] + BLUR * blur, self._labels[rows]


def _text() -> SmallTask:
    rng = np.random.default_rng(3)
    common = 1.0 / np.arange(1, _WORDS + 1)
    common /= common.sum()
    topical = rng.dirichlet(np.full(_WORDS, 0.2), _TOPICS)
    shares: Floats = _TOPIC_SHARE * topical + (1 - _TOPIC_SHARE) * common

    def texts(source: np.random.Generator, count: int) -> Batch:
        topics = source.integers(0, _TOPICS, count)
        counts = np.stack([source.multinomial(_LENGTH, shares[t]) for t in topics])
        return counts / _LENGTH * _WORDS**0.5, topics.astype(np.int64)

    def stream(seed: int) -> Callable[[int], Batch]:
        source = np.random.default_rng([seed, 1])
        return lambda batch_size: texts(source, batch_size)

    return SmallTask("text", _TOPICS, stream, *texts(rng, _TEST_TEXTS))


def train(
    batch_size: int,
    seed: int,
    target: float,
    *,
    task_name: str,
    max_samples: int = MAX_SAMPLES,
    learning_rate: float = LEARNING_RATE,
) -> float | None:
    """Train until the test accuracy reaches ``target``: samples to accuracy N, or None if ``max_samples`` pass first.

    ``learning_rate`` is the one at REFERENCE_BATCH. One BLAS thread.
    """
    task = load_task(task_name)
    network = Mlp((task.test_inputs.shape[1], HIDDEN, task.classes), np.random.default_rng([seed, 0]))
    batches, optimizer = task.stream(seed), Adam(network.parameters)
    rate = scaled_learning_rate(learning_rate, REFERENCE_BATCH, batch_size, LEARNING_RATE_RULE)
    samples, evaluate_at = 0, EVALUATE_EVERY
    with threadpool_limits(limits=1):
        while samples < max_samples:
            _, gradients = network.gradients(*batches(batch_size))
            optimizer.step(gradients, rate)
            samples += batch_size
            if samples >= evaluate_at:
                evaluate_at += EVALUATE_EVERY
                if network.accuracy(task.test_inputs, task.test_labels) >= target:
                    return float(samples)
    return None


def training(max_samples: int, *, task_name: str) -> partial[float | None]:
    """``train`` on a task, given up after ``max_samples``."""
    return partial(train, task_name=task_name, max_samples=max_samples)


def _recipe(name: str) -> Recipe:
    return Recipe(
        name=name,
        workload=f"{name}-mlp",
        dataset=DATASET[name],
        batch_sizes=BATCH_SIZES,
        target=TARGET_ACCURACY[name],
        learning_rate_rule=LEARNING_RATE_RULE,
        max_samples=MAX_SAMPLES,
        with_limit=partial(training, task_name=name),
    )


WINE, BREAST_CANCER, TEXT = (_recipe(name) for name in DATASET)
