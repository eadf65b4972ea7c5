"""`traingov status`: what it says, on wide and narrow terminals, without colour, in a pipe, and without a service."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from command_line import traingov
from traingov.cli import remote as remote_module
from traingov.cli import status as status_module
from traingov.cli.errors import Failure
from traingov.cli.status import screen
from traingov.cli.status_view import bar, line, rows, sparkline

JOB: dict[str, Any] = {
    "job": "digits", "workload": "digits", "batch_size": 32, "steps": 100, "samples": 3200, "samples_total": 12800,
    "samples_per_s": 160.0, "remaining_s": 60.0, "elapsed_s": 75.0, "input_energy_j": 300.0,
    "compute_energy_j": None, "above_cap_s": 0.4, "shared": False, "idle_s": 0.0, "saved": None,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "at": "2026-01-31T12:00:00Z", "board": "Jetson Nano", "release": "R32.7.4", "power_mode": "MAXN",
    "gpu_node": "/sys/devices/57000000.gpu/devfreq/57000000.gpu", "telemetry": {"state": "running", "text": "reads"},
    "input_power_w": 4.1, "compute_power_w": 2.0, "cap_w": 5.0, "cap_window_s": 1.0, "gpu_frequency_hz": 460_800_000,
    "gpu_utilization": 0.82, "gpu_target_hz": 460_800_000, "policy": "joint", "objective": "time", "state": "joint",
    "doing": "joint: batch 32 at 461 MHz", "decision": "least time of 2 candidates", "jobs": [JOB], "conditions": {},
}  # fmt: skip


def text_of(status: dict[str, Any]) -> dict[str, str]:
    return {row.label: row.text for row in rows(status)}


def shown(width: int, *, status: dict[str, Any] = STATUS, encoding: str = "utf-8", trouble: str | None = None,
          **options: Any) -> str:  # fmt: skip
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, height=30, force_terminal=True, legacy_windows=False, **options)
    console.print(screen(status, [3.0, None, 4.1, 4.9], trouble, console))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_progress_speed_energy_and_time_left_are_told() -> None:
    said = text_of(STATUS)
    assert said["job"] == "digits: batch 32, 3200 of 12800 samples (25 %), 160/s, 1 min left, in 100 steps"
    assert said["energy"] == "300.0 J input, not measured compute in 1 min 15 s, 0.4 s above the cap"
    assert said["power"] == "4.10 W input, 2.00 W compute; cap 5 W over 1 s"
    assert said["state"] == "joint: batch 32 at 461 MHz"
    assert said["why"] == "least time of 2 candidates"


def test_what_is_saved_is_never_invented_and_an_estimate_is_called_one() -> None:
    assert text_of(STATUS)["saved"].startswith("not known")
    measured = {"energy": 0.123, "time": -0.05, "power": "compute", "source": "sweep", "against": "mode 0"}
    said = text_of({**STATUS, "jobs": [{**JOB, "saved": measured}]})["saved"]
    assert said == "+12.3 % compute energy, -5.0 % time against mode 0 (measured by its energy sweep)"
    table = {**measured, "source": "table", "against": "batch 32 at 922 MHz, the highest clock"}
    assert "(estimated from its table)" in text_of({**STATUS, "jobs": [{**JOB, "saved": table}]})["saved"]


def test_missing_readings_are_dashes_and_an_unknown_length_has_no_percentage() -> None:
    missing = {"input_power_w": None, "compute_power_w": None, "gpu_frequency_hz": None, "gpu_utilization": None}
    job = {**JOB, "samples_total": None, "samples_per_s": None, "remaining_s": None}
    said = text_of({**STATUS, **missing, "cap_w": None, "jobs": [job]})
    assert said["power"] == "— input, — compute; cap none"
    assert said["job"] == "digits: batch 32, 3200 samples, in 100 steps"


def test_what_holds_the_clock_below_its_target_is_told() -> None:
    assert text_of(STATUS)["clock"] == "460.8 MHz, 82 % busy, target 460.8 MHz"
    held = {"gpu_frequency_hz": 307_200_000, "gpu_limit_hz": 307_200_000, "gpu_held_by": "the guard"}
    assert text_of({**STATUS, **held})["clock"] == (
        "307.2 MHz, 82 % busy, target 460.8 MHz, held at 307.2 MHz by the guard"
    )
    assert text_of({**STATUS, "gpu_held_by": None})["clock"] == text_of(STATUS)["clock"]


def test_telemetry_that_waits_for_a_job_is_idle_and_no_trouble() -> None:
    stopped = {"telemetry": {"state": "stopped", "text": "sampling is off"}}
    assert text_of({**STATUS, **stopped, "jobs": []})["telemetry"] == "idle: sampling starts with a job"
    assert text_of({**STATUS, **stopped})["telemetry"] == "stopped: sampling is off"


def test_the_bar_ends_at_the_cap_and_marks_what_is_above() -> None:
    assert bar(2.5, 5.0, 8) == "████░░░░"
    assert bar(6.0, 5.0, 4) == "████▶"
    assert bar(2.5, 5.0, 4, ascii_only=True) == "##--"


def test_the_sparkline_leaves_a_gap_where_a_reading_is_missing() -> None:
    assert sparkline([0.0, None, 5.0], 5.0) == "▁ █"
    assert sparkline([1.0], 0.0) == " "


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_every_line_fits_the_terminal(width: int) -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown(width))
    assert max(len(part) for part in plain.splitlines()) <= width
    assert "digits" in plain
    assert "q quits" in plain or width < 40


def test_without_colour_nothing_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown(80))
    monkeypatch.delenv("NO_COLOR")
    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", shown(80, color_system="standard"))


def test_a_terminal_without_unicode_gets_ascii_bars() -> None:
    status = {**STATUS, "jobs": [], "decision": None}
    assert "#" * 10 in shown(80, status=status, encoding="ascii")


def test_a_lost_service_is_told_over_the_last_status() -> None:
    said = shown(80, trouble="since 12:00:01: nobody listens; trying again")
    assert "no answer" in said
    assert "digits" in said


def test_conditions_are_shown() -> None:
    assert text_of({**STATUS, "conditions": {"cap-infeasible": "nothing is below it"}})["condition"] == (
        "cap-infeasible: nothing is below it"
    )
    assert line({**STATUS, "conditions": {"x": "y"}}).endswith("; x!")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the service answers, one after another; an exception is raised. After the last one, Ctrl-C."""
    given: list[Any] = []

    def call(path: Path, method: str, params: Any = None) -> Any:
        if not given:
            raise KeyboardInterrupt
        answer = given.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(status_module, "call", call)
    monkeypatch.setattr(remote_module, "call", call)
    return given


