"""Failures that public reports tell of other tools and that no other test here plays: times of a log, exit statuses."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from traingov.data import data_dir
from traingov.replay.log import samples
from traingov.telemetry.rails import RailTable
from traingov.telemetry.samples import Sampler

LINE = "RAM 1018/3956MB (lfb 302x4MB) CPU [12%@918] EMC_FREQ 4%@1600 GR3D_FREQ 7%@76 POM_5V_IN 1718/1690"


def times(stamps: list[str]) -> list[float]:
    sampler = Sampler(RailTable.load(data_dir() / "boards"), "nano", lambda rule, unknown: None)
    return [sample.t_s for sample in samples([f"{stamp} {LINE}".strip() for stamp in stamps], sampler, 0.1) if sample]


def test_lines_with_one_printed_second_are_spread_and_keep_their_order() -> None:
    found = times(["01-01-2025 08:00:00"] * 5)
    assert found == sorted(set(found))
    assert found[-1] - found[0] == pytest.approx(0.4)


def test_a_clock_that_jumps_back_inside_a_log_turns_no_time_back() -> None:
    found = times(["01-01-2025 08:00:05", "01-01-2025 08:00:06", "01-01-1970 00:00:01", "01-01-1970 00:00:02"])
    assert found == sorted(set(found))
    assert found[-1] - found[0] < 5


def service(tmp_path: Path, break_it: str) -> subprocess.CompletedProcess[str]:
    config = tmp_path / "traingov.yaml"
    config.write_text(
        f"root: {tmp_path}\nstate_dir: {tmp_path}/state\nsocket: {tmp_path}/s\ntegrastats: no-such-tegrastats\n"
        "metrics: {listen: null}\n"
    )
    code = f"import sys, traingov.service as service\n{break_it}\nsys.exit(service.main(['--config', {str(config)!r}]))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("error", ["KeyError('mode')", "OSError(5, 'no')"])
def test_a_defect_ends_the_service_with_a_status_that_systemd_restarts_on(tmp_path: Path, error: str) -> None:
    broken = f"async def broken(*a, **k):\n    raise {error}\nservice._serve = broken"
    assert service(tmp_path, broken).returncode == 1


def test_a_root_that_is_not_there_is_one_line_that_names_it_and_what_to_start(tmp_path: Path) -> None:
    config = tmp_path / "traingov.yaml"
    config.write_text(f"root: {tmp_path}/absent\nstate_dir: {tmp_path}/state\nsocket: {tmp_path}/s\n")
    done = subprocess.run(
        [sys.executable, "-m", "traingov.service", "--config", str(config)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(f"traingovd: root: there is no folder {tmp_path}/absent: start the virtual board")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["traingov.yaml"]


@pytest.fixture
def bare_board(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The service on a board without a GPU node, power monitor, power mode, release file or tegrastats."""
    config = tmp_path / "traingov.yaml"
    (tmp_path / "nothing").mkdir()
    config.write_text(
        f"root: {tmp_path}/nothing\nstate_dir: {tmp_path}/state\nsocket: {tmp_path}/s\n"
        "tegrastats: no-such-tegrastats\nmetrics: {listen: null}\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "traingov.service", "--config", str(config)], stderr=subprocess.PIPE, text=True
    )
    yield process
    process.terminate()
    process.communicate(timeout=20)


def test_no_missing_file_of_a_board_stops_the_service(bare_board: subprocess.Popen[str], tmp_path: Path) -> None:
    assert bare_board.stderr is not None
    said = []
    for line in bare_board.stderr:
        said.append(line)
        if "looked for again" in line:
            break
    assert any("GPU not found: it is looked for again when a job registers" in line for line in said), said
    assert any("telemetry: tegrastats: there is no program no-such-tegrastats" in line for line in said), said
    assert stat.S_ISSOCK(os.stat(tmp_path / "s").st_mode)
    assert bare_board.poll() is None
    bare_board.terminate()
    assert bare_board.wait(20) == 0
