"""The relation vector r (method A, Eq. 3), relative samples to accuracy per batch size; learning-rate rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .belief import WALK_SD_PER_OCTAVE, learn, noise_sd, reached

SCHEMA = "traingov.relation/1"
_Z95 = 1.96
"""Intervals hold the true mean in 95 of 100 cases, were log N normal."""


@dataclass(frozen=True)
class RelationVector:
    """r per batch size, in (0, 1], normalised to the largest. A batch size that missed the target has None.

    ``samples_to_accuracy`` is ``[B][runs]`` (None: the run missed the target). ``interval`` is ``[B][2]``: where r lies
    with 95 %, for the same normalisation, so that its upper end may exceed 1. Raises ValueError naming the field.
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
        for name in ("workload", "dataset", "learning_rate_rule", "origin"):
            value = getattr(self, name)
            if not isinstance(value, str) and (name == "workload" or value is not None):
                raise ValueError(f"relation: {name} must be text, not {str(value)[:40]!r}")
        if self.target is not None and not (isinstance(self.target, (int, float)) and abs(self.target) < 1e18):
            raise ValueError(f"relation: target must be a number, not {str(self.target)[:40]!r}")
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
        for samples in (n for runs in self.samples_to_accuracy for n in runs if n is not None):
            if not 0 < samples < 1e18:
                raise ValueError(
                    f"relation: samples_to_accuracy has {str(samples)[:40]}, which is no number of samples"
                )
        if self.interval is not None:
            self._check_interval(self.interval)

    def _check_interval(self, interval: Sequence[Sequence[float | None]]) -> None:
        if len(interval) != len(self.batch_sizes):
            raise ValueError(f"relation: interval has {len(interval)} pairs for {len(self.batch_sizes)} batch sizes")
        for b, pair, r in zip(self.batch_sizes, interval, self.relative_samples, strict=True):
            low, high = pair
            if low is None or high is None or r is None:
                if low is not None or high is not None:
                    raise ValueError(
                        f"relation: interval of batch {b} must be two numbers, or two nulls, not {list(pair)}"
                    )
            elif not 0 < low <= r <= high < math.inf:
                raise ValueError(f"relation: interval of batch {b}, {low!r} to {high!r}, does not hold its value {r!r}")

    def of(self, batch_size: int) -> float | None:
        """r of ``batch_size``: measured, or log-log interpolated between measured neighbours.

        Outside the measured range, or beside a batch size that missed the target, it is None: such a batch size
        is not a candidate.
        """
        if batch_size in self.batch_sizes:
            return self.relative_samples[self.batch_sizes.index(batch_size)]
        at = self._between(batch_size)
        if at is None:
            return None
        i, j, share = at
        r_i, r_j = self.relative_samples[i], self.relative_samples[j]
        if r_i is None or r_j is None:
            return None
        return math.exp((1 - share) * math.log(r_i) + share * math.log(r_j))

    def interval_of(self, batch_size: int) -> tuple[float, float] | None:
        """Where r of ``batch_size`` lies with 95 %; None where ``of`` gives None or the vector has no interval.

        Between measured sizes it is wider than at either: log r may bend away from the straight line, by the standard
        deviation of a random walk tied down at both neighbours (``belief.WALK_SD_PER_OCTAVE``).
        """
        r = self.of(batch_size)
        if self.interval is None or r is None:
            return None
        if batch_size in self.batch_sizes:
            low, high = self.interval[self.batch_sizes.index(batch_size)]
            return None if low is None or high is None else (low, high)
        at = self._between(batch_size)
        assert at is not None  # since r is known
        i, j, share = at
        ends = (self.interval[i], self.interval[j])
        sds = [math.log(high / low) / 2 / _Z95 for low, high in ends if low is not None and high is not None]
        if len(sds) < 2:
            return None
        octaves = math.log2(self.batch_sizes[j] / self.batch_sizes[i])
        bend = WALK_SD_PER_OCTAVE * math.sqrt(share * (1 - share) * octaves)
        sd = math.sqrt(((1 - share) * sds[0]) ** 2 + (share * sds[1]) ** 2 + bend**2)
        return r * math.exp(-_Z95 * sd), r * math.exp(_Z95 * sd)

    def _between(self, batch_size: int) -> tuple[int, int, float] | None:
        """Indices of the measured neighbours, and the share of the way between them in log b; None outside."""
        lower = [i for i, b in enumerate(self.batch_sizes) if b < batch_size]
        upper = [i for i, b in enumerate(self.batch_sizes) if b > batch_size]
        if not lower or not upper:
            return None
        i, j = lower[-1], upper[0]
        b_i, b_j = self.batch_sizes[i], self.batch_sizes[j]
        return i, j, math.log(batch_size / b_i) / math.log(b_j / b_i)

    @classmethod
    def from_runs(
        cls, workload: str, runs: Mapping[int, Sequence[float | None]], *, smoothed: bool = False, **more: Any
    ) -> RelationVector:
        """r from samples to accuracy by batch size and run: the mean over runs, normalised to the largest (Eq. 3).

        A batch size with a run that missed the target (None) is not a candidate, and gets None. With ``smoothed`` the
        posterior mean of ``belief.learn`` takes the place of the plain mean: few runs are noisy, and neighbouring
        batch sizes tell of each other. Either way the interval is filled in.
        """
        sizes = tuple(sorted(b for b in runs if len(runs[b])))
        ok = reached({b: runs[b] for b in sizes})
        if not any(ok.values()):
            raise ValueError("relation: no batch size reached the target in every run")
        sds: Sequence[float]
        if smoothed:
            belief = learn(sizes, runs)
            counts, sds = [math.exp(x) for x in belief.mean], [float(sd) for sd in belief.sd()]
        else:
            counts = [_mean(runs[b]) if ok[b] else math.nan for b in sizes]
            sds = [float(sd) / math.sqrt(len(runs[b])) for b, sd in zip(sizes, noise_sd(sizes, runs), strict=True)]
        largest = max(n for n, b in zip(counts, sizes, strict=True) if ok[b])
        values = [n / largest if ok[b] else None for n, b in zip(counts, sizes, strict=True)]
        return cls(
            workload=workload,
            batch_sizes=sizes,
            relative_samples=tuple(values),
            samples_to_accuracy=tuple(tuple(runs[b]) for b in sizes),
            interval=tuple(
                (None, None) if r is None else (r * math.exp(-_Z95 * sd), r * math.exp(_Z95 * sd))
                for r, sd in zip(values, sds, strict=True)
            ),
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


def _mean(runs: Sequence[float | None]) -> float:
    reached_in = [n for n in runs if n is not None]
    return sum(reached_in) / len(reached_in)


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
