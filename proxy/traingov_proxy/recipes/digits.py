"""The shipped recipe: handwritten digits, 0 to 4 as the proxy data, 5 to 9 as the target data.

Method A needs a proxy whose data is not the target's, but whose task is of the same kind. scikit-learn's digits
(1,797 images of 8 × 8 pixels, bundled, nothing to download) split by class give just that: images and labels are
disjoint, the input and the number of classes are the same. The example ``examples/digits.py`` trains on the target.

Both tasks see images shifted by up to one pixel. Training draws a shift for each image; testing counts every test
image under all nine shifts, which makes accuracy steps fine (about 2,400 test images) and a few samples more or less
visible. The hyperparameters are those a practitioner would take: the learning rate is tuned on the proxy at the
largest batch size, among 0.003, 0.005, 0.01, 0.02, 0.03 and 0.05 (over 20 seeds 0.03 needs 4 % fewer samples than
0.02 and all others at least a third more: the smaller of the two is taken, as the safer one), and follows the batch
size by the square root (Adam). Each data set has a target accuracy of its own, as in the paper. The weights start
from the same values for every batch size of a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits  # type: ignore[import-not-found,import-untyped,unused-ignore]

from traingov_policies.relation import scaled_learning_rate

from ..recipe import Recipe
from .mlp import Adam, Floats, Labels, Mlp

BATCH_SIZES = (4, 8, 16, 32, 64, 128)
LEARNING_RATE = 0.02
"""At REFERENCE_BATCH."""
REFERENCE_BATCH = 128
LEARNING_RATE_RULE = "sqrt"
HIDDEN = 128
EVALUATE_EVERY = 512
"""Samples between two evaluations: a multiple of every batch size, so that N compares over batch sizes."""
MAX_SAMPLES = 60_000
"""A run that has not reached its target by then missed it: four to ten times the mean."""

CLASSES = {"proxy": (0, 1, 2, 3, 4), "target": (5, 6, 7, 8, 9)}
TARGET_ACCURACY = {"proxy": 0.97, "target": 0.96}
DATASET = {"proxy": "scikit-learn digits 0-4", "target": "scikit-learn digits 5-9"}
_TEST_SHARE = 0.3
_SHIFTS = 9
_PIXELS = 64


@dataclass(frozen=True)
class DigitsTask:
    """One of the two tasks. ``train_inputs`` is [shift][image][pixel], ``test_inputs`` [image][pixel], all 0 to 1."""

    name: str
    target: float
    train_inputs: Floats = field(repr=False)
    train_labels: Labels = field(repr=False)
    test_inputs: Floats = field(repr=False)
    test_labels: Labels = field(repr=False)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(CLASSES[self.name])


@lru_cache(maxsize=2)
def load_task(name: str) -> DigitsTask:
    """The task "proxy" or "target". The split into training and test images never changes. Raises ValueError."""
    if name not in CLASSES:
        raise ValueError(f"digits: no task {name!r}; there are {', '.join(CLASSES)}")
    data = load_digits()
    train: list[npt.NDArray[np.intp]] = []
    test: list[npt.NDArray[np.intp]] = []
    for digit in CLASSES[name]:
        images = np.random.default_rng(digit).permutation(np.flatnonzero(data.target == digit))
        held_out = int(len(images) * _TEST_SHARE)
        test.append(images[:held_out])
        train.append(images[held_out:])
    pixels: Floats = data.data / 16.0
    labels: Labels = data.target.astype(np.int64) - CLASSES[name][0]
    train_rows, test_rows = np.concatenate(train), np.concatenate(test)
    return DigitsTask(
        name=name,
        target=TARGET_ACCURACY[name],
        train_inputs=_shifted(pixels[train_rows]),
        train_labels=labels[train_rows],
        test_inputs=_shifted(pixels[test_rows]).reshape(-1, _PIXELS),
        test_labels=np.tile(labels[test_rows], _SHIFTS),
    )


def _shifted(images: Floats) -> Floats:
    """``images`` [n][64] under all shifts by at most one pixel, blank where nothing moves in: [9][n][64]."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return np.stack([padded[:, y : y + 8, x : x + 8].reshape(-1, _PIXELS) for y in range(3) for x in range(3)])


