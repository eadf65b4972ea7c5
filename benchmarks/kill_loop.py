"""Does the clock come back after SIGKILL, at whatever instant? The service, killed over and over under a governed job.

    nice python benchmarks/kill_loop.py --kills 1000 [--out build/kills.jsonl] [--seed N]    # root, FUSE

On a virtual Nano whose files answer a write as a kernel does (FUSE). Each round: traingovd starts, a job registers and
trains, and an administrator's connection changes the policy between `fixed` and `observe` every few hundredths of a
second. So the whole way of the clock is gone over and over: originals saved, clock set, read back, given back, journal
removed. Then the service is killed, and `traingov restore` runs, as the unit's ExecStopPost= does. The kill comes

- in two rounds of five at a time drawn evenly from the first two seconds: starting, registering, governing;
- in three rounds of five at most 3 ms after the N-th thing that happens to the restore journal (inotify: created,
  written, closed, renamed, removed; N drawn from 1 to 59), thus while it is saved or removed, or at a write beside it.

Judged by what the board itself says of its bounds, not by its files: they are back within 2 s of the kill, and neither
journal nor temporary file is left. A round that fails is kept in the output with log and journal; the loop goes on
and ends with exit status 1. To save the import of NumPy in each round, the service is forked from a process that has
imported it and not run it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import traingov_client
from traingov_sim.demo.lab import Board, Lab
from traingov_sim.gpu import Channel, EmulatedGpu

SCRIPTS = Path(sys.executable).parent
NANO_HZ = [76_800_000, 921_600_000]
WITHIN_S = 2.0
LIFE_S = 2.0
MOST_EVENTS = 60  # saving the journal once is about six
_CREATE, _MODIFY, _CLOSED, _MOVED, _DELETE = 0x100, 0x2, 0x8, 0x80, 0x200
_EVENTS = _CREATE | _MODIFY | _CLOSED | _MOVED | _DELETE
PINNED_HZ = 460_800_000


class Touched:
    """Tells what happens to the restore journal and its temporary file in a folder (inotify(7))."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(folder), _EVENTS) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def wait(self, count: int, seconds: float) -> int:
        """Return once ``count`` things have happened, or after ``seconds``; how many have."""
        happened, until_s = 0, time.monotonic() + seconds
        while happened < count and (rest_s := until_s - time.monotonic()) > 0:
            if select.select([self._fd], [], [], rest_s)[0]:
                happened += self._read()
        return happened

    def close(self) -> None:
        """Watch no more."""
        os.close(self._fd)

    def _read(self) -> int:
        data, at, happened = os.read(self._fd, 65536), 0, 0
        while at < len(data):
            _, _, _, length = struct.unpack_from("iIII", data, at)
            happened += data[at + 16 : at + 16 + length].startswith(b"restore.json")
            at += 16 + length
        return happened


class Load:
    """A governed job, and an administrator who changes the policy all the time, from when the service listens."""

    def __init__(self, board: Board, path: Path, seed: int) -> None:
        self._board, self._path, self._stopping = board, path, threading.Event()
        self._pauses = random.Random(seed)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._train, self._change)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(20)

    def _wait(self) -> bool:
        while not self._stopping.is_set() and not listens(self._path):
            time.sleep(0.01)
        return not self._stopping.is_set()

    def _train(self) -> None:
        if not self._wait():
            return
        with EmulatedGpu(self._board.gpu) as gpu, traingov_client.register(
            workload="digits-mlp", batch_sizes=[64], socket=str(self._path), sync=gpu.synchronize
        ) as job:  # fmt: skip
            while not self._stopping.is_set():
                job.safe_point()
                gpu.submit("digits-mlp", job.batch_size)
                job.step()

    def _change(self) -> None:
        if not self._wait():
            return
        with socket.socket(socket.AF_UNIX) as admin, contextlib.suppress(OSError):
            admin.settimeout(5)
            admin.connect(str(self._path))
            hello = {"jsonrpc": "2.0", "id": 0, "method": "hello", "params": {"protocol": 1, "client": "kill-loop/1"}}
            admin.sendall(json.dumps(hello).encode() + b"\n")
            number = 0
            while not self._stopping.is_set() and admin.recv(65536):
                time.sleep(self._pauses.uniform(0.0, 0.08))
                number += 1
                params = {"policy": ("observe", "fixed")[number % 2]}
                message = {"jsonrpc": "2.0", "id": number, "method": "policy.set", "params": params}
                admin.sendall(json.dumps(message).encode() + b"\n")


def listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


class Nursery:
    """A process that has imported the service, and forks one for each round."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--nursery"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    def start(self, config: Path, log: Path) -> int:
        """Start a service; its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(config), str(log)]) + "\n")
        self._process.stdin.flush()
        return int(self._said())

    def ended(self) -> int:
        """Wait for its end; the status as waitpid(2) tells it."""
        return int(self._said())

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        self._process.communicate()

    @staticmethod
    def work() -> None:
        """What the process does."""
        from traingov import service  # noqa: PLC0415

        while line := sys.stdin.readline():
            config, log = json.loads(line)
            pid = os.fork()
            if pid == 0:
                nothing, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                for source, target in ((nothing, 0), (file, 1), (file, 2)):
                    os.dup2(source, target)
                os._exit(service.main(["--config", config]))
            print(pid, flush=True)
            print(os.waitpid(pid, 0)[1], flush=True)


