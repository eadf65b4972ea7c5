"""A Debian that boots: a root folder with a real systemd in it, run by systemd-nspawn. Nothing of it outlives a test.

The root folder is never written: each machine has an overlay over it. ``packaging/ci-system`` makes the folder and the
package; without them the tests here are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / "build"
BASE = BUILD / "nspawn" / "base"
PINNED_HZ = 460_800_000
BOARD = "/srv/board"
JOB = "/opt/traingov/tests/system/nspawn/governed_job.py"
_PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"


def unavailable() -> str | None:
    """Why no machine can be started here; None where one can."""
    if os.environ.get("TRAINGOV_MACHINES") != "1":
        return "packaging/ci-system runs these, as they test what it has just built"
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("systemd-nspawn") is None:
        return "needs systemd-nspawn (apt-get install systemd-container)"
    if not (BASE / ".complete").exists():
        return f"needs a Debian root folder {BASE.relative_to(REPOSITORY)}: run packaging/ci-system"
    if len(packages()) != 1:
        return "needs one package in build/deb: run packaging/ci-system"
    return None


def packages() -> list[Path]:
    """The built packages."""
    return sorted((BUILD / "deb").glob("traingov_*_all.deb"))


def wait_for(what: Callable[[], Any], seconds: float, text: str) -> Any:
    """Wait until ``what`` is true; fail with ``text`` after ``seconds``."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds:g} s: {text}")


