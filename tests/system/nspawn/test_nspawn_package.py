"""The package with real apt and a real systemd: what it installs, starts, keeps on an upgrade, and leaves behind."""

from __future__ import annotations

import json

import pytest
from machine import REPOSITORY, Machine, packages, wait_for

pytestmark = pytest.mark.system

CLIENT = (
    "import json, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect('/run/traingov/traingov.sock'); "
    "f = s.makefile('rw'); ask = lambda i, m, p: (f.write(json.dumps(dict(jsonrpc='2.0', id=i, method=m, params=p)) "
    "+ chr(10)), f.flush(), f.readline())[2]; ask(1, 'hello', dict(protocol=1, client='t/1')); "
    "print(ask(2, sys.argv[1], json.loads(sys.argv[2])))"
)


def call_as(user: str, method: str, params: str = "{}") -> str:
    return f"runuser -u {user} -- python3 -c \"{CLIENT}\" {method} '{params}'"


def score(machine: Machine, drop_in: str | None = None) -> float:
    folder = "/etc/systemd/system/traingov.service.d"
    if drop_in is not None:
        machine.run(f"mkdir -p {folder} && cp /usr/share/doc/traingov/examples/{drop_in} {folder}")
    machine.run("systemctl daemon-reload")
    text = machine.run("systemd-analyze security --no-pager traingov.service", check=False)
    machine.run(f"rm -rf {folder}; systemctl daemon-reload")
    (line,) = [line for line in text.splitlines() if "Overall exposure level" in line]
    print(drop_in or "as shipped", line.strip())
    return float(line.split(":")[1].split()[0])


def test_installed_it_runs_enabled_and_observes_without_ever_writing_a_knob(machine: Machine) -> None:
    assert machine.show("ActiveState") == "active"
    assert machine.run("systemctl is-enabled traingov.service traingov.socket").split() == ["enabled", "enabled"]
    assert json.loads(machine.run("traingov policy get --json"))["policy"] == "observe"
    assert json.loads(machine.run("traingov status --json"))["telemetry"]["state"] == "stopped"
    assert machine.run("ls -A /var/lib/traingov") == ""


def test_it_brings_completions_for_three_shells(machine: Machine) -> None:
    folders = ("bash-completion/completions/traingov", "zsh/vendor-completions/_traingov",
               "fish/vendor_completions.d/traingov.fish")  # fmt: skip
    for path in folders:
        assert "_TRAINGOV_COMPLETE" in machine.run(f"cat /usr/share/{path}")
    words = "COMP_WORDS='traingov doc' COMP_CWORD=1 _TRAINGOV_COMPLETE=bash_complete traingov"
    assert machine.run(words).strip() == "plain,doctor"


