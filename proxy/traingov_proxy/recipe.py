"""What a recipe is, and which ones ship."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .recipes import digits


class Train(Protocol):
    """One training run: samples to accuracy N, or None if the run missed ``target``."""

    def __call__(self, batch_size: int, seed: int, target: float) -> float | None:
        """Train with ``batch_size`` and everything random drawn from ``seed``, until ``target`` is reached."""


@dataclass(frozen=True)
class Recipe:
    """A proxy task that stands for a workload. ``with_limit(n)`` is its training, given up after n samples."""

    name: str
    workload: str
    dataset: str
    batch_sizes: tuple[int, ...]
    target: float
    learning_rate_rule: str
    max_samples: int
    with_limit: Callable[[int], Train]


RECIPES: dict[str, Recipe] = {
    "digits": Recipe(
        name="digits",
        workload="digits-mlp",
        dataset=digits.DATASET["proxy"],
        batch_sizes=digits.BATCH_SIZES,
        target=digits.TARGET_ACCURACY["proxy"],
        learning_rate_rule=digits.LEARNING_RATE_RULE,
        max_samples=digits.MAX_SAMPLES,
        with_limit=digits.proxy_training,
    ),
}


def find(name: str) -> Recipe:
    """The recipe of that name. Raises ValueError naming those there are."""
    try:
        return RECIPES[name]
    except KeyError:
        raise ValueError(f"no recipe {name!r}; there are: {', '.join(sorted(RECIPES))}") from None
