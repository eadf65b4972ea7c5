"""The lookup table as two heatmaps of HTML cells: the numbers are in them, so that no other table is needed."""

from __future__ import annotations

from collections.abc import Callable

from traingov_policies.lut import Cell, Lut
from traingov_policies.values import OperatingPoint

from .subject import Subject
from .svg import esc

_Value = Callable[[Cell], "float | None"]


def heatmaps(subject: Subject) -> str:
    """Time and peak power of each operating point. The subject has a table."""
    lut = subject.lut
    assert lut is not None
    time = _map(subject, lut, lambda cell: cell.time_s, (f"Seconds for {lut.samples} samples", "{:.3g}", "warm"))
    peak = ("Peak power, W (largest mean of a window)", "{:.2f}", "hot")
    power = _map(subject, lut, lambda cell: cell.peak_power_w, peak)
    return time + power


def legend(subject: Subject) -> str:
    """What the cells' looks mean."""
    cap = subject.cap_w
    parts = ["<b>[ ]</b> framed: the chosen point", "<i>italic with ~</i>: predicted by a model, not measured",
             "✕: given up above a cap, so its time is unknown", "failed: could not be measured",
             "–: never measured"]  # fmt: skip
    if cap is not None:
        parts.append(f"thick line: the cap of {cap:g} W, hatched where peak power reaches it")
    return f'<p class="note">{"; ".join(parts)}.</p>'


def _map(subject: Subject, lut: Lut, value: _Value, looks_of: tuple[str, str, str]) -> str:
    """``looks_of``: caption, format of a number, and the table's class."""
    caption, form, css = looks_of
    chosen, cap = subject.chosen, subject.cap_w
    clocks, sizes = lut.gpu_frequencies_hz, lut.batch_sizes[::-1]
    cells = {(b, hz): lut.cell(OperatingPoint(b, hz)) for b in sizes for hz in clocks}
    known = [v for cell in cells.values() if (v := value(cell)) is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)

    def over(b: int, hz: int) -> bool | None:
        peak, origin = cells[b, hz].peak_power_w, cells[b, hz].origin
        if cap is None:
            return None
        return (origin == "infeasible") if peak is None else peak >= cap

    body = []
    for row, b in enumerate(sizes):
        out = [f'<th scope="row">{b}</th>']
        for column, hz in enumerate(clocks):
            mine = over(b, hz)
            looks = [_look(cells[b, hz])]
            if mine:
                looks.append("over")
            if column + 1 < len(clocks) and _differ(mine, over(b, clocks[column + 1])):
                looks.append("capr")
            if row + 1 < len(sizes) and _differ(mine, over(sizes[row + 1], hz)):
                looks.append("capb")
            here = chosen is not None and (chosen.batch_size, chosen.gpu_frequency_hz) == (b, hz)
            if here:
                looks.append("chosen")
            number = value(cells[b, hz])
            heat = "" if number is None else f' style="--h:{100 * (number - low) / ((high - low) or 1.0):.0f}%"'
            words = _words(cells[b, hz], number, form)
            said = f"{words}<span class='sr'>, chosen</span>" if here else words
            out.append(f'<td class="{" ".join(looks)}"{heat}>{said}</td>')
        body.append(f"<tr>{''.join(out)}</tr>")
    head = "".join(f'<th scope="col">{hz / 1e6:.0f}</th>' for hz in clocks)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(caption)}"><table class="heat {css}">'
        f"<caption>{esc(caption)}; rows: batch size, columns: GPU clock in MHz</caption>"
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _differ(one: bool | None, other: bool | None) -> bool:
    return one is not None and other is not None and one != other


def _look(cell: Cell) -> str:
    if cell.origin is not None:
        return cell.origin
    return "unknown" if cell.time_s is None and cell.peak_power_w is None else "measured"


def _words(cell: Cell, number: float | None, form: str) -> str:
    look = _look(cell)
    if number is None:
        return {"infeasible": "✕", "failed": "failed"}.get(look, "–")
    text = form.format(number)
    if look == "predicted":
        return f"~{text}"
    return f"✕ {text}" if look == "infeasible" else text
