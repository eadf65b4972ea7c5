"""A governed fine-tuning: a fixed number of steps at one batch size, at the GPU clock that costs the least energy.

    python examples/text_classifier.py --policy energy --json

The script makes its own texts: four topics, Zipf-like words, about 40 words a text. The gradient steps are real, of a
small network (the mean of word embeddings, then two dense layers). Where TRAINGOV_SIM_GPU names a virtual board, each
step also passes through its emulated GPU, and that device stands for a larger model: an encoder like BERT-base, with
12 layers, 768 wide. These are the features that the job registers with, and that the daemon's decision tree reads.
The mean length of the texts is measured while training: padding does not count.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from common import Device, Progress, open_device
from threadpoolctl import threadpool_limits

import traingov_client
from traingov_proxy.recipes.mlp import Adam, Mlp

TOPICS = 4
WORDS = 400
TOPIC_WORDS = 25
TOPIC_SHARE = 0.2
"""Share of a text's words that its topic draws; the others come from what all topics share."""
BATCH_SIZE = 32
LEARNING_RATE = 0.003
FEATURES = {"model_type": "encoder", "layers": 12, "hidden_size": 768}


@dataclass(frozen=True)
class Texts:
    """Texts as bags of words: ``shares`` [n][WORDS] are each word's share, ``lengths`` [n] the numbers of words."""

    shares: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]
    topics: npt.NDArray[np.int64]


def make_texts(n: int, rng: np.random.Generator) -> Texts:
    """``n`` texts. Lengths are spread as those of real sentences are: many short ones, a few long ones."""
    lengths = np.clip(rng.gamma(4.0, 10.0, n).astype(np.int64), 4, 128)
    topics = rng.integers(0, TOPICS, n)
    text_of_word = np.repeat(np.arange(n), lengths)
    zipf = 1.0 / np.arange(1, WORDS + 1)
    common = rng.choice(WORDS, len(text_of_word), p=zipf / zipf.sum())
    # The topics' words lie in the middle of the frequency list: neighbouring topics share some of them.
    first = 40 + topics[text_of_word] * (TOPIC_WORDS - 5)
    topical = first + rng.integers(0, TOPIC_WORDS, len(text_of_word))
    words = np.where(rng.random(len(text_of_word)) < TOPIC_SHARE, topical, common)
    counts = np.bincount(text_of_word * WORDS + words, minlength=n * WORDS).reshape(n, WORDS)
    return Texts(counts / lengths[:, None], lengths, topics)


def train(job: traingov_client.Job, device: Device, options: argparse.Namespace) -> dict[str, object]:
    """Train for ``steps`` steps, then test."""
    rng = np.random.default_rng(options.seed)
    training, test = make_texts(4000, rng), make_texts(1000, rng)
    network = Mlp((WORDS, 32, 16, TOPICS), rng)
    optimizer = Adam(network.parameters)
    progress = Progress(options.progress)
    learning_rate = job.scale_lr(LEARNING_RATE)

    words, samples, order = 0, 0, np.zeros(0, dtype=np.intp)
    begin_s = time.monotonic()
    for step in range(options.steps):
        job.safe_point()  # the batch size is always 32, so nothing is to be rebuilt here
        if len(order) < BATCH_SIZE:
            order = np.concatenate([order, rng.permutation(len(training.topics))])
        rows, order = order[:BATCH_SIZE], order[BATCH_SIZE:]
        device.submit(options.workload, BATCH_SIZE)
        # Word shares are sparse and small: scaled, so that the first layer begins with inputs of order 1.
        loss, gradients = network.gradients(training.shares[rows] * WORDS**0.5, training.topics[rows])
        optimizer.step(gradients, learning_rate)
        job.step(BATCH_SIZE, seq_len_avg=float(training.lengths[rows].mean()))
        words += int(training.lengths[rows].sum())
        samples += BATCH_SIZE
        progress.show(samples=samples, steps=step + 1, steps_total=options.steps, loss=round(loss, 4))
    device.synchronize()
    seconds = time.monotonic() - begin_s
    with job.pause("evaluation"):
        accuracy = network.accuracy(test.shares * WORDS**0.5, test.topics)
    return {
        "steps": options.steps,
        "samples": samples,
        "seconds": round(seconds, 4),
        "accuracy": accuracy,
        "seq_len_avg": round(words / samples, 2),
        "policy": options.policy,
    }


def main() -> int:
    """Exit status 0 when all steps are done, 2 for wrong input."""
    parser = argparse.ArgumentParser(description="Train a text classifier, governed by traingovd.")
    parser.add_argument("--workload", default="text-classifier", help="name of the job's workload (%(default)s)")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policy", choices=["energy", "observe"], help="ask for a policy; else the daemon's own")
    parser.add_argument("--json", action="store_true", help="print the result as a line of JSON at the end")
    parser.add_argument("--progress", action="store_true", help="print lines of JSON while training")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: give at least one")
    try:
        device = open_device()
        job = traingov_client.register(
            workload=options.workload,
            batch_sizes=[BATCH_SIZE],
            policy=options.policy,
            features=FEATURES,
            samples_total=options.steps * BATCH_SIZE,
            # As the features: what the emulated device stands for, and so what its table is measured of.
            signature={"architecture": "encoder-12x768", "precision": "float32", "optimizer": "adam"},
            sync=device.synchronize,
        )
    except (ValueError, ConnectionError) as error:
        print(f"text_classifier: {error}", file=sys.stderr)
        return 2
    with job, threadpool_limits(limits=1):
        try:
            result = train(job, device, options)
        except (ConnectionError, MemoryError) as error:
            print(f"text_classifier: {error or 'out of memory'}", file=sys.stderr)
            return 1
    if options.json:
        print(json.dumps(result), flush=True)
    else:
        print(f"{result['steps']} steps in {result['seconds']} s, test accuracy {result['accuracy']:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
