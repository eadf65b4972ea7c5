"""Peers that mean harm, or are broken: bounded, and others do not notice."""

import array
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

import pytest

from traingov.sessions.peer import Role

STATUS = b'{"jsonrpc":"2.0","id":1,"method":"status"}\n'


@pytest.fixture
def alive():
    """Shows that another session works, with its job."""

    def check(served):
        peer = served.peer()
        peer.register()
        assert peer.ask("status")["result"] == {"method": "status"}
        peer.close()

    return check


def test_random_bytes_harm_nobody(serve, alive, until):
    served = serve()
    other = served.peer()
    other.register()
    rng = random.Random(1)
    for _ in range(60):
        peer = served.peer()
        if rng.random() < 0.5:
            peer.hello()
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
        peer.send(data + rng.choice([b"", b"\n"]))
        peer.close()
    until(lambda: served.server.sessions == 1, "the end of the hostile sessions")
    assert other.ask("status")["result"] == {"method": "status"}
    assert served.handler.of("ended") == []


def test_mutilated_messages_harm_nobody(serve):
    served = serve()
    rng = random.Random(2)
    good = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "register",
            "params": {"workload": "x", "batch_sizes": [8, 16], "batch_size": 8, "features": {"layers": 3}},
        }
    ).encode()
    for _ in range(60):
        peer = served.peer().hello()
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 5)):
            bad[rng.randrange(len(bad))] = rng.choice(b'{}[]",:0-9eE\\x\x00\xff')
        peer.send(bytes(bad).replace(b"\n", b"") + b"\n" + STATUS)
        answers = []
        while not answers or answers[-1].get("result") != {"method": "status"}:
            answers.append(peer.line())
            assert answers[-1] is not None
        peer.close()


def test_too_long_a_message_ends_its_connection_only(serve, alive):
    served = serve()
    peer = served.peer().hello()
    peer.send(b'{"x":"' + b"a" * 70_000)
    messages = peer.ended()
    assert messages[0]["error"]["code"] == -32600
    assert "65536" in messages[0]["error"]["message"]
    assert messages[-1]["method"] == "bye"
    assert served.server.counters["too_long"] == 1
    alive(served)


def test_the_longest_message_allowed_is_read(serve):
    peer = serve().peer().hello()
    peer.send(STATUS[:-1] + b" " * (65536 - len(STATUS) + 1) + b"\n")
    assert peer.line()["result"] == {"method": "status"}


def test_deep_nesting_is_refused(serve, alive):
    served = serve()
    peer = served.peer()
    peer.send(b"[" * 60_000 + b"\n")
    assert peer.line()["error"]["code"] == -32700
    alive(served)


def test_a_half_message_then_silence_is_dropped(serve, alive, limits):
    served = serve(limits=limits(message_timeout_s=0.3))
    peer = served.peer()
    peer.register()
    peer.send(b'{"jsonrpc":')
    assert "not finished" in peer.ended()[-1]["params"]["reason"]
    assert served.handler.of("ended") == [("ended", "j0", "disconnected")]
    alive(served)


def test_one_who_trickles_bytes_is_dropped(serve, limits):
    served = serve(limits=limits(message_timeout_s=0.3))
    peer = served.peer().hello()
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.02):
            try:
                peer.socket.send(b" ")
            except OSError:
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        assert "not finished" in peer.ended()[-1]["params"]["reason"]
    finally:
        stop.set()
        thread.join()


def test_one_who_never_says_hello_is_dropped(serve, limits):
    peer = serve(limits=limits(hello_timeout_s=0.2)).peer()
    assert "no hello" in peer.ended()[-1]["params"]["reason"]


def test_an_idle_reader_is_dropped_and_a_silent_job_is_not(serve, limits):
    served = serve(limits=limits(idle_timeout_s=0.2))
    job, reader = served.peer(), served.peer()
    job.register()
    reader.hello()
    assert "no running job" in reader.ended()[-1]["params"]["reason"]
    assert "result" in job.ask("status")


def test_a_flood_is_slowed_and_then_dropped(serve, alive, limits):
    served = serve(limits=limits(throttle_timeout_s=0.5))
    other = served.peer()
    other.register()
    peer = served.peer().hello()
    sent = 0

    def flood():
        nonlocal sent
        try:
            while True:
                sent += peer.socket.send(b'{"jsonrpc":"2.0","method":"nothing"}\n' * 1000)
        except OSError:
            pass

    thread = threading.Thread(target=flood)
    thread.start()
    for _ in range(20):
        assert "result" in other.ask("status"), "another session is served during the flood"
    thread.join(10)
    assert not thread.is_alive()
    assert served.server.counters["too_fast"] == 1
    # The burst, and what the rate allowed meanwhile; nothing near what was sent.
    assert served.server.counters["messages"] < 1000
    alive(served)


def test_a_burst_within_the_limits_is_answered_wholly(serve):
    peer = serve().peer().hello()
    peer.send(STATUS * 300)
    assert all(peer.line()["result"] == {"method": "status"} for _ in range(300))


