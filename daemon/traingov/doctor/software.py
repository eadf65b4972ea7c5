"""The software around: the service and its unit, its port, other programs at the same knobs, kernel and libraries."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import psutil

from ..metrics.access import MetricsOptions
from .finding import ATTENTION, OK, PROBLEM, UNSEEN, Finding

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)$")
_ANSWER_MOST = 8192
_OTHER_PORT = "choose another port: metrics.listen: ADDRESS:PORT in the settings (null: none), and restart the service"
_OTHERS = {
    "jtop": "it reads the sensors too, and sets clocks and power modes where somebody tells it to",
    "jetson_clocks": "it pins the clocks that traingov sets",
    "nvpmodel": "it resets the clock's bounds",
}


def service(status: dict[str, Any] | None, why: str, *, systemd: bool) -> Finding:
    """Whether the service answers: ``status`` as it answered, or ``why`` it did not."""
    if status is None:
        where = "journalctl -u traingov says" if systemd else "the terminal or log of traingovd says"
        return Finding("service", PROBLEM, why, f"if it ran before, {where} how it ended")
    said = [f"{name}: {text}" for name, text in status["conditions"].items()]
    text = f"answers; {status['policy']}, {status['doing']}"
    if said:
        return Finding("service", ATTENTION, f"{text}; {'; '.join(said)}", "traingov explain says more")
    return Finding("service", OK, text)


def unit(answers: bool, *, systemd: bool) -> Finding:
    """The systemd unit, where systemd runs. ``answers``: a service runs, whoever started it."""
    if not systemd:
        return Finding("unit", UNSEEN, "systemd does not run here", "" if answers else "start traingovd by hand")
    keys = "LoadState,ActiveState,SubState,UnitFileState,Result,NRestarts"
    try:
        done = subprocess.run(
            ["systemctl", "show", "--property", keys, "traingov.service"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("unit", UNSEEN, f"systemctl: {' '.join(str(error).split())}")
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if found.get("LoadState") == "not-found":
        return Finding("unit", ATTENTION, "traingov.service is not installed", "sudo traingov service install")
    text = f"{found.get('ActiveState')} ({found.get('SubState')}), {found.get('UnitFileState') or 'not enabled'}, "
    text += f"{found.get('NRestarts', '0')} restarts, last result {found.get('Result')}"
    if found.get("ActiveState") == "active":
        return Finding("unit", OK, text)
    state = PROBLEM if found.get("ActiveState") == "failed" else ATTENTION
    return Finding("unit", state, text, "journalctl -u traingov says why; sudo systemctl start traingov")


def metrics(options: MetricsOptions | None, answers: bool, said: str | None = None) -> Finding:
    """Whether the service's metrics are served. ``said``: what its condition `metrics-not-served` says, if raised."""
    if options is None:
        return Finding("metrics", OK, "not served (metrics.listen is null)")
    if said is not None:
        return Finding("metrics", PROBLEM, said, _OTHER_PORT)
    try:
        ours = _is_traingov(options)
    except OSError as error:
        if not answers:
            return Finding("metrics", UNSEEN, f"nobody listens at {options.where}: the service does not run")
        return Finding(
            "metrics",
            ATTENTION,
            f"nobody listens at {options.where}: {error.strerror or error}",
            "the service may have other settings: give them with --config",
        )
    if answers and ours is not False:
        return Finding("metrics", OK, f"served at {options.where}")
    if answers:
        return Finding("metrics", PROBLEM, f"another program answers at {options.where}", _OTHER_PORT)
    if ours:
        advice = "name its socket with --socket; for a second service choose another port: metrics.listen"
        return Finding("metrics", ATTENTION, f"{options.where} is taken by a traingovd with another socket", advice)
    return Finding(
        "metrics",
        ATTENTION,
        f"{options.where} is taken by another program, and the service does not run",
        "choose another port: metrics.listen",
    )


def _is_traingov(options: MetricsOptions) -> bool | None:
    """Whether who listens there answers as traingovd does; None where it cannot be told. Raises OSError: nobody."""
    with socket.socket(options.family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        probe.connect((options.host, options.port))
        if options.certificate is not None:
            return None
        try:
            probe.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while len(answer) < _ANSWER_MOST and (data := probe.recv(4096)):
                answer += data
        except OSError:
            return None
    return b"traingov" in answer if answer else None


def others() -> list[Finding]:
    """Programs that write to the same knobs."""
    found: dict[str, list[int]] = {}
    hidden = 0
    for process in psutil.process_iter(["name", "cmdline"]):
        name, words = process.info["name"] or "", process.info["cmdline"]
        if words is None:
            hidden += 1
            words = []
        called = {name, *(os.path.basename(word) for word in words[:2])}
        for other in _OTHERS:
            if other in called:
                found.setdefault(other, []).append(process.pid)
    if not found:
        note = f" ({hidden} processes could not be looked at: run it as root)" if hidden else ""
        return [Finding("other programs", OK, f"neither jtop, jetson_clocks nor nvpmodel runs now{note}")]
    return [
        Finding(
            "other programs",
            ATTENTION,
            f"{name} runs (pid {', '.join(map(str, pids))}): {_OTHERS[name]}",
            "let only one of them set clocks: traingov gives way to what others write, and says so",
        )
        for name, pids in found.items()
    ]


def kernel() -> Finding:
    """Whether the kernel tells of a process's end."""
    release = platform.release()
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return Finding(
            "kernel", ATTENTION, f"{release} has no pidfd: the end of a job is found by looking twice a second"
        )
    return Finding("kernel", OK, f"{release} has pidfd: the end of a job is seen at once")


def libraries(package: str = "traingov") -> list[Finding]:
    """Python and the libraries that traingov asks for."""
    out = [Finding("Python", OK if sys.version_info >= (3, 10) else PROBLEM, platform.python_version())]
    try:
        asked, own = requires(package) or [], version(package)
    except PackageNotFoundError:
        return [*out, Finding("libraries", UNSEEN, f"{package} has no metadata: run from a source tree")]
    right, wrong = [f"{package} {own}"], []
    for text in asked:
        match = _REQUIREMENT.match(text.replace(" ", ""))
        if match is None:
            continue
        name, least = match.groups()
        try:
            have = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        (right if _numbers(have) >= _numbers(least) else wrong).append(f"{name} {have}")
        if _numbers(have) < _numbers(least):
            wrong[-1] += f" (at least {least})"
    if wrong:
        return [
            *out,
            Finding("libraries", PROBLEM, ", ".join(wrong), "install traingov again, in an environment of its own"),
        ]
    return [*out, Finding("libraries", OK, ", ".join(right))]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", text)[:3])
