"""Small pieces of SVG and HTML: text that cannot break out of its place, scales, ticks, paths."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Control characters, and those that turn the direction of writing: a job's name comes from whoever registered it.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def esc(value: object) -> str:
    """``value`` as text of a page, also between quotation marks of an attribute."""
    return html.escape(_UNFIT.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True)


def num(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` onto pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most ``most`` round values within ``low`` and ``high``."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    for power in range(math.floor(math.log10(span)) - 2, math.floor(math.log10(span)) + 2):
        for factor in (1, 2, 2.5, 5):
            step = factor * 10.0**power
            first = math.ceil(low / step - 1e-9)
            count = math.floor(high / step + 1e-9) - first + 1
            if count <= most:
                return [round((first + i) * step, 10) for i in range(count)] or [low]
    return [low]


def time_ticks(length_s: float, most: int) -> list[tuple[float, str]]:
    """Round moments of a run with their names: in seconds, minutes or hours, as fits its length."""
    size, unit = next(((s, u) for s, u in ((3600.0, "h"), (60.0, "min")) if length_s >= 2 * s), (1.0, "s"))
    return [(tick * size, f"{tick:g} {unit}") for tick in ticks(0.0, length_s / size, most)]


def steps(points: Iterable[tuple[float, float, float | None]]) -> str:
    """A path of (x from, x to, y): level in between, and with a gap where y is None."""
    out: list[str] = []
    at: str | None = None
    for x0, x1, y in points:
        if y is None:
            at = None
            continue
        level = num(y)
        if at is None:
            out.append(f"M{num(x0)} {level}")
        elif level != at:
            out.append(f"V{level}")
        if at == level and out and out[-1][0] == "H":
            out[-1] = f"H{num(x1)}"
        else:
            out.append(f"H{num(x1)}")
        at = level
    return "".join(out)


def line(points: Sequence[tuple[float, float]]) -> str:
    """A path through points."""
    return "".join(f"{'M' if i == 0 else 'L'}{num(x)} {num(y)}" for i, (x, y) in enumerate(points))


def text(x: float, y: float, words: object, css: str = "", anchor: str = "start") -> str:
    """A text element."""
    cls = f' class="{css}"' if css else ""
    return f'<text x="{num(x)}" y="{num(y)}" text-anchor="{anchor}"{cls}>{esc(words)}</text>'


def path(d: str, css: str) -> str:
    """A path element; nothing for an empty path."""
    return f'<path d="{d}" class="{css}"/>' if d else ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str, css: str = "") -> str:
    """A table of text cells; the first of each row names the row."""
    top = "".join(f'<th scope="col">{esc(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{esc(row[0])}</th>{"".join(f"<td>{esc(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    cls = f' class="{css}"' if css else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(caption)}"><table{cls}>'
        f"<caption>{esc(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(name: str, inner: str) -> str:
    """Something that opens on demand."""
    return f"<details><summary>{esc(name)}</summary>{inner}</details>"
