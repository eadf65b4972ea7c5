"""Files and numbers that several commands take, read or refused in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.robust import VIOLATION_PROBABILITY
from traingov_policies.values import Objective

from .errors import WrongInput, read_json

_Value = TypeVar("_Value")


def read_lut(path: str) -> Lut:
    """A lookup table. Raises WrongInput naming the file and what is wrong."""
    return _read(path, Lut.from_json)


def read_relation(path: str | None) -> RelationVector | None:
    """A relation vector, None for None. Raises WrongInput naming the file and what is wrong."""
    return None if path is None else _read(path, RelationVector.from_json)


def checked_cap(cap_w: float | None) -> float | None:
    """``cap_w`` if it is a cap or None. Raises WrongInput."""
    if cap_w is not None and not 0 < cap_w < float("inf"):
        raise WrongInput(f"--cap: must be a positive number of watts, not {cap_w}")
    return cap_w


def choice_options(command: Callable[..., None]) -> Callable[..., None]:
    """--relation, --cap, --objective and --violation-probability, as ``select`` and the ``lut`` commands take them."""
    options = (
        click.option("--relation", "relation_file", metavar="R.json", help="Relation vector; without it r = 1."),
        click.option("--cap", "cap_w", type=float, metavar="W", help="Peak power must stay below this many watts."),
        click.option("--objective", type=click.Choice([o.value for o in Objective]), default="time", show_default=True),
        click.option(
            "--violation-probability", type=click.FloatRange(0, 0.5, min_open=True), default=VIOLATION_PROBABILITY,
            show_default=True, metavar="P", help="How probably, at most, the chosen point exceeds the cap.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _read(path: str, parse: Callable[[Mapping[str, Any]], _Value]) -> _Value:
    data = read_json(path)
    if not isinstance(data, dict):
        raise WrongInput(f"{path}: must be a JSON object")
    try:
        return parse(data)
    except ValueError as error:
        raise WrongInput(f"{path}: {error}") from None