class Machine:
    """A context: boots on entering, powers off on leaving."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="machine-", dir=BUILD / "nspawn"))
        self.root = self.folder / "root"
        self.job = "job-0"
        self._jobs = 0
        self._leader = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Machine:
        for name in ("root", "upper", "work"):
            (self.folder / name).mkdir()
        options = f"lowerdir={BASE},upperdir={self.folder / 'upper'},workdir={self.folder / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.root], check=True)
        try:
            self._boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _boot(self) -> None:
        self._process = subprocess.Popen(
            ["systemd-nspawn", "-q", "-D", self.root, "--register=no", "--keep-unit", "--console=passive",
             "--private-network", f"--bind-ro={REPOSITORY}:/opt/traingov", "-b"],
            stdin=subprocess.DEVNULL, stdout=(self.folder / "console").open("wb"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")

        def running() -> bool:
            # Of nspawn's children the first is a helper that ends soon; the last is the machine's init.
            self._leader = int((children.read_text().split() or ["0"])[-1])
            state = self.run("systemctl is-system-running", check=False) if self._leader else ""
            return state.strip() in ("running", "degraded")

        wait_for(running, 60, "the machine has booted")

    def __exit__(self, *exc: object) -> None:
        self.power_off()
        subprocess.run(["umount", self.root], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def power_off(self) -> None:
        """Shut down as a person would, then make sure. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._leader:
            self._enter("systemctl poweroff")
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            # Init first: with it, the kernel ends everything in the machine.
            for pid in (self._leader, process.pid):
                if pid and Path(f"/proc/{pid}").exists():
                    os.kill(pid, signal.SIGKILL)
            process.wait(10)

    def _enter(self, command: str) -> subprocess.CompletedProcess[str]:
        words = ["nsenter", "-t", str(self._leader), "-a", "env", "-i", _PATH, "HOME=/root", "sh", "-c", command]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=180)

    def run(self, command: str, *, check: bool = True) -> str:
        """Run a shell command in the machine; its output. AssertionError where it fails and ``check``."""
        done = self._enter(command)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def fails(self, command: str) -> str:
        """Run a command that must fail; what it says."""
        done = self._enter(command)
        assert done.returncode != 0, f"{command} succeeded: {done.stdout}"
        return done.stdout + done.stderr

    def put(self, path: str, text: str) -> None:
        """Write a file of the machine."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    # -- traingov in it ------------------------------------------------------------------------------------------
    def install(self) -> str:
        """Install the package with apt; what apt said."""
        package = packages()[0].relative_to(REPOSITORY)
        return self.run(f"DEBIAN_FRONTEND=noninteractive apt-get install -y /opt/traingov/{package} 2>&1")

    def start_board(self) -> None:
        """A virtual Nano, and the configuration and drop-in that point the service there, with the clock pinned."""
        self.run("useradd -M -G traingov trainer")
        python = (
            "-p Environment=PYTHONPATH=/opt/traingov/sim:/opt/traingov/client -p Environment=PYTHONDONTWRITEBYTECODE=1"
        )
        self.run(
            f"systemd-run -q --unit=board {python} python3 -m traingov_sim board --board nano --dir {BOARD} --json"
        )
        wait_for((self.root / f"{BOARD}/ready.json".lstrip("/")).exists, 20, "the virtual board starts")
        self.run(f"cd {BOARD} && chmod 666 board.sock && cd root/sys/class/devfreq/*.gpu/ && "
                 "chgrp devfreq min_freq max_freq governor && chmod 664 min_freq max_freq governor")  # fmt: skip
        drop_ins = self.root / "etc/systemd/system/traingov.service.d"
        drop_ins.mkdir()
        shutil.copy(self.root / "usr/share/doc/traingov/examples/virtual-board.conf", drop_ins)
        self.configure(policy="fixed", fixed={"gpu_frequency_hz": PINNED_HZ})
        self.run("systemctl daemon-reload && systemctl restart traingov")

    def configure(self, **values: object) -> None:
        """Write the virtual board's configuration, with ``values`` on top. JSON is YAML."""
        root = f"{BOARD}/root"
        point = {"root": root, "tegrastats": f"{root}/usr/bin/tegrastats"}
        self.put("/etc/traingov/conf.d/board.yaml", json.dumps({**point, **values}))

    def start_job(self) -> None:
        """A training process of user trainer, which writes the number of its steps to a file."""
        # Each has a name of its own: systemd forgets an ended transient unit in its own time.
        self._jobs += 1
        self.job = f"job-{self._jobs}"
        python = (
            "-p Environment=PYTHONPATH=/opt/traingov/sim:/opt/traingov/client -p Environment=PYTHONDONTWRITEBYTECODE=1"
        )
        self.run(f"systemd-run -q --unit={self.job} --uid=trainer {python} -p RuntimeDirectory={self.job} "
                 f"python3 {JOB} {BOARD}/board.sock /run/{self.job}/steps")  # fmt: skip

    def stop_job(self) -> None:
        """End the training process."""
        self.run(f"systemctl stop {self.job}; systemctl reset-failed {self.job}", check=False)

    def steps(self) -> int:
        """Steps that the job has made."""
        text = self.run(f"cat /run/{self.job}/steps", check=False).strip()
        return int(text) if text else 0

    def trains_on(self) -> None:
        """Check that the job makes further steps from now on."""
        before = self.steps()
        wait_for(lambda: self.steps() > before + 5, 15, "training goes on")

    def bounds_hz(self) -> tuple[int, int]:
        """The GPU's bounds, as the board's files show them; seen from outside, so that looking costs nothing there."""
        devices = self.root / f"{BOARD}/root/sys/devices".lstrip("/")
        node = next(devices.glob("*/devfreq/*.gpu"))
        return int((node / "min_freq").read_text()), int((node / "max_freq").read_text())

    def pinned(self) -> bool:
        """Whether the service's clock is set."""
        return self.bounds_hz() == (PINNED_HZ, PINNED_HZ)

    def show(self, key: str, unit: str = "traingov") -> str:
        """A property of a unit."""
        return self.run(f"systemctl show -P {key} {unit}").strip()

    def journal(self, since: str | None = None) -> str:
        """The service's journal, from the cursor ``since`` on."""
        after = f"--after-cursor='{since}'" if since else ""
        return self.run(f"journalctl -q --no-pager -o cat -u traingov.service {after}", check=False)

    def cursor(self) -> str:
        """Where the journal ends now."""
        self.run("journalctl --sync")
        return (
            self.run("journalctl -q -n 1 -o json --output-fields=MESSAGE")
            .partition('"__CURSOR":"')[2]
            .partition('"')[0]
        )
