"""`traingov service`: what it writes, what it refuses, what it leaves alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from traingov.cli import service


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder, and an environment in which traingovd can be run by others."""
    monkeypatch.setattr(service, "_scripts", lambda: Path("/opt/traingov/bin"))
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(service.group, words)
    return done.exit_code, done.output


def test_install_writes_units_that_call_the_environments_own_programs(installed: Path) -> None:
    status, said = run("install", "--root", str(installed))
    assert status == 0, said
    unit = (installed / "etc/systemd/system/traingov.service").read_text()
    assert "ExecStart=/opt/traingov/bin/traingovd\n" in unit
    assert "ExecStopPost=+/opt/traingov/bin/traingov restore\n" in unit
    assert "/usr/bin/traingov" not in unit
    assert "ListenStream=/run/traingov/traingov.sock" in (installed / "etc/systemd/system/traingov.socket").read_text()
    assert "policy: observe" in (installed / "etc/traingov/traingov.yaml").read_text()
    for path in ("etc/sysusers.d/traingov.conf", "etc/tmpfiles.d/traingov.conf", "etc/udev/rules.d/60-traingov.rules"):
        assert (installed / path).exists()


def test_an_existing_configuration_is_left_as_it_is(installed: Path) -> None:
    config = installed / "etc/traingov/traingov.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("policy: joint\n")
    assert run("install", "--root", str(installed))[0] == 0
    assert config.read_text() == "policy: joint\n"


def test_uninstall_removes_what_install_wrote_and_keeps_settings_and_foreign_files(installed: Path) -> None:
    run("install", "--root", str(installed))
    foreign = installed / "etc/udev/rules.d/60-traingov.rules"
    foreign.write_text("# an administrator's own\n")
    status, said = run("uninstall", "--root", str(installed))
    assert status == 0, said
    files = sorted(str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file())
    assert files == ["etc/traingov/traingov.yaml", "etc/udev/rules.d/60-traingov.rules"]
    status, said = run("uninstall", "--root", str(installed))
    assert (status, "nothing below" in said) == (2, True)


def test_beside_the_debian_package_nothing_is_installed(installed: Path) -> None:
    unit = installed / "lib/systemd/system/traingov.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    status, said = run("install", "--root", str(installed))
    assert (status, "Debian package" in said) == (2, True)
    assert not (installed / "etc").exists()


def test_a_program_that_the_service_cannot_reach_is_named() -> None:
    assert service.unreadable(Path("/usr/bin/env").resolve()) is None
    assert "which the service does not see" in str(service.unreadable(Path("/home/me/.local/bin/traingovd")))
    assert "lies in /tmp" in str(service.unreadable(Path("/tmp/env/bin/traingovd")))


def test_a_folder_closed_to_others_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_HIDDEN", ())
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "traingovd"
    program.touch(mode=0o755)
    assert "closed is closed to other users" in str(service.unreadable(program))


def test_an_environment_without_the_service_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "traingov")])
    status, said = run("install", "--root", str(tmp_path))
    assert (status, "traingovd is not beside" in said) == (2, True)


def test_a_root_that_is_no_folder_is_wrong_input(tmp_path: Path) -> None:
    assert run("install", "--root", str(tmp_path / "nowhere"))[0] == 2
