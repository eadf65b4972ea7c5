"""What a recipe is, which ones ship, and how one's own is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from .run import Train

__all__ = ["RECIPES", "Recipe", "RecipeError", "Train", "find"]


@dataclass(frozen=True)
class Recipe:
    """A proxy task that stands for a workload. ``with_limit(n)`` is its training, given up after n samples.

    ``learning_rate_rule`` says how the learning rate follows the batch size: "sqrt", "linear" or "none".
    """

    name: str
    workload: str
    dataset: str
    batch_sizes: tuple[int, ...]
    target: float
    learning_rate_rule: str
    max_samples: int
    with_limit: Callable[[int], Train]


class RecipeError(ValueError):
    """There is no such recipe, or it cannot be loaded: one line with what to do."""


_HERE = "traingov_proxy.recipes"
# name → module:attribute, loaded when it is asked for: one of them needs PyTorch.
RECIPES: dict[str, str] = {
    "breast-cancer": f"{_HERE}.small:BREAST_CANCER",
    "digits": f"{_HERE}.digits:PROXY",
    "digits-cnn": f"{_HERE}.digits_cnn:PROXY",
    "digits-target": f"{_HERE}.digits:TARGET",
    "text": f"{_HERE}.small:TEXT",
    "wine": f"{_HERE}.small:WINE",
}


def find(name: str) -> Recipe:
    """The shipped recipe of that name, or one's own by "module:attribute", looked for in the working directory too.

    Raises RecipeError.
    """
    place = RECIPES.get(name, name)
    module_name, colon, attribute = place.partition(":")
    if not (module_name and colon and attribute):
        known = ", ".join(sorted(RECIPES))
        raise RecipeError(f"no recipe {name!r}; there are: {known}; or name your own as module:attribute")
    if "" not in sys.path:  # a console script has its own folder there instead
        sys.path.insert(0, "")
    try:
        recipe = getattr(import_module(module_name), attribute)
    except ImportError as error:
        hint = "; pip install 'traingov-proxy[torch]'" if error.name == "torch" else ""
        raise RecipeError(f"recipe {name!r}: {error}{hint}") from None
    except AttributeError:
        raise RecipeError(f"recipe {name!r}: {module_name} has no {attribute}") from None
    if not isinstance(recipe, Recipe):
        raise RecipeError(f"recipe {name!r}: {place} is a {type(recipe).__name__}, not a traingov_proxy.Recipe")
    return recipe
