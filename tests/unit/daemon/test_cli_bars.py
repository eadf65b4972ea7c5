"""Progress of long work: a bar on a terminal's standard error, and nothing in a pipe."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from traingov.cli import bars
from traingov.cli.bars import progress_bar
from traingov_policies.fitting import grid_search
from traingov_policies.fitting.data import Dataset


def with_console(monkeypatch: pytest.MonkeyPatch, **options: object) -> io.StringIO:
    out = io.StringIO()
    monkeypatch.setattr(bars, "Console", lambda **_: Console(file=out, width=80, **options))  # type: ignore[arg-type]
    return out


def test_nothing_is_drawn_where_standard_error_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = with_console(monkeypatch, force_terminal=False)
    with progress_bar() as told:
        assert told is None
    assert out.getvalue() == ""


def test_a_terminal_gets_a_bar_with_counts_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = with_console(monkeypatch, force_terminal=True)
    with progress_bar() as told:
        assert told is not None
        told(3, 12, "measuring 510 MHz")
    assert "3 of 12" in out.getvalue()
    assert "measuring 510 MHz" in out.getvalue()


def test_a_dumb_terminal_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with_console(monkeypatch, force_terminal=True)
    with progress_bar() as told:
        assert told is None


@pytest.mark.parametrize("nested", [False, True])
def test_the_fit_counts_every_setting_it_tries_and_chooses_as_without_counting(nested: bool) -> None:
    generator = np.random.default_rng(3)
    cost = generator.random((6, 3)) + 0.01
    cost -= cost.min(axis=1, keepdims=True)
    names = tuple("abcdef")
    data = Dataset(
        workloads=names, groups=names, columns=("layers",), clocks_hz=(100, 200, 300),
        x=generator.random((6, 1)), cost=cost, saving=np.full((6, 3), np.nan),
    )  # fmt: skip
    seen: list[tuple[int, int]] = []
    fitted = grid_search(data, cost_sensitive=True, nested=nested, told=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, seen[-1][1] + 1))
    assert {total for _, total in seen} == {seen[-1][0]}
    again = grid_search(data, cost_sensitive=True, nested=nested)
    assert (fitted.settings, fitted.choices, fitted.nested) == (again.settings, again.choices, again.nested)