def test_watching_through_a_pipe_gives_plain_lines_and_goes_on_while_the_service_starts_anew(
    answers: list[Any],
) -> None:
    answers += [STATUS, Failure("nobody listens"), Failure("nobody listens"), {**STATUS, "state": "idle"}]
    result = traingov("status", "--watch", "--interval", "0.2")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert "4.10 W, cap 5 W over 1 s; 460.8 MHz; digits batch 32, 3200 of 12800 samples" in lines[0]
    assert result.stderr.count("nobody listens; trying again") == 1


def test_watching_with_json_gives_an_object_a_line(answers: list[Any]) -> None:
    answers += [STATUS, STATUS]
    result = traingov("status", "--watch", "--json", "--interval", "0.2")
    assert [json.loads(text)["board"] for text in result.stdout.splitlines()] == ["Jetson Nano"] * 2


def test_watching_without_a_service_ends_with_one_line(tmp_path: Path) -> None:
    result = traingov("status", "--watch", "--socket", str(tmp_path / "none.sock"))
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)


def test_a_service_of_another_version_is_told_in_one_line(answers: list[Any]) -> None:
    answers += [{name: value for name, value in STATUS.items() if name != "decision"}]
    result = traingov("status")
    assert (result.exit_code, result.stderr) == (
        1, "traingov: the service does not tell 'decision': it is of another version; restart it\n",
    )  # fmt: skip


def test_jobs_says_so_where_there_are_none(answers: list[Any]) -> None:
    answers += [{"running": [], "ended": []}]
    assert "no job has registered since the service started" in traingov("jobs").stdout
