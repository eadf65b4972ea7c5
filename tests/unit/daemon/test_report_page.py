"""The report as a page: whole in itself, honest about what is not known, and closed to hostile names."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from report_samples import CURVE, LUT, MHZ, RUN, SUBJECT, span
from traingov.history.records import Choice, Notice, PointUse, Span
from traingov.history.trail import MOST_SPANS
from traingov.report.page import page
from traingov.report.subject import Subject
from traingov.report.svg import esc, steps, ticks, time_ticks
from traingov.report.words import comparisons, kind, summary
from traingov_policies.sweep import SweepRow


class Parsed(HTMLParser):
    """Every tag with its attributes, the text outside of scripts and styles, and each script's content."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data


def parsed(subject: Subject) -> Parsed:
    return Parsed(page(subject, "0.1.0"))


def test_the_page_has_every_part_with_its_figures() -> None:
    text = parsed(SUBJECT).text
    for part in (
        "digits on Jetson Nano", "It trained 4000 of 4000 samples in 125 steps; 75 % of them with batch 8 at 300 MHz.",
        "The board used 250.0 J, 4.17 W on average.", "lay above the cap of 5 W for 1.5 s of the 50.0 s",
        "Second: none.", "guard-low", "held low", "GPU + CPU energy of a sample at batch 8, mJ", "input power, W",
        "GPU clock, MHz",
    ):  # fmt: skip
        assert part in text, part


