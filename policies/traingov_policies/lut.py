"""The lookup table: time and power per operating point for one workload on one board (method A)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .values import OperatingPoint

SCHEMA = "traingov.lut/1"
ORIGINS = ("measured", "predicted", "infeasible", "failed")

_GRIDS = ("time_s", "peak_power_w", "mean_power_w", "origin", "time_std_s", "power_std_w")

Row = tuple[float | None, ...]
Grid = tuple[Row, ...]


@dataclass(frozen=True)
class Cell:
    """What a table holds of one operating point; None where not measured.

    ``time_s`` is T_s, seconds for the table's ``samples``; ``peak_power_w`` the largest window mean seen while the
    point ran (it decides feasibility); ``mean_power_w`` decides energy; ``origin`` is one of ORIGINS or None.
    ``time_std_s`` and ``power_std_w`` are one standard deviation of ``time_s`` and of ``peak_power_w``.
    """

    time_s: float | None = None
    peak_power_w: float | None = None
    mean_power_w: float | None = None
    origin: str | None = None
    time_std_s: float | None = None
    power_std_w: float | None = None


@dataclass(frozen=True)
class Lut:
    """A lookup table: ``[B][F]`` grids over ascending ``batch_sizes`` and ``gpu_frequencies_hz``.

    Its identity is board, L4T release, power mode and workload signature; a table of another board is never used
    silently. Raises ValueError, naming the field, when shapes or values do not fit.
    """

    board: str
    workload: str
    samples: int
    batch_sizes: tuple[int, ...]
    gpu_frequencies_hz: tuple[int, ...]
    time_s: Grid
    peak_power_w: Grid
    mean_power_w: Grid
    conditions: Mapping[str, Any] = field(default_factory=dict)
    measured_at: str = ""
    origin: tuple[tuple[str | None, ...], ...] | None = None
    time_std_s: Grid | None = None
    power_std_w: Grid | None = None
    release: str | None = None
    power_mode: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        _ascending("batch_sizes", self.batch_sizes)
        _ascending("gpu_frequencies_hz", self.gpu_frequencies_hz)
        for name in ("measured_at", "release", "power_mode", "signature"):
            if not isinstance(getattr(self, name), (str, type(None))):
                raise ValueError(f"lut: {name} must be text, not {getattr(self, name)!r}")
        for name in ("board", "workload"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"lut: {name} must be text, not {getattr(self, name)!r}")
        if not isinstance(self.samples, int) or isinstance(self.samples, bool) or self.samples < 1:
            raise ValueError(f"lut: samples must be a whole number of at least 1, not {self.samples!r}")
        for name in _GRIDS:
            grid = getattr(self, name)
            if grid is not None:
                self._check_grid(name, grid)
            elif name in ("time_s", "peak_power_w", "mean_power_w"):
                raise ValueError(f"lut: {name} is missing")

    def _check_grid(self, name: str, grid: Sequence[Sequence[object]]) -> None:
        b, f = len(self.batch_sizes), len(self.gpu_frequencies_hz)
        if len(grid) != b or any(len(row) != f for row in grid):
            rows = f"{len(grid)} rows of lengths {sorted({len(row) for row in grid})}"
            raise ValueError(f"lut: {name} must be {b} rows (batch sizes) of {f} (frequencies), not {rows}")
        for i, row in enumerate(grid):
            for j, value in enumerate(row):
                if value is None:
                    continue
                if name == "origin":
                    if value not in ORIGINS:
                        raise ValueError(f"lut: origin[{i}][{j}] is {value!r}, not one of {', '.join(ORIGINS)}")
                elif not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e15:
                    raise ValueError(f"lut: {name}[{i}][{j}] must be a number of at least 0, not {value!r}")

    @classmethod
    def empty(
        cls,
        board: str,
        workload: str,
        samples: int,
        batch_sizes: Sequence[int],
        gpu_frequencies_hz: Sequence[int],
    ) -> Lut:
        """A table with nothing measured yet."""
        blank: Grid = tuple((None,) * len(gpu_frequencies_hz) for _ in batch_sizes)
        return cls(
            board,
            workload,
            samples,
            tuple(batch_sizes),
            tuple(gpu_frequencies_hz),
            blank,
            blank,
            blank,
            origin=blank,  # type: ignore[arg-type]
        )

    def index(self, point: OperatingPoint) -> tuple[int, int]:
        """Row and column of ``point``. Raises KeyError when the table has no such point."""
        try:
            return self.batch_sizes.index(point.batch_size), self.gpu_frequencies_hz.index(point.gpu_frequency_hz)
        except ValueError:
            raise KeyError(f"{point} is not in the table of {self.workload} on {self.board}") from None

    def cell(self, point: OperatingPoint) -> Cell:
        """What is known of ``point``. Raises KeyError when the table has no such point."""
        i, j = self.index(point)
        origin = self.origin[i][j] if self.origin is not None else None
        time_std_s = None if self.time_std_s is None else self.time_std_s[i][j]
        power_std_w = None if self.power_std_w is None else self.power_std_w[i][j]
        return Cell(
            self.time_s[i][j], self.peak_power_w[i][j], self.mean_power_w[i][j], origin, time_std_s, power_std_w
        )

    def with_cell(self, point: OperatingPoint, cell: Cell) -> Lut:
        """A table in which ``point`` holds ``cell``."""
        i, j = self.index(point)

        def put(grid: Any, value: Any) -> Any:
            row = (*grid[i][:j], value, *grid[i][j + 1 :])
            return (*grid[:i], row, *grid[i + 1 :])

        blank: Any = tuple((None,) * len(self.gpu_frequencies_hz) for _ in self.batch_sizes)

        def put_optional(grid: Grid | None, value: float | None) -> Any:
            return None if grid is None and value is None else put(grid or blank, value)

        return replace(
            self,
            time_s=put(self.time_s, cell.time_s),
            peak_power_w=put(self.peak_power_w, cell.peak_power_w),
            mean_power_w=put(self.mean_power_w, cell.mean_power_w),
            origin=put(self.origin or blank, cell.origin),
            time_std_s=put_optional(self.time_std_s, cell.time_std_s),
            power_std_w=put_optional(self.power_std_w, cell.power_std_w),
        )

    def points(self) -> Iterator[OperatingPoint]:
        """Every operating point, batch by batch, each from the lowest frequency up."""
        for b in self.batch_sizes:
            for f in self.gpu_frequencies_hz:
                yield OperatingPoint(b, f)

    def restricted(self, batch_sizes: Sequence[int]) -> Lut:
        """The table with only its batch sizes in ``batch_sizes``. ValueError when none is left."""
        keep = [i for i, b in enumerate(self.batch_sizes) if b in set(batch_sizes)]
        if not keep:
            raise ValueError(
                f"lut: no batch size of {list(self.batch_sizes)} is among those wanted, {sorted(batch_sizes)}"
            )
        pick: Callable[[Any], Any] = lambda grid: None if grid is None else tuple(grid[i] for i in keep)  # noqa: E731
        return replace(
            self,
            batch_sizes=tuple(self.batch_sizes[i] for i in keep),
            **{name: pick(getattr(self, name)) for name in _GRIDS},
        )

    def extended(self, batch_sizes: Sequence[int], gpu_frequencies_hz: Sequence[int]) -> Lut:
        """The table over these batch sizes and clocks too: what it does not know of them is unknown."""
        batches = tuple(sorted({*self.batch_sizes, *batch_sizes}))
        clocks = tuple(sorted({*self.gpu_frequencies_hz, *gpu_frequencies_hz}))
        if (batches, clocks) == (self.batch_sizes, self.gpu_frequencies_hz):
            return self
        rows = {b: i for i, b in enumerate(self.batch_sizes)}
        columns = {f: j for j, f in enumerate(self.gpu_frequencies_hz)}

        def spread(grid: Any) -> Any:
            if grid is None:
                return None
            return tuple(
                tuple(grid[rows[b]][columns[f]] if b in rows and f in columns else None for f in clocks)
                for b in batches
            )

        grids = {name: spread(getattr(self, name)) for name in _GRIDS}
        return replace(self, batch_sizes=batches, gpu_frequencies_hz=clocks, **grids)

    def overlaid(self, newer: Lut) -> Lut:
        """This table with what ``newer`` knows on top, over the batch sizes and clocks of both.

        Times are brought to ``newer.samples``. A cell that ``newer`` only predicts or failed to measure does not
        replace a measured one.
        """
        scale = newer.samples / self.samples
        older = self.extended(newer.batch_sizes, newer.gpu_frequencies_hz)
        table = newer.extended(self.batch_sizes, self.gpu_frequencies_hz)
        for point in older.points():
            old, new = older.cell(point), table.cell(point)
            weak = new.origin in (None, "predicted", "failed")
            if weak and old.origin in ("measured", "infeasible"):
                time_s = None if old.time_s is None else old.time_s * scale
                time_std_s = None if old.time_std_s is None else old.time_std_s * scale
                table = table.with_cell(point, replace(old, time_s=time_s, time_std_s=time_std_s))
        return table

    def blank(self) -> Lut:
        """A table of the same points with nothing measured."""
        empty = Lut.empty(self.board, self.workload, self.samples, self.batch_sizes, self.gpu_frequencies_hz)
        return replace(empty, release=self.release, power_mode=self.power_mode, signature=self.signature)

    def unfinished(self) -> Lut:
        """The table without the mark that its profiling plan came to an end: other points may be worth it now."""
        return replace(self, conditions={k: v for k, v in self.conditions.items() if k != "adaptive_done"})

    def without_failed(self) -> Lut:
        """The table in which points that could not be measured are unknown again: what failed once may work now."""
        failed = [point for point in self.points() if self.cell(point).origin == "failed"]
        if not failed:
            return self
        table = self.unfinished()
        for point in failed:
            table = table.with_cell(point, Cell())
        return table

    def to_json(self) -> dict[str, Any]:
        """The file format ``traingov.lut/1`` as plain values."""
        out: dict[str, Any] = {
            "schema": SCHEMA,
            "board": self.board,
            "workload": self.workload,
            "samples": self.samples,
            "batch_sizes": list(self.batch_sizes),
            "gpu_frequencies_hz": list(self.gpu_frequencies_hz),
            "time_s": [list(row) for row in self.time_s],
            "peak_power_w": [list(row) for row in self.peak_power_w],
            "mean_power_w": [list(row) for row in self.mean_power_w],
            "conditions": dict(self.conditions),
            "measured_at": self.measured_at,
        }
        for name in ("origin", "time_std_s", "power_std_w"):
            grid = getattr(self, name)
            if grid is not None:
                out[name] = [list(row) for row in grid]
        for name in ("release", "power_mode", "signature"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Lut:
        """Read ``traingov.lut/1``. Raises ValueError with one line saying what is wrong."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"lut: schema is {data.get('schema')!r}, expected {SCHEMA!r}")

        def grid(name: str) -> Any:
            value = data.get(name)
            return None if value is None else tuple(tuple(row) for row in value)

        try:
            return cls(
                board=data["board"],
                workload=data["workload"],
                samples=data["samples"],
                batch_sizes=tuple(data["batch_sizes"]),
                gpu_frequencies_hz=tuple(data["gpu_frequencies_hz"]),
                time_s=grid("time_s"),
                peak_power_w=grid("peak_power_w"),
                mean_power_w=grid("mean_power_w"),
                conditions=dict(data.get("conditions", {})),
                measured_at=data.get("measured_at", ""),
                origin=grid("origin"),
                time_std_s=grid("time_std_s"),
                power_std_w=grid("power_std_w"),
                release=data.get("release"),
                power_mode=data.get("power_mode"),
                signature=data.get("signature"),
            )
        except KeyError as error:
            raise ValueError(f"lut: {error.args[0]} is missing") from None
        except TypeError as error:
            raise ValueError(f"lut: {error}") from None


def _ascending(name: str, values: Sequence[int]) -> None:
    if not values:
        raise ValueError(f"lut: {name} is empty")
    if any(not isinstance(v, int) or not 1 <= v < 10**12 for v in values) or list(values) != sorted(set(values)):
        raise ValueError(f"lut: {name} must be ascending positive integers without repeats, not {list(values)}")
