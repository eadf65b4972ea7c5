"""A session server on a loop of its own thread, with a handler that writes down what it is told."""

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from traingov.sessions.handler import Refused, RegisterReply
from traingov.sessions.limits import Limits
from traingov.sessions.peer import Access
from traingov.sessions.server import SessionServer


class Recorder:
    """A Handler. ``log`` holds what was called, ``reply`` makes the answer to register."""

    def __init__(self):
        self.log = []
        self.sessions = {}
        self.requests = {}
        self.reply = lambda request: RegisterReply(f"j{len(self.requests)}", request.batch_size)
        self.fail = None

    def register(self, session, request):
        if self.fail is not None:
            raise self.fail
        reply = self.reply(request)
        self.sessions[reply.job] = session
        self.requests[reply.job] = request
        self.log.append(("register", reply.job))
        return reply

    def steps(self, session, report):
        self.log.append(("steps", session.job, report))

    def batch_applied(self, session, batch_size, advice):
        self.log.append(("batch_applied", session.job, batch_size, advice))

    def paused(self, session, reason):
        self.log.append(("paused", session.job, reason))

    def batch_failed(self, session, batch_size, reason):
        self.log.append(("batch_failed", session.job, batch_size, reason))

    def ended(self, session, reason):
        self.log.append(("ended", session.job, reason))

    def query(self, method, params):
        if method == "explain" and params["job"] == "nan":
            return float("nan")
        if method == "explain" and params["job"] == "big":
            return "x" * 60_000
        if method == "explain" and params["job"] == "crash":
            raise RuntimeError("a fault of the handler")
        if method == "explain" and params["job"] is not None:
            raise Refused(text=f"there is no job {params['job']}")
        return {"method": method}

    def command(self, method, params, who):
        self.log.append((method, params, who.uid))
        return {"done": method}

    def of(self, kind):
        return [entry for entry in self.log if entry[0] == kind]


class Served:
    """A running server. ``call`` runs a function on its loop."""

    def __init__(self, path, **options):
        self.path = Path(path)
        self.handler = Recorder()
        self.server = SessionServer(self.path, self.handler, **options)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.run(self.server.start())

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def call(self, function):
        async def on_loop():
            return function()

        return self.run(on_loop())

    def stop(self):
        if not self.loop.is_closed():
            self.run(self.server.close())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
            self.loop.close()

    def peer(self):
        return Peer(self.path)


class Peer:
    """The other end, by raw bytes. Every read is bounded, so a test fails instead of hanging."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # With a timeout connect(2) would not wait for room in a full backlog.
        self.socket.connect(str(path))
        self.socket.settimeout(10)
        self.rest = b""
        self.number = 0

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def line(self):
        """The next message, None at the end of the stream."""
        while b"\n" not in self.rest:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def ask(self, method, **params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        answer = self.line()
        assert answer is not None, "the connection ended without an answer"
        assert answer["id"] == self.number
        return answer

    def tell(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def hello(self):
        answer = self.ask("hello", protocol=1, client="test/1")
        assert "result" in answer, answer
        return self

    def register(self, **more):
        fields = {"workload": "resnet18", "batch_sizes": [8, 16, 32], "batch_size": 16, **more}
        return self.hello().ask("register", **fields)

    def ended(self):
        """Read to the end of the stream; the messages before it."""
        messages = []
        while (message := self.line()) is not None:
            messages.append(message)
        return messages

    def close(self):
        self.socket.close()


def wait_until(condition, what="the condition"):
    """Wait until something that must come has come."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within 10 s"
        time.sleep(0.005)


@pytest.fixture
def until():
    return wait_until


@pytest.fixture
def serve(tmp_path):
    """Starts servers that end with the test: ``serve(limits=..., access=...)``."""
    with contextlib.ExitStack() as stack:

        def start(path=None, **options):
            options.setdefault("access", Access(daemon_uid=os.geteuid()))
            served = Served(path or tmp_path / "s.sock", **options)
            stack.callback(served.stop)
            return served

        yield start


@pytest.fixture
def limits():
    return Limits
