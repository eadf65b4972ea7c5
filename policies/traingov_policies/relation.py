"""The relation vector r (method A, Eq. 3), relative samples to accuracy per batch size; learning-rate rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = "traingov.relation/1"


@dataclass(frozen=True)
class RelationVector:
    """r per batch size, in (0, 1], normalised to the largest. A batch size that missed the target has None.

    ``samples_to_accuracy`` is ``[B][runs]`` (None: the run missed the target). Raises ValueError naming the field.
    """

    workload: str
    batch_sizes: tuple[int, ...]
    relative_samples: tuple[float | None, ...]
    samples_to_accuracy: tuple[tuple[float | None, ...], ...] = ()
    target: float | None = None
    dataset: str = ""
    interval: tuple[tuple[float | None, float | None], ...] | None = None
    learning_rate_rule: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        if not self.batch_sizes or list(self.batch_sizes) != sorted(set(self.batch_sizes)) or self.batch_sizes[0] < 1:
            raise ValueError(f"relation: batch_sizes must ascend without repeats, not {list(self.batch_sizes)}")
        if len(self.relative_samples) != len(self.batch_sizes):
            raise ValueError(
                f"relation: relative_samples has {len(self.relative_samples)} values for "
                f"{len(self.batch_sizes)} batch sizes"
            )
        for b, r in zip(self.batch_sizes, self.relative_samples, strict=True):
            if r is not None and not 0 < r <= 1:
                raise ValueError(f"relation: relative_samples of batch {b} is {r!r}, not in (0, 1]")
        if all(r is None for r in self.relative_samples):
            raise ValueError("relation: no batch size reached the target")
        if self.samples_to_accuracy and len(self.samples_to_accuracy) != len(self.batch_sizes):
            raise ValueError("relation: samples_to_accuracy must have one list of runs per batch size")

    def of(self, batch_size: int) -> float | None:
        """r of ``batch_size``: measured, or log-log interpolated between measured neighbours.

        Outside the measured range, or beside a batch size that missed the target, it is None: such a batch size
        is not a candidate.
        """
        if batch_size in self.batch_sizes:
            return self.relative_samples[self.batch_sizes.index(batch_size)]
        lower = [i for i, b in enumerate(self.batch_sizes) if b < batch_size]
        upper = [i for i, b in enumerate(self.batch_sizes) if b > batch_size]
        if not lower or not upper:
            return None
        i, j = lower[-1], upper[0]
        r_i, r_j = self.relative_samples[i], self.relative_samples[j]
        if r_i is None or r_j is None:
            return None
        b_i, b_j = self.batch_sizes[i], self.batch_sizes[j]
        share = math.log(batch_size / b_i) / math.log(b_j / b_i)
        return math.exp((1 - share) * math.log(r_i) + share * math.log(r_j))

    @classmethod
    def from_runs(cls, workload: str, runs: Mapping[int, Sequence[float | None]], **more: Any) -> RelationVector:
        """r from samples to accuracy by batch size and run: the mean over runs, normalised to the largest (Eq. 3).

        A batch size with a run that missed the target (None) is not a candidate, and gets None.
        """
        sizes = tuple(sorted(runs))
        means: list[float | None] = []
        for b in sizes:
            reached = [n for n in runs[b] if n is not None]
            means.append(sum(reached) / len(reached) if reached and len(reached) == len(runs[b]) else None)
        usable = [m for m in means if m is not None]
        if not usable:
            raise ValueError("relation: no batch size reached the target in every run")
        largest = max(usable)
        return cls(
            workload=workload,
            batch_sizes=sizes,
            relative_samples=tuple(None if m is None else m / largest for m in means),
            samples_to_accuracy=tuple(tuple(runs[b]) for b in sizes),
            **more,
        )

    def to_json(self) -> dict[str, Any]:
        """The file format ``traingov.relation/1`` as plain values."""
        out: dict[str, Any] = {
            "schema": SCHEMA,
            "workload": self.workload,
            "batch_sizes": list(self.batch_sizes),
            "relative_samples": list(self.relative_samples),
            "samples_to_accuracy": [list(runs) for runs in self.samples_to_accuracy],
            "target": self.target,
            "dataset": self.dataset,
        }
        if self.interval is not None:
            out["interval"] = [list(pair) for pair in self.interval]
        for name in ("learning_rate_rule", "origin"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RelationVector:
        """Read ``traingov.relation/1``. Raises ValueError with one line saying what is wrong."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"relation: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
        try:
            interval = data.get("interval")
            return cls(
                workload=data["workload"],
                batch_sizes=tuple(data["batch_sizes"]),
                relative_samples=tuple(data["relative_samples"]),
                samples_to_accuracy=tuple(tuple(runs) for runs in data.get("samples_to_accuracy", ())),
                target=data.get("target"),
                dataset=data.get("dataset", ""),
                interval=None if interval is None else tuple((low, high) for low, high in interval),
                learning_rate_rule=data.get("learning_rate_rule"),
                origin=data.get("origin"),
            )
        except KeyError as error:
            raise ValueError(f"relation: {error.args[0]} is missing") from None
        except TypeError as error:
            raise ValueError(f"relation: {error}") from None


def scaled_learning_rate(learning_rate: float, reference_batch: int, batch_size: int, rule: str = "sqrt") -> float:
    """The learning rate for ``batch_size``, given the one for ``reference_batch`` (method A).

    ``rule`` is "sqrt" (Adam, AdamW), "linear" (SGD) or "none". Raises ValueError for another rule.
    """
    ratio = batch_size / reference_batch
    if rule == "sqrt":
        return learning_rate * math.sqrt(ratio)
    if rule == "linear":
        return learning_rate * ratio
    if rule == "none":
        return learning_rate
    raise ValueError(f"learning-rate rule {rule!r}: use sqrt (Adam, AdamW), linear (SGD) or none")
