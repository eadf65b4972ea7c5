"""Lookup tables as text: grids with marks, the list of the store, differences."""

from __future__ import annotations

from collections.abc import Iterator

from traingov_policies.lut import Cell, Lut
from traingov_policies.lut_diff import GridDifference, LutDifference
from traingov_policies.select import below_cap
from traingov_policies.values import OperatingPoint

from ..inventory import Entry, cells_by_origin

TITLES = {
    "time_s": "time for {samples} samples, s",
    "peak_power_w": "peak power, W",
    "mean_power_w": "mean input power, W",
}
_MARKS = {"predicted": "~", "infeasible": "^", "failed": "x"}
_LEGEND = {
    "~": "~ predicted",
    "^": "^ given up above a cap",
    "x": "x could not be measured",
    "!": "! not below the cap",
    "«": "« chosen",
}


def table_lines(lut: Lut, cap_w: float | None, chosen: OperatingPoint | None) -> Iterator[str]:
    """The table's identity and its three grids, a row per batch size and a column per clock."""
    count = ", ".join(f"{n} {name}" for name, n in cells_by_origin(lut).items() if n)
    yield f"{lut.workload} on {lut.board}, {lut.release or 'release not stated'}, {lut.power_mode or 'mode not stated'}"
    yield f"{count}; measured at {lut.measured_at or 'a time not stated'}"
    marks: set[str] = set()
    for quantity, title in TITLES.items():
        yield ""
        yield title.format(samples=lut.samples)
        yield "   MHz " + "".join(f"{f / 1e6:>9.0f}" for f in lut.gpu_frequencies_hz)
        for b in lut.batch_sizes:
            texts = []
            for f in lut.gpu_frequencies_hz:
                point = OperatingPoint(b, f)
                cell = lut.cell(point)
                mark = _mark(cell, cap_w, is_chosen=point == chosen)
                marks |= set(mark)
                texts.append(f"{_number(getattr(cell, quantity)):>7}{mark:<2}")
            yield f"{b:>6} " + "".join(texts).rstrip()
    if marks:
        yield ""
        yield "; ".join(text for mark, text in _LEGEND.items() if mark in marks)


def entry_lines(found: list[Entry]) -> Iterator[str]:
    """One line a table, grouped by board, release and power mode."""
    place = None
    for entry in found:
        if entry.lut is None:
            continue
        lut = entry.lut
        here = (lut.board, lut.release, lut.power_mode)
        if here != place:
            place = here
            yield f"{lut.board}, {lut.release or 'release not stated'}, {lut.power_mode or 'mode not stated'}"
        cells = entry.cells()
        grid = f"{len(lut.batch_sizes)} batch sizes × {len(lut.gpu_frequencies_hz)} clocks"
        known = ", ".join(f"{n} {name}" for name, n in cells.items() if n and name != "empty") or "empty"
        kind = "" if entry.kind == "table" else f" ({'imported' if entry.kind == 'prior' else 'shipped'} prior)"
        yield f"  {entry.signature}{kind}: {grid}; {known}; {lut.measured_at or 'time not stated'}"
    for entry in found:
        if entry.lut is None:
            yield f"{entry.path}: {entry.error}"


def difference_lines(difference: LutDifference) -> Iterator[str]:
    """A grid per quantity in percent, and its summary."""
    for grid in difference.grids:
        largest, mean, absolute = grid.largest, grid.mean, grid.mean_absolute
        name = grid.quantity.rsplit("_", 1)[0].replace("_", " ")
        if largest is None or mean is None or absolute is None:
            yield f"{name}: nothing to compare"
            continue
        yield (
            f"{name}: {len(grid.compared)} points, mean {100 * mean:+.2f} %, mean absolute {100 * absolute:.2f} %, "
            f"largest {100 * largest[1]:+.2f} % ({largest[0]})"
        )
        yield from _grid_lines(grid)
    for number, which in ((difference.only_old, "first"), (difference.only_new, "second")):
        if number:
            yield f"{number} points are in the {which} table only"


def _grid_lines(grid: GridDifference) -> Iterator[str]:
    cells = dict(grid.cells)
    clocks = sorted({p.gpu_frequency_hz for p in cells})
    yield "   MHz " + "".join(f"{f / 1e6:>8.0f}" for f in clocks)
    for b in sorted({p.batch_size for p in cells}):
        row = (cells[OperatingPoint(b, f)] for f in clocks)
        yield f"{b:>6} " + "".join("       —" if d is None else f"{100 * d:>+7.1f}%" for d in row)


def _mark(cell: Cell, cap_w: float | None, *, is_chosen: bool) -> str:
    mark = _MARKS.get(cell.origin or "", "")
    if is_chosen:
        mark += "«"
    elif cap_w is not None and cell.peak_power_w is not None and not below_cap(cell.peak_power_w, cap_w):
        mark += "!"
    return mark


def _number(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"
