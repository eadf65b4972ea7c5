"""A small multi-layer perceptron and Adam, in NumPy: enough for real training in a few seconds on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class Mlp:
    """Fully connected layers with ReLU between them, and softmax cross-entropy.

    ``sizes`` are the widths from input to classes, such as (64, 32, 5). Weights are drawn as He et al. (2015) do,
    biases start at 0. ``parameters`` are the arrays W1, b1, W2, b2, …, which an optimizer changes in place.
    """

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator) -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"Mlp: sizes must be two or more positive widths, not {list(sizes)}")
        self.parameters: list[Floats] = []
        for fan_in, fan_out in pairwise(sizes):
            self.parameters.append(rng.normal(0.0, np.sqrt(2.0 / fan_in), (fan_in, fan_out)))
            self.parameters.append(np.zeros(fan_out))

    def logits(self, inputs: Floats) -> Floats:
        """Scores before softmax, [n][classes], of ``inputs`` [n][features]."""
        return self._forward(inputs)[1]

    def gradients(self, inputs: Floats, labels: Labels) -> tuple[float, list[Floats]]:
        """Mean cross-entropy of a batch, and its gradients in the order of ``parameters``."""
        activations, logits = self._forward(inputs)
        rows = np.arange(len(labels))
        shifted = logits - logits.max(axis=1, keepdims=True)
        exps = np.exp(shifted)
        sums = exps.sum(axis=1, keepdims=True)
        loss = float(np.mean(np.log(sums[:, 0]) - shifted[rows, labels]))
        delta = exps / sums
        delta[rows, labels] -= 1.0
        delta /= len(labels)
        backward: list[Floats] = []
        for layer in range(len(activations) - 1, -1, -1):
            backward += [delta.sum(axis=0), activations[layer].T @ delta]
            if layer:
                delta = (delta @ self.parameters[2 * layer].T) * (activations[layer] > 0)
        return loss, backward[::-1]

    def accuracy(self, inputs: Floats, labels: Labels) -> float:
        """Share of ``inputs`` that are classified as ``labels``, 0 to 1."""
        return float(np.mean(self.logits(inputs).argmax(axis=1) == labels))

    def _forward(self, inputs: Floats) -> tuple[list[Floats], Floats]:
        """The input of each layer, and the logits."""
        activations = [inputs]
        last = len(self.parameters) // 2 - 1
        for layer in range(last):
            weights, biases = self.parameters[2 * layer], self.parameters[2 * layer + 1]
            activations.append(np.maximum(activations[-1] @ weights + biases, 0.0))
        logits: Floats = activations[-1] @ self.parameters[-2] + self.parameters[-1]
        return activations, logits


class Adam:
    """Adam (Kingma and Ba, 2015). The learning rate is given at each step, since it follows the batch size."""

    def __init__(
        self, parameters: Sequence[Floats], beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self._parameters = list(parameters)
        self._means = [np.zeros_like(p) for p in self._parameters]
        self._squares = [np.zeros_like(p) for p in self._parameters]
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._steps = 0

    def step(self, gradients: Sequence[Floats], learning_rate: float) -> None:
        """Change the parameters in place by one step against ``gradients``."""
        self._steps += 1
        correction1 = 1.0 - self._beta1**self._steps
        correction2 = 1.0 - self._beta2**self._steps
        for i, gradient in enumerate(gradients):
            self._means[i] += (1.0 - self._beta1) * (gradient - self._means[i])
            self._squares[i] += (1.0 - self._beta2) * (gradient * gradient - self._squares[i])
            mean, square = self._means[i] / correction1, self._squares[i] / correction2
            self._parameters[i] -= learning_rate * mean / (np.sqrt(square) + self._epsilon)
