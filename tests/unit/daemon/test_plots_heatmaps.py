"""Heat maps: drawn in each format, with cap line and choice where they belong; one line where matplotlib is absent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import traingov as run
from traingov.plots import heatmaps
from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.robust import choose

LUT = Lut(
    "nano", "w", 64, (8, 16), (100_000_000, 200_000_000, 300_000_000), ((40.0, 20.0, None), (30.0, 15.0, 9.0)),
    ((2.0, 3.0, 4.5), (3.0, 4.0, 5.0)), ((1.5, 2.5, None), (2.5, 3.5, 4.5)),
    origin=(("measured", "predicted", "infeasible"), ("measured", "measured", "failed")),
)  # fmt: skip
RELATION = RelationVector("w", (8, 16), (0.5, 1.0))


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    lut, relation = tmp_path / "l.json", tmp_path / "r.json"
    lut.write_text(json.dumps(LUT.to_json()))
    relation.write_text(json.dumps(RELATION.to_json()))
    return str(lut), str(relation)


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_a_table_is_drawn_in_each_format(tmp_path: Path, files: tuple[str, str], suffix: str, start: bytes) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: plots are an optional extra")
    out = tmp_path / f"plot{suffix}"
    arguments = ["lut", "plot", files[0], "-o", str(out), "--relation", files[1], "--cap", "4.2"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(start)


def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lut: Lut = LUT, **more: object):
    """The matplotlib figure that ``draw_lut`` makes."""
    figure_module = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    figures = []

    def keep(self: object, *args: object, **kwargs: object) -> None:
        figures.append(self)

    monkeypatch.setattr(figure_module.Figure, "savefig", keep)
    heatmaps.draw_lut(lut, tmp_path / "x.png", **more)  # type: ignore[arg-type]
    return figures[0]


def test_every_panel_has_its_unit_numbers_cap_line_and_the_chosen_frame(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    choice = choose(LUT, RELATION, 4.2, measured_only=True)
    figure = drawn(monkeypatch, tmp_path, relation=RELATION, cap_w=4.2, choice=choice)
    panels = [axis for axis in figure.axes if axis.get_title()]
    assert [axis.get_title() for axis in panels] == [
        "time for 64 samples, s", "peak power, W", "mean power, W", "time to accuracy T·r, s (relative)",
    ]  # fmt: skip
    for axis in panels:
        assert axis.get_xlabel() == "GPU clock, MHz"
        assert axis.get_ylabel() == "batch size"
        assert [t.get_text() for t in axis.get_xticklabels()] == ["100", "200", "300"]
        colors = [line.get_color() for line in axis.lines]
        # 2.0 3.0 | 4.5 over 3.0 4.0 | 5.0: one edge per row, each drawn with its white border.
        assert colors.count("#d62728") == 2
        assert colors.count("black") == 1
    peaks = {text.get_text() for text in panels[1].texts}
    assert {"2.00", "3.00", "4.00", "5.00", ">4.50"} <= peaks
    assert {"20.0", "15.0", "9.00", "10.0"} <= {text.get_text() for text in panels[3].texts}
    assert "^" in {text.get_text() for text in panels[0].texts}
    assert str(choice.chosen.point) in figure._suptitle.get_text()


def test_a_table_of_one_value_or_of_none_is_drawn_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Lut("nano", "w", 64, (8,), (1_000_000,), ((2.0,),), ((3.0,),), ((2.5,),))
    assert len(drawn(monkeypatch, tmp_path, one, cap_w=5.0).axes) >= 3
    assert drawn(monkeypatch, tmp_path, Lut.empty("nano", "w", 64, (8, 16), (1, 2))).axes


@given(st.lists(st.lists(st.sampled_from([None, 1.0, 3.0]), min_size=3, max_size=3), min_size=1, max_size=3))
def test_the_cap_line_separates_exactly_the_known_neighbours_that_differ(rows: list[list[float | None]]) -> None:
    grid = tuple(tuple(row) for row in rows)
    lut = Lut("nano", "w", 64, tuple(range(1, len(rows) + 1)), (1, 2, 3), grid, grid, grid)
    edges = set()
    for i in range(len(rows)):
        for j in range(3):
            for di, dj in ((0, 1), (1, 0)):
                if i + di < len(rows) and j + dj < 3:
                    pair = {grid[i][j], grid[i + di][j + dj]}
                    if pair == {1.0, 3.0}:
                        edges.add((j + dj / 2, i + di / 2))
    middles = {(sum(xs) / 2, sum(ys) / 2) for xs, ys in heatmaps._cap_lines(lut, 2.0)}
    assert middles == edges


def test_without_matplotlib_one_line_says_what_to_install(tmp_path: Path, files: tuple[str, str]) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; from traingov.cli.main import main; "
        f"sys.argv = ['traingov', 'lut', 'plot', {files[0]!r}, '-o', {str(tmp_path / 'x.png')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "traingov[plots]" in done.stderr


def test_another_kind_of_picture_is_refused_before_anything_is_drawn(tmp_path: Path, files: tuple[str, str]) -> None:
    result = run("lut", "plot", files[0], "-o", str(tmp_path / "x.gif"))
    assert (result.exit_code, ".png, .svg or .pdf" in result.stderr) == (2, True)
    assert not (tmp_path / "x.gif").exists()
