"""The report as one page: no network, no other file, nothing that runs but its own small script (held by a CSP)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from traingov_policies.lut import Lut

from ..cli.times import duration, energy
from ..history.records import Choice
from . import tables, timeline, ucurve
from .subject import Subject
from .svg import esc, folded, table
from .words import cap_text, clock, comparisons, kind, not_compared, share, summary, title, when

_HERE = Path(__file__).parent
_MOMENT_S = 0.1


def page(subject: Subject, version: str) -> str:
    """The whole document."""
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    sections = [
        ("summary", "In words", _summary(subject)),
        ("timeline", "Timeline", _timeline(subject)),
        ("table", "Table of operating points", _table(subject)),
        ("energy", "Energy against the clock", _curves(subject)),
        ("baselines", "Against the baselines", _baselines(subject)),
        ("decisions", "Decisions and their reasons", _decisions(subject)),
        ("points", "Where time and energy went", _points(subject)),
        ("conditions", "Conditions", _conditions(subject)),
    ]
    body = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{esc(head)}</h2>{inner}</section>'
        for name, head, inner in sections
    )
    spans = timeline.data(subject) if subject.run.spans else ""
    held = f'<script type="application/json" id="spans">{spans}</script>' if spans else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{esc(title(subject))} · traingov report</title><style>{style}</style></head>\n<body><main>"
        f"<header><h1>{esc(title(subject))}</h1><p class='kind'>{esc(kind(subject))}</p></header>{body}"
        f"<footer class='note'>traingov {esc(version)}, from {esc(subject.source)}.</footer></main>"
        f"{held}<script>{script}</script></body></html>\n"
    )


def _summary(subject: Subject) -> str:
    run = subject.run
    used = subject.trained_at
    began = f"{datetime.fromtimestamp(run.started_s):%Y-%m-%d %H:%M:%S}" if subject.wall else "not recorded"
    facts = [
        ("began", began), ("time", duration(run.elapsed_s)), ("samples", str(run.samples)),
        ("energy of the board", energy(run.input_energy_j)),
        ("trained most at", "–" if used is None else f"batch {used.batch_size}, {clock(used.gpu_frequency_hz)}"),
        ("cap", cap_text(subject.cap_w, run.caps[-1].window_s if run.caps else None)),
        ("above the cap", f"{run.above_cap_s:.1f} s" if run.judged_s > 0 else "not judged"),
        ("guard steps", str(run.guard_steps)),
    ]  # fmt: skip
    words = "".join(f"<p>{esc(sentence)}</p>" for sentence in summary(subject))
    boxes = "".join(f"<div><dt>{esc(name)}</dt><dd>{esc(value)}</dd></div>" for name, value in facts)
    return f'{words}<dl class="facts">{boxes}</dl>'


def _timeline(subject: Subject) -> str:
    spans = subject.run.spans
    if not spans:
        return "<p>No timeline was kept of this run: it is of an older traingov, or made room for newer runs.</p>"
    widths = sorted(span.width_s for span in spans)
    note = (
        f"Each step of the lines is a stretch of {duration(widths[len(widths) // 2])}; the band reaches from the least "
        "to the largest single reading in it, so that no peak is lost. Marks below: choices, guard steps, conditions."
    )
    key = (
        '<ul class="key"><li><i class="k-power"></i>mean power</li><li><i class="k-band"></i>least to largest reading'
        '</li><li><i class="k-window"></i>largest window mean</li><li><i class="k-cap"></i>cap</li></ul>'
    )
    return (
        f"<figure>{key}{timeline.chart(subject, 960, 'time-wide')}{timeline.chart(subject, 380, 'time-narrow')}"
        '<label class="sr" for="slide">Moment of the run</label>'
        '<input type="range" id="slide" min="0" max="1000" value="0">'
        '<output class="read" id="read" for="slide">Move over the chart, or move the slider, to read a moment.</output>'
        f'<figcaption class="note">{esc(note)}</figcaption></figure>'
        f"{folded('As numbers', timeline.rows(subject))}"
    )


def _table(subject: Subject) -> str:
    lut = subject.lut
    if lut is None:
        return "<p>There is no table of this workload: only the joint policy measures one.</p>"
    return f"<p>{esc(_told(lut))}</p>{tables.heatmaps(subject)}{tables.legend(subject)}"


def _told(lut: Lut) -> str:
    origins = [cell for row in (lut.origin or ()) for cell in row]
    counts = [f"{origins.count(name)} {name}" for name in ("measured", "predicted", "infeasible", "failed")
              if origins.count(name)]  # fmt: skip
    at = f" of {lut.measured_at}" if lut.measured_at else ""
    return f"The newest table{at} of {lut.workload} on {lut.board}: {', '.join(counts) or 'as given'}."


def _curves(subject: Subject) -> str:
    inner = ucurve.curve_figures(subject) + ucurve.sweep_figure(subject)
    return inner or (
        "<p>No energy curve of this workload is known: the energy policy measures one, and so does "
        "<code>traingov profile --energy</code>.</p>"
    )


def _baselines(subject: Subject) -> str:
    found = comparisons(subject)
    if not found:
        return f"<p>{esc(not_compared(subject))}</p>"
    rows = [
        (c.against, f"{share(c.energy)}{'' if c.energy is None else f' ({c.power})'}", share(c.time), c.how)
        for c in found
    ]
    return table(
        ("against", "energy", "time", "how it is known"), rows, "Saved at the point that trained most", "words"
    )


def _decisions(subject: Subject) -> str:
    choices = subject.run.choices
    if not choices:
        return "<p>Nothing was decided.</p>"
    left_out = choices[0].number - 1
    note = f'<p class="note">{left_out} earlier decisions are not kept.</p>' if left_out else ""
    rows = "".join(_decision(subject, choice) for choice in choices)
    return (
        f'{note}<div class="scroll" tabindex="0" role="region" aria-label="Decisions"><table class="words">'
        f'<thead><tr><th scope="col">when</th><th scope="col">kind</th><th scope="col">what and why</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _decision(subject: Subject, choice: Choice) -> str:
    more = ""
    if choice.reasons:
        items = "".join(f"<li>{esc(reason)}</li>" for reason in choice.reasons.splitlines())
        more = f'<details open><summary>Reasons</summary><ul class="reasons">{items}</ul></details>'
    return (
        f'<tr><th scope="row">{esc(when(subject, choice.at_s))}</th><td>{esc(choice.kind)}</td>'
        f"<td>{esc(choice.text)}{more}</td></tr>"
    )


def _points(subject: Subject) -> str:
    rows: list[Sequence[object]] = [
        (f"batch {p.batch_size}, {clock(p.gpu_frequency_hz)}", duration(p.time_s), p.samples, energy(p.input_energy_j),
         "–" if not p.samples or p.input_energy_j is None else f"{1e3 * p.input_energy_j / p.samples:.3g}",
         energy(p.compute_energy_j))
        for p in subject.run.points
        if p.samples or p.time_s >= _MOMENT_S
    ]  # fmt: skip
    head = ("point", "time", "samples", "input energy", "mJ a sample", "GPU + CPU energy")
    return table(head, rows, "Each operating point of the run; the moments of changing to it are in its time")


def _conditions(subject: Subject) -> str:
    run = subject.run
    caps = [(when(subject, c.at_s), cap_text(c.power_w, c.window_s), c.source) for c in run.caps]
    said = [(when(subject, n.at_s), n.name, "holds no longer" if n.text is None else n.text) for n in run.notices]
    first = table(("when", "cap", "set by"), caps, "Caps", "words") if caps else ""
    second = (
        table(("when", "condition", "text"), said, "Conditions that were raised or cleared", "words") if said else ""
    )
    return first + (second or "<p>No condition was raised.</p>")
