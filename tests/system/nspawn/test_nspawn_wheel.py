"""`traingov service` from the wheel, as pip would install it, in a real systemd."""

from __future__ import annotations

import json

import pytest
from machine import BUILD, REPOSITORY, Machine, wait_for

pytestmark = pytest.mark.system

PLACE = "/opt/governor"
PROGRAMS = {"traingov": "traingov.cli.entry", "traingovd": "traingov.service"}


@pytest.fixture(scope="module")
def unpacked(bare_machine: Machine) -> Machine:
    """The machine with the wheel unpacked and the two programs written as pip writes them. It has no pip of its own."""
    wheels = sorted((BUILD / "nspawn/wheel").glob("traingov-*.whl"))
    if len(wheels) != 1:
        pytest.skip("needs one wheel in build/nspawn/wheel: run packaging/ci-system")
    bare_machine.run(f"python3 -m zipfile -e /opt/traingov/{wheels[0].relative_to(REPOSITORY)} {PLACE}/site")
    for name, module in PROGRAMS.items():
        bare_machine.put(
            f"{PLACE}/bin/{name}",
            f"#!/usr/bin/python3\nimport sys\nsys.path.insert(0, '{PLACE}/site')\n"
            f"from {module} import main\nsys.exit(main())\n",
        )
    bare_machine.run(f"chmod 755 {PLACE}/bin/*")
    return bare_machine


def test_install_from_a_wheel_runs_the_wheels_own_programs_and_uninstall_takes_it_away(unpacked: Machine) -> None:
    traingov = f"{PLACE}/bin/traingov"
    assert "not installed" in unpacked.fails(f"{traingov} service status")
    said = unpacked.run(f"{traingov} service install")
    assert "wrote /etc/systemd/system/traingov.service" in said
    state = json.loads(unpacked.run(f"{traingov} service status --json"))
    assert (state["ActiveState"], state["UnitFileState"]) == ("active", "enabled")
    assert f"{PLACE}/bin/traingovd" in unpacked.run(f"cat /proc/{unpacked.show('MainPID')}/cmdline").replace("\0", " ")
    assert json.loads(unpacked.run(f"{traingov} policy get --json"))["policy"] == "observe"
    first = unpacked.show("MainPID")
    unpacked.run(f"kill -KILL {first}")
    wait_for(lambda: unpacked.show("MainPID") not in ("0", first), 20, "the service has another process")
    wait_for(lambda: unpacked.show("ActiveState") == "active", 20, "it runs again")
    assert "restore" in unpacked.journal()

    unpacked.run(f"{traingov} service install")  # again, as after an upgrade by pip
    assert unpacked.show("ActiveState") == "active"
    said = unpacked.run(f"{traingov} service uninstall")
    assert "kept /etc/traingov and /var/lib/traingov" in said
    assert unpacked.show("LoadState") == "not-found"
    assert unpacked.run("systemctl is-system-running", check=False).strip() == "running"


def test_a_wheel_in_a_home_folder_is_refused_with_what_to_do(unpacked: Machine) -> None:
    unpacked.run(f"cp -r {PLACE} /root/governor && sed -i s,{PLACE},/root/governor, /root/governor/bin/*")
    said = unpacked.fails("/root/governor/bin/traingov service install")
    assert "which the service does not see" in said
    assert "python3 -m venv /opt/traingov" in said
