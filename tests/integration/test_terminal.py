"""What people see of a running service: the live view on a real terminal, the history after a kill, the doctor."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import FAST, SCRIPT, Lab, kill, state_of, traingov, training, wait_for

CONFIG = {"cap": {"power_w": 4.5}, "profile": FAST, "metrics": {"listen": None}}
_ALTERNATE, _BACK = b"\x1b[?1049h", b"\x1b[?1049l"


class Screen:
    """`traingov status --watch` on a pseudo-terminal of its own."""

    def __init__(self, socket: Path, columns: int, **environment: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.data = b""
        self.process = subprocess.Popen(
            [SCRIPT, "status", "--watch", "--interval", "0.3", "--socket", str(socket)],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )  # fmt: skip

    def read(self) -> bytes:
        while select.select([self.master], [], [], 0)[0]:
            self.data += os.read(self.master, 65536)
        return self.data

    def shows(self, text: str, seconds: float = 15) -> None:
        try:
            wait_for(lambda: text.encode() in self.read(), seconds, f"the screen shows {text!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows {self.data[-600:]!r}") from None

    def ended(self) -> int:
        status = self.process.wait(10)
        self.read()
        return status

    def put_back(self) -> bool:
        """Whether the terminal is as it was: modes, main screen, cursor."""
        modes = termios.tcgetattr(self.slave) == self.before
        return modes and self.data.rfind(_BACK) > self.data.rfind(_ALTERNATE) and b"\x1b[?25h" in self.data


@contextmanager
def watched(socket: Path, columns: int = 80, **environment: str) -> Iterator[Screen]:
    screen = Screen(socket, columns, **environment)
    try:
        yield screen
    finally:
        if screen.process.poll() is None:
            screen.process.kill()
            screen.process.wait()
        os.close(screen.master)
        os.close(screen.slave)


@pytest.mark.parametrize("way", ["q", "Ctrl-C", "SIGTERM"])
def test_the_live_view_is_left_with_the_terminal_as_it_was(lab: Lab, way: str) -> None:
    service = lab.service(lab.board("nano", "a", 3), "a", CONFIG)
    with watched(service.socket) as screen:
        screen.shows("q quits")
        assert termios.tcgetattr(screen.slave) != screen.before
        if way == "q":
            os.write(screen.master, b"q")
        else:
            os.kill(screen.process.pid, signal.SIGINT if way == "Ctrl-C" else signal.SIGTERM)
        assert screen.ended() == (143 if way == "SIGTERM" else 0)
        assert screen.put_back(), screen.data[-200:]


def test_the_live_view_shows_the_job_and_goes_on_when_the_service_is_started_anew(lab: Lab) -> None:
    board = lab.board("nano", "a", 4)
    service = lab.service(board, "a", CONFIG)
    with watched(service.socket, columns=40, NO_COLOR="1") as screen:
        with training(service, [32], samples_total=100_000):
            screen.shows("100000")
            kill(service)
            screen.shows("no answer")
            screen.data = b""
            again = lab.service(board, "a", CONFIG)
            screen.shows("100000", 30)  # the job came back by itself, and so did the view
            assert b"no answer" not in screen.data[screen.data.rfind(b"100000") :]
        os.write(screen.master, b"q")
        assert screen.ended() == 0
    assert not [code for code in (b"\x1b[31m", b"\x1b[32m", b"\x1b[33m", b"\x1b[36m") if code in screen.data]
    lab.stop(again)


def test_a_dumb_terminal_gets_plain_lines(lab: Lab) -> None:
    service = lab.service(lab.board("nano", "a", 5), "a", CONFIG)
    with watched(service.socket, TERM="dumb") as screen:
        screen.shows("idle: —, cap 4.5 W over 1 s")
        os.write(screen.master, b"q")
        assert screen.ended() == 0
        assert b"\x1b" not in screen.data


def test_a_run_cut_by_a_kill_is_closed_at_the_next_start_and_the_history_is_read_without_a_service(lab: Lab) -> None:
    board = lab.board("nano", "a", 6)
    service = lab.service(board, "a", CONFIG)
    where = ("--state-dir", str(service.state_dir))

    def history() -> list[dict[str, object]]:
        done = traingov("history", "--json", *where)
        found = json.loads(done.stdout) if done.returncode == 0 else []
        assert isinstance(found, list)
        return found

    with training(service, [8, 32], samples_total=100_000):
        wait_for(lambda: [run for run in history() if run["steps"]], 30, "the run's progress is kept while it runs")
        kill(service)
        (run,) = history()
        assert run["end_reason"] is None
        again = lab.service(board, "a", CONFIG)
        wait_for(lambda: len(history()) == 2, 30, "the job registers again")
        assert history()[1]["end_reason"] == "cut short"
        wait_for(lambda: state_of(again) == "joint", 60, "profiling ends")
    wait_for(lambda: history()[0]["end_reason"] == "end", 10, "its end is kept")
    lab.stop(again)
    assert sorted(path.name for path in service.state_dir.glob("history*")) == ["history.sqlite"]
    newest = history()[0]
    points = newest["points"]
    assert isinstance(points, list)
    assert newest["samples"] == sum(point["samples"] for point in points)
    energy = sum(point["input_energy_j"] or 0 for point in points)
    assert energy == pytest.approx(newest["input_energy_j"], rel=1e-6)
    assert "joint" in traingov("history", "digits-mlp", *where).stdout


def test_the_doctor_finds_no_problem_on_a_virtual_board_with_its_service(lab: Lab) -> None:
    service = lab.service(lab.board("agx-orin", "a", 7), "a", CONFIG)
    config = service.log.with_name("traingov.yaml")
    done = traingov("doctor", "--config", str(config), "--json")
    answer = json.loads(done.stdout)
    found = {finding["check"]: finding for finding in answer["findings"]}
    assert (done.returncode, answer["counts"]["problem"]) == (0, 0), answer
    assert found["board"]["text"].startswith("NVIDIA Jetson AGX Orin")
    assert "input power = VDD_GPU_SOC + VDD_CPU_CV + VIN_SYS_5V0" in found["rails"]["text"]
    assert found["service"]["text"].startswith("answers; joint, idle")
    lab.stop(service)
    assert traingov("doctor", "--config", str(config)).returncode == 1


def test_explain_answers_in_wall_time_and_refuses_a_job_that_it_does_not_know(lab: Lab) -> None:
    service = lab.service(lab.board("nano", "a", 8), "a", CONFIG)
    assert "no job has registered yet" in traingov("explain", "nope", "--socket", str(service.socket)).stderr
    began = time.time()
    with training(service, [32]):
        wait_for(lambda: service.ask("explain"), 20, "something is decided")
        done = traingov("explain", "nope", "--socket", str(service.socket))
        assert (done.returncode, "there are digits-mlp" in done.stderr) == (2, True)
        first = traingov("explain", "--log", "--socket", str(service.socket)).stdout.split()[0]
    hours, minutes, seconds = map(int, first.split(":"))
    local = time.localtime(began)
    late = (hours * 3600 + minutes * 60 + seconds - local.tm_hour * 3600 - local.tm_min * 60 - local.tm_sec) % 86_400
    assert late < 60