def test_a_slow_reader_is_dropped_and_memory_stays_bounded(serve, alive, limits):
    served = serve(limits=limits(write_timeout_s=0.3))
    peer = served.peer().hello()
    ask = b'{"jsonrpc":"2.0","id":1,"method":"explain","params":{"job":"big"}}\n'
    peer.send(ask * 100)  # 6 MB of answers, none read
    deadline = time.monotonic() + 10
    while served.server.sessions and time.monotonic() < deadline:
        time.sleep(0.01)
    assert served.server.sessions == 0
    assert served.server.counters["slow_reader"] == 1
    assert served.server.counters["messages"] < 20, "nothing was computed that could not be sent"
    alive(served)


def test_one_who_reads_late_gets_every_answer(serve):
    served = serve()
    peer = served.peer().hello()
    peer.send(b'{"jsonrpc":"2.0","id":1,"method":"explain","params":{"job":"big"}}\n' * 40)
    time.sleep(0.2)
    assert served.server.counters["messages"] < 20, "no answer is made before there is room for it"
    for _ in range(40):
        assert len(peer.line()["result"]) == 60_000


def test_advice_that_is_not_read_ends_the_connection(serve, until, limits):
    served = serve(limits=limits(write_buffer_bytes=4096, write_timeout_s=60))
    peer = served.peer()
    peer.register()
    session = served.handler.sessions["j0"]

    def advise_much():
        for number in range(20_000):
            session.advise(number, 8, "train", "x" * 200)

    served.call(advise_much)
    until(lambda: served.handler.of("ended"), "the end of the job")
    assert served.server.counters["slow_reader"] == 1


def test_thousands_of_connections_are_bounded_and_a_freed_place_can_be_taken(serve, limits):
    served = serve(limits=limits(max_sessions=16, reserved_for_admins=0))
    peers = [served.peer().hello() for _ in range(16)]
    for _ in range(2000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as extra:
            extra.connect(str(served.path))
    assert served.server.sessions == 16
    late = served.peer()
    assert "too many sessions" in late.ended()[0]["params"]["reason"]
    peers.pop().close()
    deadline = time.monotonic() + 10
    while served.server.sessions == 16 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert "result" in served.peer().ask("hello", protocol=1, client="x")


class Place:
    """Stands for a connection where only its place counts."""

    def check_deadlines(self, now_s):
        pass


def test_the_last_places_are_for_administrators(serve, limits):
    served = serve(limits=limits(max_sessions=10, reserved_for_admins=4))
    places = [Place() for _ in range(11)]
    try:
        admitted = [served.call(lambda place=place: served.server.admit(place, Role.USER)) for place in places[:7]]
        assert admitted == [True] * 6 + [False]
        admitted = [served.call(lambda place=place: served.server.admit(place, Role.ADMIN)) for place in places[7:]]
        assert admitted == [True] * 4
        assert not served.call(lambda: served.server.admit(Place(), Role.ADMIN))
    finally:
        for place in places:
            served.call(lambda place=place: served.server.forget(place))


def test_received_descriptors_are_not_kept(serve, alive):
    served = serve()
    peer = served.peer().hello()
    before = len(os.listdir("/proc/self/fd"))
    read, write = os.pipe()
    for _ in range(20):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [write] * 10))]
        peer.socket.sendmsg([STATUS], rights)
        assert peer.line()["result"] == {"method": "status"}
    os.close(write)
    assert os.read(read, 1) == b"", "no copy of the writing end is left"
    os.close(read)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("registers", [True, False])
def test_descriptors_do_not_leak_over_many_sessions(serve, until, registers):
    served = serve()

    def once():
        peer = served.peer()
        if registers:
            peer.register()
        else:
            peer.hello()
        peer.close()
        until(lambda: served.server.sessions == 0, "the end of the session")

    once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        once()
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(served.handler.of("ended")) == (51 if registers else 0)


_FORKS = """
import json, os, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
def ask(method, **params):
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\\n"); f.flush()
    return json.loads(f.readline())
assert "result" in ask("hello", protocol=1, client="forker/1")
assert "result" in ask("register", workload="x", batch_sizes=[1], batch_size=1)
child = os.fork()
if child == 0:
    os.close(1); time.sleep(60); os._exit(0)
print(child, flush=True)
sys.stdin.readline()
os._exit(0)
"""


@pytest.mark.parametrize("by", ["pidfd", "polling"])
def test_a_forked_child_that_holds_the_socket_does_not_keep_the_job_alive(serve, until, monkeypatch, by):
    if by == "polling":
        monkeypatch.setattr("traingov.sessions.connection.peer_pidfd", lambda connection: None)
        monkeypatch.setattr("traingov.sessions.liveness._open_pidfd", lambda pid: None)
    served = serve()
    process = subprocess.Popen(
        [sys.executable, "-c", _FORKS, str(served.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child = int(process.stdout.readline())
    try:
        assert served.handler.requests["j0"].pid == process.pid
        process.stdin.write("\n")
        process.stdin.flush()
        process.wait(10)
        until(lambda: served.handler.of("ended"), "the end of the job")
        assert served.handler.of("ended") == [("ended", "j0", "exited")]
        os.kill(child, 0)  # the child still runs, and still holds the socket
        until(lambda: served.server.sessions == 0, "the end of the session")
    finally:
        os.kill(child, 9)
        process.stdin.close()
        process.stdout.close()
