"""A small convolutional network on digits 0 to 4, with PyTorch (``pip install 'traingov-proxy[torch]'``).

The same images, shifts, stopping rule and square-root rule as the ``digits`` recipe; only the network is a CNN: two
convolutions of 8 and 16 channels with pooling, and one dense layer, about 1,800 weights. One thread: the layers are
small.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]
from torch import nn  # type: ignore[import-not-found,unused-ignore]

from traingov_policies.relation import scaled_learning_rate

from ..recipe import Recipe
from .digits import BATCH_SIZES, DATASET, EVALUATE_EVERY, LEARNING_RATE_RULE, REFERENCE_BATCH, SampleStream, load_task
from .mlp import Floats

LEARNING_RATE = 0.02
"""At REFERENCE_BATCH, as the ``digits`` recipe has it."""
TARGET_ACCURACY = 0.97
MAX_SAMPLES = 60_000


def network(seed: int, classes: int) -> nn.Sequential:
    """The network before training: the same for every batch size of a seed."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, classes),
    )  # fmt: skip


def _images(inputs: Floats) -> torch.Tensor:
    """[n][64] to [n][1][8][8], single precision."""
    return torch.from_numpy(inputs.astype(np.float32)).reshape(-1, 1, 8, 8)


def train(batch_size: int, seed: int, target: float, *, max_samples: int = MAX_SAMPLES) -> float | None:
    """Train until the test accuracy reaches ``target``: N in samples, or None if ``max_samples`` pass first."""
    task = load_task("proxy")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model, stream = network(seed, task.classes), SampleStream(task, seed)
        rate = scaled_learning_rate(LEARNING_RATE, REFERENCE_BATCH, batch_size, LEARNING_RATE_RULE)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        test_inputs, test_labels = _images(task.test_inputs), torch.from_numpy(task.test_labels)
        samples, evaluate_at = 0, EVALUATE_EVERY
        while samples < max_samples:
            inputs, labels = stream.next(batch_size)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(_images(inputs)), torch.from_numpy(labels)).backward()  # type: ignore[no-untyped-call,unused-ignore]
            optimizer.step()
            samples += batch_size
            if samples >= evaluate_at:
                evaluate_at += EVALUATE_EVERY
                with torch.no_grad():
                    right = (model(test_inputs).argmax(dim=1) == test_labels).double().mean()
                if float(right) >= target:
                    return float(samples)
        return None
    finally:
        torch.set_num_threads(threads)


def training(max_samples: int) -> partial[float | None]:
    """``train``, given up after ``max_samples``."""
    return partial(train, max_samples=max_samples)


PROXY = Recipe(
    name="digits-cnn",
    workload="digits-cnn",
    dataset=DATASET["proxy"],
    batch_sizes=BATCH_SIZES,
    target=TARGET_ACCURACY,
    learning_rate_rule=LEARNING_RATE_RULE,
    max_samples=MAX_SAMPLES,
    with_limit=training,
)
