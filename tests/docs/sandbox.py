"""Runs the commands of a page in a folder of its own, as a reader types them one after another.

The folder looks like a checkout; what a page writes stays in it. Paths of the machine that a page names are those of
the sandbox: /tmp, /etc/traingov, /var/lib/traingov, the service's socket, the port of the metrics; so are those that
`traingov` takes where none is named. Words of ``test`` notes:

- ``board=NAME``: before the block, start a virtual board of that name and a service for it, for the rest of the page;
  with ``policy=``, ``objective=``, ``cap=W``, ``more=FILE`` (a configuration of tests/docs/configurations on top)
- ``job=WORKLOAD``: and a job that trains on it, with ``batches=16,128``, ``samples=N``, and ``wait=STATE``: until the
  service is in that state
- ``background``: the block's commands go on while what follows is run; wait until the board or service answers
- ``until=S``: end the command after that many seconds, as Ctrl-C does; its exit status does not count
- ``status=N``: the exit status the last command of the block has to have (0)
- ``labels``: the shown lines' first words have to be in the output, but for a third of them, since runs differ;
  ``exact``: the output has to be as shown
- ``export`` lines hold for the rest of the page, as in a terminal
- ``stdin=TEXT``: typed to the command, ``\\n`` being Return
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import yaml
from pagetext import ROOT, Block

import traingov_client
from traingov.cli.main import main as traingov
from traingov_sim.demo.lab import Board, Lab, Service
from traingov_sim.gpu import EmulatedGpu

_LIMIT_S = 150.0
_FAST = {"settle_s": 0.9, "min_window_s": 1.2}
_LINKED = ("benchmarks", "client", "daemon", "etc", "examples", "packaging", "policies", "proxy", "sim", "tests",
           "Makefile", "README.md", "pyproject.toml")  # fmt: skip
_PATHS = {"/run/traingov/traingov.sock": "s", "/etc/traingov": "etc", "/var/lib/traingov": "var", "/tmp": "tmp"}
_DEFAULTS = {"--state-dir": "var", "--config": "etc/traingov.yaml"}


class Sandbox:
    """A context: folder, environment, and what was started in it."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.home = self.lab.directory
        self.work = self.home / "w"
        self.environment = dict(os.environ)
        self.service: Service | None = None
        self.said: list[str] = []  # what each command printed
        self._background: list[subprocess.Popen[str]] = []
        self._stop_jobs: list[Callable[[], None]] = []
        for folder in ("w", "tmp", "etc", "var", "bin"):
            (self.home / folder).mkdir()
        shutil.copytree(ROOT / "docs", self.work / "docs")
        for name in _LINKED:
            (self.work / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "packaging" / "config", self.home / "etc", dirs_exist_ok=True)
        self._program("sudo", 'exec "$@"')  # a service of the sandbox belongs to whoever runs it
        self._program("traingov", _with_defaults(self.home))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        here = Path(sys.executable).parent
        self.environment |= {
            "PATH": f"{self.home / 'bin'}:{here}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TRAINGOV_SOCKET": str(self.home / "s"),
            "COLUMNS": "120",
            "PYTHONUNBUFFERED": "1",
        }
        self.environment.pop("TRAINGOV_SIM_GPU", None)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exc: object) -> None:
        for stop in self._stop_jobs:
            stop()
        for process in reversed(self._background):  # the service before its board
            _end(process)
        self.lab.close()

    def _program(self, name: str, script: str) -> None:
        file = self.home / "bin" / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def run(self, block: Block, compare: bool = True) -> None:
        """Run a block's commands; AssertionError with what was run, said and expected, where one goes wrong."""
        options = block.options
        if "board" in options:
            self._start_board(options)
        if "job" in options:
            self._start_job(options)
        for setup in block.setups:
            done = self._shell(setup)
            assert done.returncode == 0, f"{block.where}: setup {setup!r}: {done.stdout}{done.stderr}"
        if block.not_run is not None:
            return
        if "background" in options:
            for command in block.commands:
                self._in_background(command, block.where)
            return
        commands = block.commands
        for number, command in enumerate(commands):
            last = number == len(commands) - 1
            until = float(options["until"]) if "until" in options and last else None
            done = self._shell(command, until, options.get("stdin", "").replace("\\n", "\n"))
            expected = int(options.get("status", 0)) if last else 0
            said = f"{block.where}: $ {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            assert until is not None or done.returncode == expected, f"exit status {done.returncode}: {said}"
            self._export(command)
            self.said.append(done.stdout + done.stderr)
            if compare:
                _compare(block, number, done.stdout + done.stderr, options, said)

    def here(self, text: str) -> str:
        """A command with the paths of the sandbox."""
        for path, mine in _PATHS.items():
            text = re.sub(rf"(?<![\w/.]){path}(?![\w-])", str(self.home / mine), text)
        return text.replace("127.0.0.1:28520", f"127.0.0.1:{self.port}")

    def there(self, text: str) -> str:
        """The opposite: an output with the paths that the page has."""
        for path, mine in _PATHS.items():
            text = text.replace(str(self.home / mine), path)
        return text.replace(str(self.work) + "/", "").replace(f"127.0.0.1:{self.port}", "127.0.0.1:28520")

    def _shell(self, command: str, until_s: float | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
        process = self._popen(command, stdin=subprocess.PIPE)
        try:
            out, error = process.communicate(stdin, timeout=until_s or _LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            try:
                out, error = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, error = process.communicate()
            if until_s is None:
                error += f"\nnot ended within {_LIMIT_S:g} s"
        return subprocess.CompletedProcess(command, process.returncode, out, error)

    def _popen(self, command: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-euc", self.here(command)], cwd=self.work, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **more,
        )  # fmt: skip

    def _in_background(self, command: str, where: str) -> None:
        command = "\n".join(line for line in command.splitlines() if line.strip())
        log = self.home / f"background{len(self._background)}.log"
        process = subprocess.Popen(
            ["bash", "-euc", self.here(command)], cwd=self.work, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._background.append(process)
        self._export(command)
        until = time.monotonic() + 30
        while not self._answers(command):
            said = f"{where}: $ {command}\n{log.read_text()[-3000:]}"
            assert process.poll() in (None, 0), f"ended with {process.returncode}: {said}"
            assert time.monotonic() < until, f"did not get ready: {said}"
            time.sleep(0.1)

    def _export(self, command: str) -> None:
        for line in re.findall(r"^export (.*)", self.here(command), re.MULTILINE):
            self.environment |= dict(re.findall(r"(\w+)=(\S+)", line))

    def _answers(self, command: str) -> bool:
        if "examples/" in command:
            return (
                "job"
                in subprocess.run(
                    ["traingov", "status"],
                    env=self.environment,
                    capture_output=True,
                    check=False,
                    text=True,
                    timeout=30,
                ).stdout
            )
        if "traingov-sim board" in command:
            folder = re.search(r"--dir (\S+)", self.here(command))
            return folder is not None and (Path(folder[1]) / "ready.json").exists()
        if "traingovd" in command:
            asked = subprocess.run(
                ["traingov", "status"], env=self.environment, capture_output=True, check=False, timeout=30
            )
            return asked.returncode == 0
        return True

    def _start_board(self, options: dict[str, str]) -> None:
        label = f"b{len(list(self.home.glob('b[0-9]')))}"
        board = self.lab.board(options["board"], label, 1)
        config: dict[str, Any] = {"profile": _FAST, "metrics": {"listen": f"127.0.0.1:{self.port}"}}
        config |= {key: options[key] for key in ("policy", "objective") if key in options}
        if "cap" in options:
            config["cap"] = {"power_w": float(options["cap"])}
        if "more" in options:
            file = Path(__file__).parent / "configurations" / options["more"]
            config |= yaml.safe_load(self.here(file.read_text()))
        self.service = self.lab.service(board, label, config)
        self.environment |= {"TRAINGOV_SOCKET": str(self.service.socket), "TRAINGOV_SIM_GPU": board.gpu}
        (self.home / "var").rmdir() if not any((self.home / "var").iterdir()) else None
        (self.home / "var").symlink_to(self.service.state_dir)
        point = {"root": board.root, "tegrastats": board.tegrastats, "socket": str(self.service.socket),
                 "state_dir": str(self.service.state_dir)}  # fmt: skip
        (self.home / "etc" / "traingov.yaml").write_text(json.dumps({**point, **config}, indent=1))

    def _start_job(self, options: dict[str, str]) -> None:
        assert self.service is not None, "a job needs a board"
        job = _Job(
            self.service, options["job"], [int(b) for b in options.get("batches", "16,128").split(",")],
            int(options["samples"]) if "samples" in options else None,
        )  # fmt: skip
        self._stop_jobs.append(job.stop)
        wanted = options.get("wait")
        until = time.monotonic() + 60
        while job.steps < 20 or (wanted and self.service.ask("status")["state"] != wanted):
            assert job.error is None, f"the job failed: {job.error}"
            assert time.monotonic() < until, f"the service did not come to {wanted}: {self.service.ask('status')}"
            time.sleep(0.2)


class _Job(threading.Thread):
    """Trains on the virtual board until stopped."""

    def __init__(self, service: Service, workload: str, batches: list[int], samples: int | None) -> None:
        super().__init__(daemon=True)
        self._board: Board = service.board
        self._asked: dict[str, Any] = {"workload": workload, "batch_sizes": batches, "socket": str(service.socket)}
        if samples is not None:
            self._asked["samples_total"] = samples
        self._stopping = threading.Event()
        self.steps, self.error = 0, None
        self.start()

    def run(self) -> None:
        try:
            with EmulatedGpu(self._board.gpu) as gpu, traingov_client.register(
                **self._asked, sync=gpu.synchronize,
                features={"model_type": "encoder", "layers": 12, "hidden_size": 768},
            ) as job:  # fmt: skip
                while not self._stopping.is_set():
                    job.safe_point()
                    gpu.submit(self._asked["workload"], job.batch_size)
                    job.step(job.batch_size, seq_len_avg=40.0)
                    self.steps += 1
        except Exception as error:  # the page's thread says it
            self.error = error  # type: ignore[assignment]

    def stop(self) -> None:
        self._stopping.set()
        self.join(20)


def _with_defaults(home: Path) -> str:
    """A shell script around `traingov` that names state folder and configuration where the caller does not."""
    cases = []
    for name, command in _commands_of(traingov, ()):
        for option, path in _DEFAULTS.items():
            if any(option in parameter.opts for parameter in command.params):
                cases.append(
                    f'"{name} "*) case " $* " in *" {option} "*) ;; *) set -- "$@" {option} "{home / path}" ;; esac ;;'
                )
    real = Path(sys.executable).with_name("traingov")
    return "\n".join(f'case "$* " in {case} esac' for case in cases) + f'\nexec "{real}" "$@"'


def _commands_of(command: click.Command, above: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(above), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands_of(inner, (*above, name))


def _compare(block: Block, number: int, output: str, options: dict[str, str], said: str) -> None:
    shown = [line for line in block.output_of(number) if line.strip() not in ("", "...", "…")]
    if "exact" in options:
        got = [line.rstrip() for line in output.splitlines() if line.strip()]
        assert [line.rstrip() for line in shown] == got, f"another output than shown: {said}"
    elif "labels" in options:
        found = [re.search(r"[A-Za-z][\w-]+", line) for line in shown]
        labels = [label[0] for label in found if label]
        missing = [label for label in labels if label not in output]
        assert 3 * len(missing) <= len(labels), f"shown, but not in the output: {missing}: {said}"


def _end(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