def test_nothing_is_fetched_and_only_the_page_s_own_script_may_run() -> None:
    document = page(SUBJECT, "0.1.0")
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import", document)
    policy = next(a["content"] for tag, a in Parsed(document).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "script-src 'sha256-" in policy


@pytest.mark.parametrize(
    "name",
    ["</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "a' onmouseover='alert(1)", "<!--",
     "</title></style><svg onload=alert(1)>", "&lt;b&gt;"],
)  # fmt: skip
def test_a_hostile_name_stays_text_wherever_it_is_shown(name: str) -> None:
    clean = parsed(SUBJECT)
    run = replace(
        RUN, job=name, workload=name, board=name, release=name, power_mode=name, end_reason=name, policy=name,
        root=name, caps=(replace(RUN.caps[0], source=name),), notices=(Notice(1_001.0, name, name),),
        choices=(replace(RUN.choices[0], text=name, kind=name, reasons=name),),
    )  # fmt: skip
    lut, curve = replace(LUT, workload=name, board=name, measured_at=name), replace(CURVE, workload=name)
    hostile = parsed(replace(SUBJECT, run=run, lut=lut, curves=(curve,), source=name))
    assert name in hostile.text
    assert len(hostile.scripts) == len(clean.scripts) == 2
    assert {tag for tag, _ in hostile.tags} <= {tag for tag, _ in clean.tags}
    assert not any(attribute.startswith("on") for _, attributes in hostile.tags for attribute in attributes)


def test_characters_that_turn_the_writing_or_are_no_text_are_replaced() -> None:
    assert esc("a\u202eb\x00c\ud800d") == "a�b�c�d"


def test_a_day_with_every_list_full_makes_a_page_of_less_than_two_megabytes() -> None:
    spans = tuple(
        Span(60.0 * n, 60.0, 6000, 4 + n % 7 / 10, 3 - n % 5 / 10, 5 + n % 3 / 10, 4.5 + n % 4 / 10, 5 + n % 2,
             (300 + n % 9) * MHZ, (400 + n % 11) * MHZ, 8 if n % 3 else 32)
        for n in range(MOST_SPANS)
    )  # fmt: skip
    choices = tuple(Choice(n, 1_000.0 + n, "joint", "x" * 150, 8, 300 * MHZ, "why\n" * 200) for n in range(1, 501))
    notices = tuple(Notice(1_000.0 + n, "name", "y" * 200) for n in range(200))
    full = replace(SUBJECT, run=replace(RUN, spans=spans, choices=choices, notices=notices))
    assert len(page(full, "0.1.0").encode()) < 2_000_000


def test_what_was_not_read_is_said_to_be_so_and_never_shown_as_zero() -> None:
    nothing = replace(
        RUN, input_energy_j=None, spans=tuple(replace(span(n, None), low_hz=None, high_hz=None) for n in range(5)),
        points=(PointUse(8, 300 * MHZ, 60.0, 4000, 125, None, None),), choices=(), notices=(),
    )  # fmt: skip
    text = parsed(Subject(nothing, "x", wall=True)).text
    for part in ("no power sensor was read", "no clock was read", "its energy is not known", "not measured",
                 "There is no table of this workload", "No energy curve of this workload is known"):  # fmt: skip
        assert part in text, part
    assert not re.search(r"\b0\.0+ J|\b0\.00 W", text)
    assert "No timeline was kept" in parsed(Subject(replace(nothing, spans=()), "x", wall=True)).text


def test_the_table_marks_the_chosen_point_the_cap_and_what_was_not_measured() -> None:
    cells = [a["class"] or "" for tag, a in parsed(SUBJECT).tags if tag == "td" and a.get("class")]
    # From the top: batch 32 at 300 and 400 MHz, batch 8 at 300 and 400 MHz; the time's table, then the power's.
    assert cells[:4] == ["predicted capr", "measured over", "measured capr chosen", "infeasible over"]
    text = parsed(SUBJECT).text
    assert "~7.5" in text
    assert "10, chosen" in text


def test_every_chart_has_a_text_alternative_and_a_table_of_its_numbers() -> None:
    tags = parsed(SUBJECT).tags
    charts = [a for tag, a in tags if tag == "svg"]
    assert len(charts) == 4  # timeline and curve, each wide and narrow
    assert all(a["role"] == "img" and a["aria-label"] for a in charts)
    assert sum(tag == "summary" for tag, _ in tags) == 3  # numbers of the timeline, of the curve, and the reasons


def test_a_peak_of_one_reading_reaches_the_band_s_top_in_the_chart() -> None:
    quiet = parsed(SUBJECT)
    loud = parsed(replace(SUBJECT, run=replace(RUN, spans=(*RUN.spans[:-1], span(59, 4.0, 9.5)))))
    bands = [next(a["d"] or "" for tag, a in p.tags if a.get("class") == "envelope") for p in (quiet, loud)]
    tops = [min(float(v) for v in re.findall(r"V([\d.]+)", band)) for band in bands]
    assert tops[1] == pytest.approx(22 + 200 * 0.05 / 1.1, abs=0.2)  # 5 % of the range above the largest reading
    assert "9.50" in loud.text


def test_a_virtual_board_s_figures_are_called_simulated_and_an_old_recording_s_unknown() -> None:
    assert kind(SUBJECT) == "Measured on this board by its own sensors."
    virtual = replace(SUBJECT, run=replace(RUN, root="/tmp/nano/root"))
    assert kind(virtual).startswith("Simulated:")
    assert all(c.how.endswith("; simulated") for c in comparisons(virtual))
    assert "does not say" in kind(replace(SUBJECT, wall=False, told=False))


def test_savings_come_from_measurements_alone_and_say_from_which() -> None:
    rows = [
        SweepRow("digits", None, None, None, None, None, None, 20.0, None, 100.0),
        SweepRow("digits", None, None, None, None, None, 300 * MHZ, 25.0, None, 80.0),
    ]
    subject = replace(SUBJECT, sweep=rows, in_mode0={7: RUN.points[0]})
    by_sweep, by_run, by_table = comparisons(subject)
    assert (by_sweep.energy, by_sweep.time) == (pytest.approx(0.2), pytest.approx(-0.25))
    # 0.05 J a sample against 0.1 J, and half the samples to accuracy; 13.3 ms against 20 ms.
    assert (by_run.energy, by_run.time) == (pytest.approx(0.75), pytest.approx(1 - 0.5 * (40 / 3000) / (20 / 1000)))
    assert by_run.how == "measured: 1000 samples in mode 0 in run 7"
    # batch 8 at 300 MHz against batch 32 at 400 MHz: 0.5 × 40 J against 30 J; 0.5 × 10 s against 6 s.
    assert (by_table.energy, by_table.time) == (pytest.approx(1 - 20 / 30), pytest.approx(1 - 5 / 6))
    assert by_table.how == "estimated from the table of this workload"
    assert "25.0 % more time" in " ".join(summary(subject))
    assert comparisons(replace(subject, sweep=(), lut=None, relation=None)) == []  # batch sizes cannot be compared
    brief = replace(RUN.points[0], time_s=3.0)
    assert len(comparisons(replace(subject, in_mode0={7: brief}))) == 2


def test_ticks_are_round_and_few() -> None:
    assert ticks(0.0, 10.0, 5) == [0, 2.5, 5, 7.5, 10]
    assert ticks(3.1, 3.1, 5) == [3.1]
    assert time_ticks(7200, 3) == [(0.0, "0 h"), (3600.0, "1 h"), (7200.0, "2 h")]
    assert all(len(ticks(0.013, high, 6)) <= 6 for high in (0.02, 0.5, 7.0, 1234.5))


def test_a_path_has_a_gap_where_nothing_was_read() -> None:
    assert steps([(0, 1, 5.0), (1, 2, 5.0), (2, 3, None), (3, 4, 6.0)]) == "M0 5H2M3 6H4"
