"""Which source is taken: by what is there, with the reason, and never another board's readings."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from types import ModuleType

import pytest

from traingov.config import ConfigError, load_config
from traingov.data import data_dir
from traingov.telemetry import choose as module
from traingov.telemetry.choose import SOURCES, at_pace_of, choose, open_source, survey
from traingov.telemetry.polled import PolledSource
from traingov.telemetry.rails import RailTable
from traingov.telemetry.reading import Reading
from traingov.telemetry.source import TegrastatsSource
from traingov_policies.settings import Settings


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A root with one INA3221."""
    folder = tmp_path / "sys/class/hwmon/hwmon3"
    folder.mkdir(parents=True)
    for name, text in {"name": "ina3221", "in1_label": "VDD_IN", "in1_input": "5000", "curr1_input": "1400"}.items():
        (folder / name).write_text(f"{text}\n")
    return tmp_path


def tool(folder: Path) -> str:
    path = folder / "tegrastats"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_tegrastats_comes_first_where_it_is(board: Path) -> None:
    found = choose("auto", str(board), [tool(board)])
    assert (found.name, found.usable) == ("tegrastats", True)
    assert found.why == f"{board}/tegrastats is there"


def test_without_tegrastats_the_kernels_files_serve_and_the_reason_is_given(board: Path) -> None:
    found = choose("auto", str(board), ["no-such-tegrastats"])
    assert (found.name, found.usable) == ("sysfs", True)
    assert found.why == "rails VDD_IN; not tegrastats: there is no program no-such-tegrastats"


def test_with_nothing_at_all_it_is_tegrastats_tried_again_and_the_reasons_of_all(tmp_path: Path) -> None:
    found = choose("auto", str(tmp_path), ["no-such-tegrastats"])
    assert (found.name, found.usable) == ("tegrastats", False)
    assert found.why.startswith("there is no program no-such-tegrastats; sysfs: ")  # the name stands before it
    for name in SOURCES[1:]:
        assert f"; {name}: " in found.why


def test_a_configured_source_is_taken_although_it_cannot_be_used_yet(tmp_path: Path) -> None:
    found = choose("sysfs", str(tmp_path), ["no-such-tegrastats"])
    assert (found.name, found.usable) == ("sysfs", False)
    assert found.why.startswith("configured; no INA3221")


def test_a_board_below_a_folder_is_never_read_through_this_machines_services(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", ModuleType("pynvml"))  # would fail if it were asked
    answers = {candidate.name: candidate for candidate in survey(str(board), ["no-such-tegrastats"])}
    for name in ("jtop", "nvml"):
        assert not answers[name].usable
        assert answers[name].why == f"it would show this machine, not the board below {board}"


def test_the_survey_names_every_source_with_a_reason(board: Path) -> None:
    answers = survey(str(board), [tool(board)])
    assert [candidate.name for candidate in answers] == list(SOURCES)
    assert [candidate.usable for candidate in answers] == [True, True, False, False]
    assert all(candidate.why and "\n" not in candidate.why for candidate in answers)


def test_jtop_is_usable_where_its_package_and_its_socket_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "SOCKET", str(tmp_path / "jtop.sock"))
    assert "no " in module._jtop("/").why
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "jtop.sock"))
        assert module._jtop("/").usable
        monkeypatch.setattr(os, "access", lambda *arguments: False)
        assert "group jtop" in module._jtop("/").why


def test_each_name_opens_its_source(board: Path) -> None:
    for name in SOURCES:
        source = open_source(name, str(board), ["tegrastats"], lambda t, r: None, lambda s, x: None)
        assert isinstance(source, TegrastatsSource if name == "tegrastats" else PolledSource)


def test_the_sysfs_source_gives_the_boards_readings(board: Path) -> None:
    async def work() -> list[Reading]:
        readings: list[Reading] = []
        source = open_source("sysfs", str(board), [], lambda t, r: readings.append(r), lambda s, x: None)
        source.set_interval(0.01)
        source.start()
        while not readings:
            await asyncio.sleep(0.005)
        source.stop()
        assert await source.wait_stopped()
        return readings

    assert asyncio.run(asyncio.wait_for(work(), 10))[0].rails_w == {"VDD_IN": 7.0}


def test_a_slow_source_is_not_called_stale_between_its_readings(tmp_path: Path) -> None:
    settings = load_config([]).settings(RailTable.load(data_dir() / "boards").rule_for(()))
    slow = at_pace_of("jtop", settings)
    assert (slow.sampling_interval_s, slow.stale_after_s) == (0.5, 2.0)
    assert at_pace_of("tegrastats", settings) == settings
    assert isinstance(slow, Settings)


def test_an_unknown_source_is_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("policy: observe\ntelemetry: guess\n")
    with pytest.raises(ConfigError, match=r"t\.yaml:2: telemetry: 'guess' is not one of"):
        load_config([file])
