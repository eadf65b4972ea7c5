"""The tables of docs/calibration.md, from the shipped files: ``python -m traingov_sim.surfaces.report DOCUMENT``.

Replaces what stands between the two marker lines of the document, and leaves the rest alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .clocks import CLOCKS_HZ
from .store import names, read

BEGIN = "<!-- tables: begin (python -m traingov_sim.surfaces.report docs/calibration.md) -->"
END = "<!-- tables: end -->"


def tables() -> str:
    """Every shipped surface: its facts with residuals, then its predictions."""
    return "\n".join(line for board in CLOCKS_HZ for name in names(board) for line in _surface(read(board, name)))


def _surface(data: dict[str, Any]) -> Iterator[str]:
    yield f"### {data['board']}: {data['workload']}"
    yield ""
    if "derived_from" in data:
        text = f"The surface of {data['derived_from']} with every time multiplied by {data['time_scale']:.4g}"
        if "derived_board" in data:
            text = text.replace("The surface", f"Predicted, not calibrated: {data['derived_board']}'s surface", 1)
            text += f" and every power by {data['power_scale']:.3g}"
        yield f"{text}."
        yield ""
        return
    c = data["calibration"]
    misfit, fits = f"{c['misfit']:.2f} over {len(c['facts'])} facts", f"{c['accepted_fits']} accepted fits"
    yield f"Misfit {misfit}; {fits}; seed {c['seed']}."
    if "clocks_tried" in data:
        tried = [
            f"{' / '.join(f'{hz / 1e6:.0f}' for hz in t['clocks_hz'])} MHz ({t['misfit']:.2f})"
            for t in data["clocks_tried"][:4]
        ]
        yield f"Baseline clocks, assumed: the pair of least misfit. The best four: {', '.join(tried)}."
    if data["irregularities"]:
        factors = ", ".join(f"{int(hz) / 1e6:.0f}: {v:.3f}" for hz, v in data["irregularities"].items())
        yield f"Irregularities, factors on step time by MHz: {factors}."
    yield ""
    yield "| fact | used as | tolerance | residual (in tolerances) | source |"
    yield "|---|---|---|---|---|"
    for f in c["facts"]:
        yield f"| {f['name']} | {f['kind']} | {f['tolerance']:g} | {f['residual'] + 0.0:.2f} | {f['source']} |"
    yield ""
    yield from _predictions(data)


def _predictions(data: dict[str, Any]) -> Iterator[str]:
    if "predictions" in data:
        yield "| held out | published, s | predicted, s | error | fits: least, median, largest | at |"
        yield "|---|---|---|---|---|---|"
        for p in data["predictions"]:
            low, middle, high = (f"{e:+.1f}" for e in p["error_percent_over_fits"])
            point = f"{p['batch_size']} at {p['gpu_frequency_hz'] / 1e6:.0f} MHz"
            yield (
                f"| {p['name']} | {p['published']:.0f} | {p['predicted']:.0f} | {p['error_percent']:+.1f} % "
                f"| {low}, {middle}, {high} % | {point} |"
            )
        yield ""
    if "energy_over_joint" in data:
        ratios = "; ".join(f"{name}: {value:.2f}" for name, value in data["energy_over_joint"].items())
        yield f"Energy over that of the joint choice (predicted): {ratios}."
        yield ""


def updated(document: str) -> str:
    """``document`` with fresh tables. Raises ValueError when it lacks the marker lines."""
    if BEGIN not in document or END not in document:
        raise ValueError(f"the document lacks the lines {BEGIN!r} and {END!r}: add them where the tables belong")
    head, rest = document.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{tables().rstrip()}\n\n{END}{rest.split(END, 1)[1]}"


def main() -> None:
    """Write the tables into the document named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("report: name the document to update, such as docs/calibration.md")
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