class Truth:
    """What the board says of its bounds."""

    def __init__(self, board: Board) -> None:
        self._channel = Channel(board.gpu, timeout_s=5)

    def bounds_hz(self) -> list[int]:
        return [int(hz) for hz in self._channel.ask({"op": "truth", "since": 1e18})["bounds_hz"]]

    def back_after(self, begin_s: float, most_s: float) -> float | None:
        """Seconds from ``begin_s`` until the bounds are the original ones; None where they are not in ``most_s``."""
        while self.bounds_hz() != NANO_HZ:
            if time.monotonic() - begin_s > most_s:
                return None
            time.sleep(0.005)
        return time.monotonic() - begin_s


def one_round(
    board: Board, truth: Truth, nursery: Nursery, folder: Path, *, dice: random.Random, number: int
) -> dict[str, Any]:
    """One life of the service, its end, and what became of the bounds."""
    state, path, log = folder / "state", folder / "s", folder / "log"
    state.mkdir(exist_ok=True)
    log.write_bytes(b"")
    touched = Touched(state)
    pid = nursery.start(folder / "traingov.yaml", log)
    load = Load(board, path, number)
    by_time, seen = number % 5 < 2, 0
    if by_time:
        time.sleep(dice.uniform(0, LIFE_S))
    else:
        seen = touched.wait(dice.randrange(1, MOST_EVENTS), LIFE_S)
        time.sleep(dice.choice((0.0, dice.uniform(0, 0.003))))
    os.kill(pid, signal.SIGKILL)
    killed_s = time.monotonic()
    status = nursery.ended()
    touched.close()
    held = truth.bounds_hz()
    journal = sorted(entry.name for entry in state.iterdir() if entry.name.startswith("restore"))
    restored = subprocess.run(
        [SCRIPTS / "traingov", "restore", "--root", board.root, "--state-dir", state],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    took_s = truth.back_after(killed_s, 10.0)
    load.stop()
    left = sorted(entry.name for entry in state.iterdir() if entry.name.startswith("restore"))
    found = {
        "round": number, "by": "time" if by_time else "journal", "events": seen, "held": held, "journal": journal,
        "ended": status, "status": restored.returncode, "took_s": took_s, "left": left,
    }  # fmt: skip
    if took_s is None or took_s > WITHIN_S or left or restored.returncode != 0:
        found |= {
            "failed": True, "said": restored.stdout + restored.stderr, "bounds": truth.bounds_hz(),
            "log": log.read_text(errors="replace")[-4000:],
            "files": {name: (state / name).read_text(errors="replace") for name in left},
        }  # fmt: skip
    return found


def run(kills: int, seed: int, out: Path) -> list[dict[str, Any]]:
    """All rounds, each a line of ``out`` as it ends."""
    dice, rounds = random.Random(seed), []
    with Lab() as lab, out.open("w") as lines:
        board = lab.board("nano", "k", seed, fuse=True)
        folder = lab.directory / "k"
        config = {
            "root": board.root, "tegrastats": board.tegrastats, "socket": str(folder / "s"),
            "state_dir": str(folder / "state"), "metrics": {"listen": None}, "policy": "fixed",
            "fixed": {"gpu_frequency_hz": PINNED_HZ},
        }  # fmt: skip
        (folder / "traingov.yaml").write_text(json.dumps(config))
        truth, nursery = Truth(board), Nursery()
        assert truth.bounds_hz() == NANO_HZ, truth.bounds_hz()
        for number in range(kills):
            found = one_round(board, truth, nursery, folder, dice=dice, number=number)
            rounds.append(found)
            lines.write(json.dumps(found) + "\n")
            lines.flush()
            if found.get("failed") and truth.bounds_hz() != NANO_HZ:
                break  # what follows would say nothing
        nursery.close()
    return rounds


def show(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a run."""
    times = sorted(found["took_s"] for found in rounds if found["took_s"] is not None)
    return {
        "kills": len(rounds),
        "bounds_back_within_2_s": sum(found["took_s"] is not None and found["took_s"] <= WITHIN_S for found in rounds),
        "clock_was_changed": sum(found["held"] != NANO_HZ for found in rounds),
        "journal_was_there": sum("restore.json" in found["journal"] for found in rounds),
        "temporary_was_there": sum("restore.json.tmp" in found["journal"] for found in rounds),
        "temporary_left": sum("restore.json.tmp" in found["left"] for found in rounds),
        "restore_failed": sum(found["status"] != 0 for found in rounds),
        "failed_rounds": [found["round"] for found in rounds if found.get("failed")],
        "back_s": {"median": times[len(times) // 2], "worst": times[-1]} if times else None,
    }


def main() -> None:
    """Run, or show what a run found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--out", type=Path, default=Path("build/kills.jsonl"))
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show the figures of this run")
    parser.add_argument("--nursery", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.nursery:
        Nursery.work()
        return
    if options.show is not None:
        rounds = [json.loads(line) for line in options.show.read_text().splitlines()]
    else:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        rounds = run(options.kills, options.seed, options.out)
    print(json.dumps(show(rounds), indent=1))
    if any(found.get("failed") for found in rounds):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
