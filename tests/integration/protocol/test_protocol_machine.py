"""Many peers at once, in any order: right and wrong messages, halves of them, floods, silence, sudden ends.

A model of what the server must hold is kept beside it: which sessions are open, which have a job. After any step the
server's own account is the model's, and a peer that does nothing wrong is answered.
"""

import importlib.util
import json
import os
import socket
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from traingov.sessions.limits import Limits
from traingov.sessions.peer import Access

# A state machine takes no fixtures, so it takes what they are made of.
_spec = importlib.util.spec_from_file_location("protocol_rig", Path(__file__).with_name("conftest.py"))
_rig = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_rig)
Served, wait_until = _rig.Served, _rig.wait_until

MOST = 6
REGISTER = {"workload": "x", "batch_sizes": [8, 16], "batch_size": 8}
STEPS = {"batch_size": 8, "steps": 1, "samples": 8, "elapsed_s": 0.1, "end_s": 1.0, "synced": True}
WRONG = st.sampled_from(
    [
        b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"[" * 40 + b"\n", b'{"jsonrpc":"2.0"}\n', b'{"a":NaN}\n',
        b'{"jsonrpc":"2.0","method":"steps"}\n', b'{"jsonrpc":"2.0","id":{},"method":"status"}\n',
        b'{"jsonrpc":"2.0","id":1,"result":1}\n', b'[{"jsonrpc":"2.0","method":"end"},3]\n', b"1" * 500 + b"\n",
    ]
)  # fmt: skip
NOISE = st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"") + b"\n")


class Talk:
    """A peer and what it did."""

    def __init__(self, peer):
        self.peer, self.greeted, self.job, self.half, self.reads, self.ended = peer, False, None, False, True, False


class Sessions(RuleBasedStateMachine):
    talks = Bundle("talks")

    def __init__(self):
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        limits = Limits(max_sessions=MOST + 1, reserved_for_admins=0, hello_timeout_s=60, throttle_timeout_s=60)
        access = Access(daemon_uid=os.geteuid())
        self.served = Served(Path(self._folder.name) / "s", limits=limits, access=access)
        self.good = self.served.peer()
        self.good.register()
        self.open = []
        self.jobs = 1

    def teardown(self):
        for talk in self.open:
            talk.peer.close()
        self.good.close()
        self.served.stop()
        self._folder.cleanup()

    @precondition(lambda self: len(self.open) < MOST)
    @rule(target=talks, far=st.integers(0, 2))
    def connect(self, far):
        talk = Talk(self.served.peer())
        self.open.append(talk)
        wait_until(lambda: self.served.server.sessions == len(self.open) + 1, "the connection")
        for step in (self.hello, self.register)[:far]:
            step(talk)
        return talk

    @precondition(lambda self: len(self.open) == MOST)
    @rule(target=talks)
    def one_too_many(self):
        peer = self.served.peer()
        assert "too many sessions" in peer.ended()[-1]["params"]["reason"]
        peer.close()
        return multiple()

    def _ask(self, talk, method, **params):
        """The answer to a request; answers to earlier wrong messages are passed over."""
        talk.peer.number += 1
        number = f"n{talk.peer.number}"
        talk.peer.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while (answer := talk.peer.line()) is not None:
            one = answer[0] if isinstance(answer, list) else answer
            if one.get("id") == number:
                return one
        raise AssertionError("the connection ended without an answer")

    def _usable(self, talk):
        return talk in self.open and not talk.half and talk.reads

    @rule(talk=talks)
    def hello(self, talk):
        if self._usable(talk):
            assert "result" in self._ask(talk, "hello", protocol=1, client="m/1")
            talk.greeted = True

    @rule(talk=talks)
    def register(self, talk):
        if not self._usable(talk):
            return
        answer = self._ask(talk, "register", **REGISTER)
        if not talk.greeted or talk.job is not None or talk.ended:
            assert answer["error"]["code"] == -32002
        else:
            talk.job = answer["result"]["job"]
            self.jobs += 1

    @rule(talk=talks)
    def steps(self, talk):
        if not self._usable(talk):
            return
        before = len(self.served.handler.of("steps"))
        talk.peer.tell("steps", **STEPS)
        if talk.greeted:
            self._ask(talk, "status")
            assert len(self.served.handler.of("steps")) == before + (talk.job is not None)

    @rule(talk=talks)
    def end(self, talk):
        if self._usable(talk):
            talk.peer.tell("end")
            if talk.greeted:
                self._ask(talk, "status")
            if talk.job is not None:
                talk.job, talk.ended = None, True

    @rule(talk=talks, data=st.one_of(WRONG, NOISE))
    def wrong(self, talk, data):
        if self._usable(talk) and b'"end"' not in data:
            talk.peer.send(data)

    @rule(talk=talks)
    def half_a_message(self, talk):
        if self._usable(talk):
            talk.peer.send(b'{"jsonrpc":"2.0","me')
            talk.half = True

    @rule(talk=talks)
    def flood_without_reading(self, talk):
        if self._usable(talk):
            talk.reads = False
            talk.peer.socket.setblocking(False)
            line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "status"}).encode() + b"\n"
            try:
                for _ in range(200):
                    talk.peer.socket.send(line)
            except (BlockingIOError, ConnectionError):
                pass

    @rule(talk=consumes(talks), how=st.sampled_from(["close", "shutdown"]))
    def leave(self, talk, how):
        if talk not in self.open:
            return
        if how == "shutdown":
            talk.peer.socket.shutdown(socket.SHUT_RDWR)
        talk.peer.close()
        self.open.remove(talk)
        job = talk.job
        wait_until(lambda: self.served.server.sessions == len(self.open) + 1, "its end")
        if job is not None:
            assert [entry for entry in self.served.handler.of("ended") if entry[1] == job], "the job outlived its peer"

    @invariant()
    def the_good_peer_is_answered_and_the_accounts_agree(self):
        assert self.good.ask("status")["result"] == {"method": "status"}
        handler = self.served.handler
        assert len(handler.of("register")) == self.jobs
        running = len(handler.of("register")) - len(handler.of("ended"))
        assert running == 1 + sum(talk.job is not None for talk in self.open)


Sessions.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
TestSessions = Sessions.TestCase