class SampleStream:
    """Training samples without end: every image once an epoch, in an order and under shifts drawn from ``seed``.

    The sequence of samples does not depend on the batch sizes it is cut into.
    """

    def __init__(self, task: DigitsTask, seed: int) -> None:
        self._task = task
        self._order_rng = np.random.default_rng([seed, 1])
        self._shift_rng = np.random.default_rng([seed, 2])
        self._rows = np.zeros(0, dtype=np.intp)
        self._shifts = np.zeros(0, dtype=np.int64)

    def next(self, batch_size: int) -> tuple[Floats, Labels]:
        """The next ``batch_size`` samples: inputs [b][64] and labels [b]."""
        images = len(self._task.train_labels)
        while len(self._rows) < batch_size:
            self._rows = np.concatenate([self._rows, self._order_rng.permutation(images)])
            self._shifts = np.concatenate([self._shifts, self._shift_rng.integers(0, _SHIFTS, images)])
        rows, self._rows = self._rows[:batch_size], self._rows[batch_size:]
        shifts, self._shifts = self._shifts[:batch_size], self._shifts[batch_size:]
        return self._task.train_inputs[shifts, rows], self._task.train_labels[rows]


def initial_network(task: DigitsTask, seed: int) -> Mlp:
    """The network before training: the same for every batch size, and for both tasks."""
    return Mlp((_PIXELS, HIDDEN, task.classes), np.random.default_rng([seed, 0]))


def train(
    batch_size: int,
    seed: int,
    target: float,
    *,
    task_name: str = "proxy",
    max_samples: int = MAX_SAMPLES,
    learning_rate: float = LEARNING_RATE,
) -> float | None:
    """Train until the test accuracy reaches ``target``: samples to accuracy N, or None if ``max_samples`` pass first.

    ``learning_rate`` is the one at REFERENCE_BATCH. One BLAS thread: the layers are small, and the same sums in the
    same order give the same N again.
    """
    task = load_task(task_name)
    network, stream = initial_network(task, seed), SampleStream(task, seed)
    optimizer = Adam(network.parameters)
    rate = scaled_learning_rate(learning_rate, REFERENCE_BATCH, batch_size, LEARNING_RATE_RULE)
    samples, evaluate_at = 0, EVALUATE_EVERY
    with threadpool_limits(limits=1):
        while samples < max_samples:
            _, gradients = network.gradients(*stream.next(batch_size))
            optimizer.step(gradients, rate)
            samples += batch_size
            if samples >= evaluate_at:
                evaluate_at += EVALUATE_EVERY
                if network.accuracy(task.test_inputs, task.test_labels) >= target:
                    return float(samples)
    return None


def training(max_samples: int, *, task_name: str) -> partial[float | None]:
    """``train`` on a task, given up after ``max_samples``: what ``traingov_proxy.estimate`` takes."""
    return partial(train, task_name=task_name, max_samples=max_samples)


def proxy_training(max_samples: int) -> partial[float | None]:
    """``training`` on the proxy data."""
    return training(max_samples, task_name="proxy")


def _recipe(name: str, task_name: str) -> Recipe:
    return Recipe(
        name=name,
        workload="digits-mlp",
        dataset=DATASET[task_name],
        batch_sizes=BATCH_SIZES,
        target=TARGET_ACCURACY[task_name],
        learning_rate_rule=LEARNING_RATE_RULE,
        max_samples=MAX_SAMPLES,
        with_limit=partial(training, task_name=task_name),
    )


PROXY = _recipe("digits", "proxy")
TARGET = _recipe("digits-target", "target")
