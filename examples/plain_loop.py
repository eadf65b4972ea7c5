"""The smallest governed loop: no framework, the standard library only, Python 3.6 and newer.

    python examples/plain_loop.py

A logistic regression learns whether a point lies above a line. The batch size may change before each step.
"""

# zip has a strict argument only since Python 3.10.
# ruff: noqa: B905, RUF005

import argparse
import json
import math
import random

import traingov_client

LEARNING_RATE = 2.0


def train(job, epochs, seed):
    """Train ``epochs`` epochs; returns the samples trained and the accuracy."""
    draw = random.Random(seed)
    points = [(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(2000)]
    labels = [1.0 if y > 0.5 * x + 0.1 else 0.0 for x, y in points]
    weights = [0.0, 0.0, 0.0]
    rate = job.scale_lr(LEARNING_RATE)
    samples = 0
    for _ in range(epochs):
        order = list(range(len(points)))
        draw.shuffle(order)
        position = 0
        while position < len(order):
            if job.safe_point():  # another batch size from here on
                rate = job.scale_lr(LEARNING_RATE)
            rows = order[position : position + job.batch_size]
            gradient = [0.0, 0.0, 0.0]
            for row in rows:
                inputs = points[row] + (1.0,)
                error = predict(weights, inputs) - labels[row]
                gradient = [g + error * value / len(rows) for g, value in zip(gradient, inputs)]
            weights = [w - rate * g for w, g in zip(weights, gradient)]
            position += len(rows)
            samples += len(rows)
            job.step(len(rows))
    right = sum((predict(weights, p + (1.0,)) > 0.5) == (label > 0.5) for p, label in zip(points, labels))
    return samples, right / float(len(points))


def predict(weights, inputs):
    """The probability that the point lies above the line."""
    z = sum(w * value for w, value in zip(weights, inputs))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signature = {"architecture": "logistic-3", "precision": "float64", "optimizer": "sgd"}
    with traingov_client.register(
        "plain-loop", [16, 32, 64], learning_rate_rule="linear", signature=signature
    ) as job:  # fmt: skip
        samples, accuracy = train(job, options.epochs, options.seed)
        print(json.dumps({"samples": samples, "accuracy": accuracy, "governed": job.connected}))


if __name__ == "__main__":
    main()
