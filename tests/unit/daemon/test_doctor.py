"""`traingov doctor`: each look on boards and machines that are well, limited, or broken."""

from __future__ import annotations

import json
import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import traingov
from traingov.cli.errors import Failure
from traingov.device.files import SystemFiles
from traingov.doctor import access, board, sensors, software
from traingov.doctor.access import User
from traingov.doctor.finding import ATTENTION, OK, PROBLEM, UNSEEN, Finding
from traingov.metrics.access import MetricsOptions

GOLDEN = Path(__file__).parents[2] / "golden" / "tegrastats"
LINE = (
    "RAM 1500/3964MB (lfb 1x1MB) CPU [10%@1479,5%@1479] GR3D_FREQ 80%@921 GPU@40C "
    "POM_5V_IN 4100/4100 POM_5V_GPU 1200/1200 POM_5V_CPU 800/800"
)


def files(root: Path, **extra: str) -> SystemFiles:
    """A recorded Nano's files; ``extra`` by path with __ for /."""
    node = "sys/class/devfreq/57000000.gpu"
    texts = {
        "proc/device-tree/model": "NVIDIA Jetson Nano Developer Kit\0",
        "proc/device-tree/compatible": "nvidia,p3450-0000\0nvidia,tegra210\0",
        "etc/nv_tegra_release": "# R32 (release), REVISION: 7.4, GCID: 1, BOARD: t210ref, EABI: aarch64\n",
        "var/lib/nvpmodel/status": "pmode:0000",
        "etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\n# < POWER_MODEL ID=9 NAME=OLD >\n"
        "< POWER_MODEL ID=1 NAME=5W >\n",
        f"{node}/min_freq": "76800000\n", f"{node}/max_freq": "921600000\n", f"{node}/governor": "nvhost_podgov\n",
        f"{node}/available_frequencies": "76800000 921600000\n",
        **{path.replace("__", "/"): text for path, text in extra.items()},
    }  # fmt: skip
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return SystemFiles(str(root))


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


def test_a_board_that_is_well_is_told_with_release_modes_clocks_and_bounds(tmp_path: Path) -> None:
    found = by_check(board.look(files(tmp_path)))
    assert found["board"].text == "NVIDIA Jetson Nano Developer Kit (nvidia,p3450-0000)"
    assert found["release"].text == "L4T R32.7.4"
    assert found["power mode"].text == "MAXN (2 modes: MAXN, 5W)"
    assert "2 clocks, 76.8 to 921.6 MHz" in found["GPU clock"].text
    assert found["clock's bounds"].text == "76.8 to 921.6 MHz, nvhost_podgov"
    assert {name for name, f in found.items() if f.state == OK} == set(found) - {"over-current"}


def test_a_machine_that_is_no_jetson_is_told_what_could_not_be_seen_and_why(tmp_path: Path) -> None:
    found = by_check(board.look(SystemFiles(str(tmp_path))))
    assert found["board"].state == ATTENTION
    assert "give --config of a virtual board" in found["board"].advice
    assert found["GPU clock"].state == PROBLEM
    assert (found["power mode"].state, found["over-current"].state) == (UNSEEN, UNSEEN)


def test_pinned_bounds_are_called_what_they_may_be(tmp_path: Path) -> None:
    extra = {"sys__class__devfreq__57000000.gpu__min_freq": "921600000\n"}
    finding = by_check(board.look(files(tmp_path, **extra)))["clock's bounds"]
    assert (finding.state, "pinned to 921.6 MHz" in finding.text) == (ATTENTION, True)
    assert "jetson_clocks --restore" in finding.advice
    ours = by_check(board.look(SystemFiles(str(tmp_path)), governed=True))["clock's bounds"]
    assert (ours.state, ours.text) == (OK, "pinned to 921.6 MHz, for the running job")


