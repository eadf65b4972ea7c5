"""`traingov profile --energy` against a service that is made up here."""

import json
import sys

import pytest

from command_line import traingov as run
from traingov.cli import profile
from traingov_policies.sweep import from_csv

CLOCKS = [510_000_000, 714_000_000, 1_300_500_000]


def row(hz, joules):
    return {
        **{"workload": "bert/rte", "model_type": "bert", "layers": 4, "hidden_size": 512, "seq_len_avg": 66.0},
        **{"gpu_utilization": 20.0, "gpu_frequency_hz": hz, "time_s": 10.0},
        **{"compute_energy_j": joules, "input_energy_j": None},
    }


class Service:
    """Answers the socket's methods; the sweep is done at the second look."""

    def __init__(self, state="finished"):
        self.asked = []
        self.looks = 0
        self.state = state

    def call(self, path, method, params=None):
        self.asked.append((method, params or {}))
        if method == "status":
            return {"clocks_hz": CLOCKS}
        self.looks += method == "profile.get"
        over = self.looks > 1 or method == "profile.stop"
        state = self.state if over else "running"
        rows = [row(None, 100.0), row(CLOCKS[0], 80.0), row(CLOCKS[1], 90.0)] if over else []
        return {"sweep": {"workload": "bert/rte", "state": state, "text": f"sweep is {state}"}, "rows": rows}


@pytest.fixture
def service(monkeypatch):
    made = Service()
    monkeypatch.setattr(profile, "call", made.call)
    monkeypatch.setattr(profile, "_POLL_S", 0.0)
    return made


def test_rows_are_written_and_printed_once_the_sweep_is_done(service, tmp_path):
    out = tmp_path / "s.csv"
    result = run("profile", "--energy", "--duration", "5", "--out", str(out))
    assert result.exit_code == 0, result.stderr
    assert "510 MHz: 10.00 s, 80.0 J compute (+20.0 % saved)" in result.stdout
    assert "sweep is running" in result.stderr
    assert [r.gpu_frequency_hz for r in from_csv(out.read_text())] == [None, *CLOCKS[:2]]
    assert ("profile.start", {"duration_s": 5.0, "fresh": False}) in service.asked


def test_clocks_are_steps_of_the_boards_table(service):
    assert run("profile", "--energy", "--clocks", "1300,510", "--steps", "30", "--json").exit_code == 0
    (params,) = [p for method, p in service.asked if method == "profile.start"]
    assert params == {"clocks_hz": [CLOCKS[0], CLOCKS[2]], "steps": 30, "fresh": False}


def test_without_waiting_the_answer_is_what_the_service_said_first(service):
    answer = json.loads(run("profile", "--energy", "--no-wait", "--json").stdout)
    assert answer["sweep"]["state"] == "running"
    assert service.looks == 0


def test_a_sweep_that_was_stopped_is_a_failure_and_its_rows_are_shown(service):
    service.state = "stopped"
    result = run("profile", "--energy")
    assert result.exit_code == 1
    assert "sweep is stopped" in result.stderr
    assert "510 MHz" in result.stdout


def test_a_sweep_can_be_ended(service):
    assert run("profile", "--stop").exit_code == 0
    assert [method for method, _ in service.asked] == ["profile.stop"]


def test_the_curve_is_drawn_as_png_and_from_a_file_without_a_service(service, tmp_path):
    pytest.importorskip("matplotlib")
    source, png, svg = tmp_path / "s.csv", tmp_path / "u.png", tmp_path / "u.svg"
    assert run("profile", "--energy", "--out", str(source), "--plot", str(png)).exit_code == 0
    assert png.read_bytes().startswith(b"\x89PNG")
    service.asked.clear()
    assert run("profile", "--from", str(source), "--plot", str(svg)).exit_code == 0
    assert b"<svg" in svg.read_bytes()
    assert service.asked == []


def test_without_matplotlib_a_plot_is_refused_with_what_to_install(service, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("profile", "--energy", "--plot", str(tmp_path / "u.png"))
    assert result.exit_code == 1
    assert "pip install 'traingov[plots]'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "say what to profile"),
        (["--energy", "--duration", "5", "--steps", "9"], "give one of them"),
        (["--energy", "--clocks", "510,x"], "'x' is not a number of MHz"),
        (["--energy", "--clocks", "600"], "600 MHz is not in the board's table"),
        (["--energy", "--no-wait", "--out", "s.csv"], "--no-wait"),
        (["--from", "none.csv"], "none.csv: cannot be read"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(service, arguments, what):
    result = run("profile", *arguments)
    assert result.exit_code == 2
    assert what in result.stderr
    assert result.stderr.count("\n") == 1