def test_its_user_has_the_devfreq_group_and_no_capability_and_its_sandbox_is_in_force(machine: Machine) -> None:
    assert "devfreq" in machine.run("id -nG traingov").split()
    pid = machine.show("MainPID")
    status = dict(
        line.split(":", 1) for line in machine.run(f"cat /proc/{pid}/status").splitlines() if ":" in line
    )  # fmt: skip
    assert status["Uid"].split()[0] == machine.run("id -u traingov").strip() != "0"
    assert {status[key].strip() for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    assert machine.show("OOMScoreAdjust") == "-500"  # a machine in a container may not be allowed to set it
    inside = f"nsenter -t {pid} -m"  # root in the service's view of the files: what holds there is the sandbox
    for path in ("/etc/traingov/x", "/usr/x", "/srv/x", "/proc/sys/kernel/panic"):
        assert "Read-only file system" in machine.fails(f"{inside} sh -c 'echo 1 >{path}'")
    machine.run(f"{inside} sh -c 'touch /var/lib/traingov/x && rm /var/lib/traingov/x'")


def test_the_units_score_at_most_1_6_with_and_without_the_rails_drop_in(machine: Machine) -> None:
    assert score(machine) <= 1.6
    assert score(machine, "rails.conf") <= 1.6
    assert score(machine, "metrics.conf") <= 1.6
    assert score(machine, "strict.conf") < 1.0


def test_the_rails_drop_in_lets_the_service_read_what_only_root_may(machine: Machine) -> None:
    folder = "/etc/systemd/system/traingov.service.d"
    machine.run(f"mkdir -p {folder} && cp /usr/share/doc/traingov/examples/rails.conf {folder}")
    machine.run("systemctl daemon-reload && systemctl restart traingov")
    try:
        capabilities = machine.run(f"grep ^Cap /proc/{machine.show('MainPID')}/status").split()
        assert capabilities == ["CapInh:", f"{4:016x}", "CapPrm:", f"{4:016x}", "CapEff:", f"{4:016x}",
                                "CapBnd:", f"{4:016x}", "CapAmb:", f"{4:016x}"]  # fmt: skip
    finally:
        machine.run(f"rm -rf {folder}; systemctl daemon-reload && systemctl restart traingov")


def test_units_sysusers_and_tmpfiles_have_no_complaint_from_systemd(machine: Machine) -> None:
    said = machine.run("systemd-analyze verify --man=no traingov.service traingov.socket 2>&1", check=False)
    assert "traingov" not in said
    assert (
        machine.run("zcat /usr/share/man/man1/traingov.1.gz /usr/share/man/man8/traingovd.8.gz | grep -c '^.TH'")
        == "2\n"
    )


def test_metrics_are_served_from_inside_the_sandbox_to_this_machine(machine: Machine) -> None:
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:28520/metrics', timeout=9).read().decode())"
    wait_for(lambda: "traingov_build_info{" in machine.run(f'python3 -c "{fetch}"', check=False), 20, "the page comes")
    assert "metrics-not-served" not in machine.run("traingov status --json")
    sockets = machine.run(f"ls -l /proc/{machine.show('MainPID')}/fd | grep -c socket:")
    assert int(sockets) >= 2


def test_who_may_connect_and_command_is_decided_by_groups(machine: Machine) -> None:
    machine.run("useradd outsider; useradd -G traingov trainee; useradd -G traingov,traingov-admin boss")
    assert "Permission denied" in machine.fails(call_as("outsider", "status"))
    assert '"policy"' in machine.run(call_as("trainee", "policy.get"))
    assert "traingov-admin" in machine.run(call_as("trainee", "cap.set", '{"power_w": 9}'))
    assert '"power_w": 9' in machine.run(call_as("boss", "cap.set", '{"power_w": 9}')).replace('":9', '": 9')
    machine.run("traingov cap clear")


def test_a_stopped_service_is_started_by_the_first_connection(machine: Machine) -> None:
    machine.run("systemctl stop traingov && systemctl start traingov.socket")
    assert machine.show("ActiveState") == "inactive"
    assert json.loads(machine.run("traingov policy get --json"))["policy"] == "observe"
    assert machine.show("ActiveState") == "active"


def test_the_package_meets_the_distributions_rules() -> None:
    import shutil  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    if not packages() or shutil.which("lintian") is None:
        pytest.skip("needs lintian and a built package: run packaging/ci-system")
    changes = next((REPOSITORY / "build/deb").glob("traingov_*.changes"))
    done = subprocess.run(["lintian", "--allow-root", changes], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_an_upgrade_keeps_tables_and_settings_and_restarts_the_service_once(machine: Machine) -> None:
    machine.put("/var/lib/traingov/lut/board/x.json", '{"kept": true}')
    machine.put("/etc/traingov/traingov.yaml", "policy: energy\n")
    machine.run("chown -R traingov:traingov /var/lib/traingov")
    old = machine.show("MainPID")
    package = packages()[0].relative_to(REPOSITORY)
    machine.run(f"cd /tmp && dpkg-deb -R /opt/traingov/{package} newer && sed -i 's/^Version: .*/Version: 99/' "
                "newer/DEBIAN/control && dpkg-deb -b newer traingov_99_all.deb")  # fmt: skip
    machine.run("DEBIAN_FRONTEND=noninteractive apt-get install -y /tmp/traingov_99_all.deb")
    assert machine.run("dpkg-query -W -f '${Version}' traingov") == "99"
    assert machine.run("cat /var/lib/traingov/lut/board/x.json") == '{"kept": true}'
    wait_for(lambda: machine.show("ActiveState") == "active", 10, "the new version runs")
    assert machine.show("MainPID") != old
    assert json.loads(machine.run("traingov policy get --json"))["policy"] == "energy"


def test_purged_nothing_is_left_but_users_and_groups(machine: Machine) -> None:
    machine.run("DEBIAN_FRONTEND=noninteractive apt-get purge -y traingov")
    left = machine.run("find / -xdev -name '*traingov*' -not -path '/proc/*' -not -path '/tmp/*' -not -path '/opt/*' "
                       "-not -path '/var/log/*'").split()  # fmt: skip
    # Accounts stay, as Debian's policy has it: their numbers may own files elsewhere. The mail spool is useradd's.
    assert [path for path in left if not path.startswith(("/var/cache/apt", "/var/mail", "/var/spool/mail"))] == []
    assert machine.run("systemctl show -P LoadState traingov.service").strip() == "not-found"
    assert machine.run("systemctl is-system-running", check=False).strip() == "running"