def test_over_current_events_ask_for_attention_and_none_do_not(tmp_path: Path) -> None:
    oc = "sys__class__hwmon__hwmon1__"
    quiet = files(tmp_path / "a", **{f"{oc}oc1_event_cnt": "0\n", f"{oc}oc3_event_cnt": "0\n"})
    assert by_check(board.look(quiet))["over-current"].state == OK
    loud = files(tmp_path / "b", **{f"{oc}oc1_event_cnt": "0\n", f"{oc}oc3_event_cnt": "27390\n"})
    finding = by_check(board.look(loud))["over-current"]
    assert finding.state == ATTENTION
    assert "under-voltage 0, instantaneous over-current 27390" in finding.text


def printer(tmp_path: Path, program: str) -> list[str]:
    path = tmp_path / "tegrastats"
    path.write_text(f"#!{sys.executable}\n{program}\n")
    path.chmod(0o755)
    return [str(path)]


def test_a_real_line_is_read_and_its_rails_and_their_rule_are_told(tmp_path: Path) -> None:
    command = printer(tmp_path, f"import time\nprint({LINE!r}, flush=True)\ntime.sleep(60)")
    found = by_check(sensors.look(files(tmp_path / "root"), command, "auto"))
    assert found["telemetry"].state == OK
    assert "a line was read: 3 rails, GPU load 80 %" in found["tegrastats"].text
    assert "POM_5V_IN 4.10 W" in found["rails"].text
    assert "input power = POM_5V_IN" in found["rails"].text


def test_a_line_without_rails_says_that_no_cap_can_be_kept(tmp_path: Path) -> None:
    command = printer(tmp_path, f"print({LINE.partition(' POM')[0]!r})")
    found = by_check(sensors.look(files(tmp_path / "root"), command, "tegrastats"))
    assert (found["rails"].state, "rails.conf" in found["rails"].advice) == (ATTENTION, True)


@pytest.mark.parametrize(
    ("program", "said"),
    [("raise SystemExit(3)", "ended with status 3"), ("print('hello')", "its line is not understood: 'hello'")],
)
def test_a_tegrastats_that_gives_no_line_is_a_problem(tmp_path: Path, program: str, said: str) -> None:
    found = by_check(sensors.look(files(tmp_path / "root"), printer(tmp_path, program), "tegrastats"))
    assert (found["tegrastats"].state, said in found["tegrastats"].text) == (PROBLEM, True)


def test_a_tegrastats_that_hangs_is_given_up_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "_PATIENCE_S", 0.3)
    text, why = sensors.first_line(printer(tmp_path, "import time\ntime.sleep(600)"))
    assert (text, "printed no line in 0.3 s" in why) == (None, True)


def test_group_membership_that_this_login_does_not_know_yet_is_told_from_none() -> None:
    there = frozenset({"traingov", "traingov-admin"})

    def states(user: User) -> list[str]:
        return [f.state for f in access.groups(user, "traingov", "traingov-admin", there)]

    def said(user: User) -> str:
        return access.groups(user, "traingov", "traingov-admin", there)[0].advice

    none = frozenset[str]()
    assert states(User("ann", 1000, frozenset({"traingov"}), frozenset({"traingov"}))) == [OK, ATTENTION]
    assert said(User("ann", 1000, none, frozenset({"traingov"}))).startswith("log out and in again")
    assert said(User("ann", 1000, none, none)) == "sudo adduser ann traingov, then log out and in again"
    assert states(User("root", 0, none, none)) == [OK, OK]
    missing = access.groups(User("ann", 1000, none, none), "traingov", "traingov-admin", none)[0]
    assert (missing.state, "does not exist" in missing.text) == (ATTENTION, True)


def test_clocks_that_a_killed_service_left_are_a_problem_only_where_none_runs(tmp_path: Path) -> None:
    (tmp_path / "restore.json").write_text("{}")
    assert [f.state for f in access.state(tmp_path, answers=False)] == [OK, PROBLEM]
    assert [f.state for f in access.state(tmp_path, answers=True)] == [OK]
    (tmp_path / "cap.json.damaged-1").write_text("x")
    assert by_check(access.state(tmp_path, answers=True))["set aside"].text.endswith("cap.json.damaged-1")


