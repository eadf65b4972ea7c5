"""Decision trees for the energy-optimal clock (method B, Algorithm 1), evaluated without scikit-learn.

``traingov.tree/1``: ``{"schema", "name", "board", "max_frequency_hz", "features": [...], "tree": NODE}``, where NODE is
a leaf ``{"gpu_frequency_hz": Hz}`` or ``{"feature", "threshold", "le": NODE, "gt": NODE, "missing": "le" | "gt"}``.
A node on ``model_type`` has ``"values": [TEXT]`` instead of a threshold: one of them goes to ``le``, another to ``gt``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = "traingov.tree/1"
FEATURES = ("model_type", "layers", "hidden_size", "seq_len_avg", "gpu_utilization")
NUMERIC = frozenset(FEATURES) - {"model_type"}


@dataclass(frozen=True)
class Leaf:
    """The clock of this branch in Hz."""

    gpu_frequency_hz: int


@dataclass(frozen=True)
class Split:
    """``feature`` ≤ ``threshold`` goes to ``le``, above it to ``gt``; a missing feature goes to ``missing``.

    With ``values`` the feature is text: one of them goes to ``le``, any other to ``gt``.
    """

    feature: str
    threshold: float
    le: Leaf | Split
    gt: Leaf | Split
    missing: str
    values: tuple[str, ...] = ()

    def question(self, branch: str) -> str:
        """What holds on a branch, "le" or "gt", in words."""
        if self.values:
            return f"{self.feature} is {'' if branch == 'le' else 'not '}{' or '.join(self.values)}"
        return f"{self.feature} {'≤' if branch == 'le' else '>'} {self.threshold:g}"

    def branch(self, value: float | str | None) -> str:
        """Where a value goes, "le" or "gt"."""
        if value is None:
            return self.missing
        if isinstance(value, str):
            return "le" if value in self.values else "gt"
        return "le" if value <= self.threshold else "gt"


@dataclass(frozen=True)
class Answer:
    """The tree's clock in Hz on the tree's own board, and the comparisons that led to it, in words."""

    gpu_frequency_hz: int
    path: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    """A decision tree. ``max_frequency_hz`` is the highest clock of the board it was made on."""

    name: str
    board: str
    max_frequency_hz: int
    root: Leaf | Split

    def apply(self, features: Mapping[str, float | str | None]) -> Answer:
        """The clock for ``features`` (utilization in percent, length as measured average, not padding).

        A feature that is None or absent follows the node's ``missing`` branch, and the path says so.
        """
        node, path = self.root, []
        while isinstance(node, Split):
            value = features.get(node.feature)
            branch = node.branch(value)
            if value is None:
                taken = node.question(branch).removeprefix(f"{node.feature} ")
                path.append(f"{node.feature} unknown: taken as {taken}")
            elif node.values:
                path.append(node.question(branch))
            else:
                path.append(f"{node.feature} {value:g} {'≤' if branch == 'le' else '>'} {node.threshold:g}")
            node = node.le if branch == "le" else node.gt
        return Answer(node.gpu_frequency_hz, tuple(path))

    def rules(self) -> list[str]:
        """The tree as indented lines to read by eye."""
        lines: list[str] = []

        def walk(node: Leaf | Split, depth: int) -> None:
            pad = "  " * depth
            if isinstance(node, Leaf):
                lines.append(f"{pad}{node.gpu_frequency_hz / 1e6:g} MHz")
                return
            for branch, child in (("le", node.le), ("gt", node.gt)):
                unknown = " or unknown" if node.missing == branch else ""
                lines.append(f"{pad}{node.question(branch)}{unknown}:")
                walk(child, depth + 1)

        walk(self.root, 0)
        return lines

    def to_json(self) -> dict[str, Any]:
        """The file format ``traingov.tree/1`` as plain values."""

        def dump(node: Leaf | Split) -> dict[str, Any]:
            if isinstance(node, Leaf):
                return {"gpu_frequency_hz": node.gpu_frequency_hz}
            return {
                "feature": node.feature,
                **({"values": list(node.values)} if node.values else {"threshold": node.threshold}),
                "le": dump(node.le),
                "gt": dump(node.gt),
                "missing": node.missing,
            }

        used: list[str] = []

        def collect(node: Leaf | Split) -> None:
            if isinstance(node, Split):
                used.append(node.feature)
                collect(node.le)
                collect(node.gt)

        collect(self.root)
        return {
            "schema": SCHEMA,
            "name": self.name,
            "board": self.board,
            "max_frequency_hz": self.max_frequency_hz,
            "features": [name for name in FEATURES if name in used],
            "tree": dump(self.root),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tree:
        """Read ``traingov.tree/1``. Raises ValueError naming the node that is wrong."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"tree: schema is {data.get('schema')!r}, expected {SCHEMA!r}")

        def load(node: Any, where: str) -> Leaf | Split:
            if not isinstance(node, Mapping):
                raise ValueError(f"tree: {where} must be an object, not {node!r}")
            if "gpu_frequency_hz" in node:
                return Leaf(_positive(node["gpu_frequency_hz"], f"{where}.gpu_frequency_hz"))
            feature = node.get("feature")
            if feature not in FEATURES:
                raise ValueError(f"tree: {where}.feature is {feature!r}, not one of {', '.join(sorted(FEATURES))}")
            values, threshold = node.get("values", []), node.get("threshold")
            if feature not in NUMERIC:
                threshold = 0.0
                if not (isinstance(values, list) and values and all(isinstance(v, str) for v in values)):
                    raise ValueError(f"tree: {where}.values must be a list of text, not {values!r}")
            elif values:
                raise ValueError(f"tree: {where}.values: {feature} is a number, give a threshold")
            if not isinstance(threshold, (int, float)) or isinstance(threshold, bool) or not abs(threshold) < 1e300:
                raise ValueError(f"tree: {where}.threshold must be a number, not {threshold!r}")
            missing = node.get("missing", "gt")
            if missing not in ("le", "gt"):
                raise ValueError(f"tree: {where}.missing must be 'le' or 'gt', not {missing!r}")
            le, gt = load(node.get("le"), f"{where}.le"), load(node.get("gt"), f"{where}.gt")
            return Split(feature, float(threshold), le, gt, missing, tuple(values))

        name, board = data.get("name"), data.get("board")
        if not isinstance(name, str) or not isinstance(board, str):
            raise ValueError("tree: name and board must be text")
        highest = _positive(data.get("max_frequency_hz"), "max_frequency_hz")
        return cls(name, board, highest, load(data.get("tree"), "tree"))


def _positive(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10**12:
        raise ValueError(f"tree: {where} must be a positive number of Hz, not {value!r}")
    return value


def on_board(gpu_frequency_hz: int, max_frequency_hz: int, table_hz: Sequence[int]) -> int:
    """The step of ``table_hz`` for a tree's clock: itself where the table has it, else nearest by ratio to the maximum.

    A tree of one board carries over to another clock table this way (method B, left open). ValueError without a table.
    """
    if not table_hz:
        raise ValueError("the board shows no clock table: a tree's answer cannot be placed on it")
    if gpu_frequency_hz in table_hz:
        return gpu_frequency_hz
    wanted = gpu_frequency_hz / max_frequency_hz * max(table_hz)
    return min(table_hz, key=lambda f: (abs(math.log(f / wanted)), f))