def test_little_room_for_the_state_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, state in ((1 << 20, PROBLEM), (20 << 20, ATTENTION), (1 << 30, OK)):
        usage = type("usage", (), {"free": free})
        monkeypatch.setattr(access.shutil, "disk_usage", lambda _, u=usage: u)
        assert access.state(tmp_path, answers=True)[0].state == state


@contextmanager
def answering(text: bytes) -> Iterator[MetricsOptions]:
    """A program that answers every connection with ``text``."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(text)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield MetricsOptions(socket.AF_INET, "127.0.0.1", listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_the_metrics_port_is_served_by_the_service_or_by_nobody() -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n<title>traingov</title>") as options:
        assert software.metrics(options, answers=True).state == OK
        stray = software.metrics(options, answers=False)
    assert (stray.state, "a traingovd with another socket" in stray.text) == (ATTENTION, True)
    assert software.metrics(options, answers=True).state == ATTENTION
    assert software.metrics(options, answers=False).state == UNSEEN
    assert software.metrics(None, answers=True).state == OK


def test_a_metrics_port_that_another_program_has_is_a_problem_with_the_setting_that_mends_it() -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\nsomething else") as options:
        found = software.metrics(options, answers=True)
        assert (found.state, found.text) == (PROBLEM, f"another program answers at {options.where}")
        assert "metrics.listen" in found.advice
        assert "taken by another program" in software.metrics(options, answers=False).text
        said = f"the metrics are not served on {options.where}, tried again: Address already in use"
        raised = software.metrics(options, True, said)
    assert (raised.state, raised.text) == (PROBLEM, said)
    assert "metrics.listen" in raised.advice


def test_systemds_commands_are_named_only_where_it_runs() -> None:
    without = [software.service(None, "no service", systemd=False), software.unit(answers=False, systemd=False)]
    assert not [f for f in without if "journalctl" in f.advice or "systemctl" in f.advice]
    assert "journalctl -u traingov" in software.service(None, "no service", systemd=True).advice


def test_doctor_asks_the_socket_that_the_environment_or_an_option_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def call(path: Path, method: str) -> None:
        asked.append(path)
        raise Failure("no service")

    monkeypatch.setattr("traingov.cli.doctor.call", call)
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"root": str(tmp_path), "socket": "/configured"}))
    monkeypatch.delenv("TRAINGOV_SOCKET", raising=False)
    traingov("doctor", "--config", str(config))
    traingov("doctor", "--config", str(config), "--socket", "/by-option")
    monkeypatch.setenv("TRAINGOV_SOCKET", "/by-environment")
    traingov("doctor", "--config", str(config))
    assert asked == [Path("/configured"), Path("/by-option"), Path("/by-environment")]


def test_a_library_that_is_too_old_or_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [f.state for f in software.libraries()] == [OK, OK]
    monkeypatch.setattr(software, "requires", lambda _: ["numpy>=999", "nosuchthing>=1", "click>=8.0; extra == 'x'"])
    finding = software.libraries()[1]
    assert finding.state == PROBLEM
    assert "(at least 999)" in finding.text
    assert "nosuchthing is missing" in finding.text


def test_the_command_ends_with_1_where_there_is_a_problem_and_prints_json(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files(root)
    config = tmp_path / "c.yaml"
    command = printer(tmp_path, f"print({LINE!r})")[0]
    config.write_text(
        json.dumps(
            {"root": str(root), "tegrastats": command, "socket": str(tmp_path / "s"), "state_dir": str(tmp_path)}
        )
    )
    result = traingov("doctor", "--config", str(config), "--json")
    answer = json.loads(result.stdout)
    problems = [f["check"] for f in answer["findings"] if f["state"] == PROBLEM]
    assert (result.exit_code, problems) == (1, ["service"])
    text = traingov("doctor", "--config", str(config)).stdout
    assert "problem   service" in text
    assert "→ if it ran before, " in text


def test_a_wrong_configuration_is_told_and_the_rest_is_looked_at_all_the_same(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("policy: fastest\n")
    result = traingov("doctor", "--config", str(config))
    assert result.exit_code == 1
    assert f"{config}:1: policy" in result.stdout
    assert "Python" in result.stdout
    assert shlex.quote(str(config)) in result.stdout
