"""The server by raw bytes, and by a JSON-RPC library that is not ours."""

import json
import os
import socket
import stat
import subprocess
import sys
import time

import jsonrpcclient
import pytest

from traingov.sessions import listener
from traingov.sessions.handler import Refused, RegisterReply
from traingov.sessions.listener import ForeignFileError, SocketInUseError
from traingov.sessions.peer import Access

NOBODY = Access(daemon_uid=4_000_000)


def steps(**more):
    fields = {"batch_size": 16, "steps": 2, "samples": 32, "elapsed_s": 0.1, "end_s": time.monotonic(), "synced": True}
    return {**fields, **more}


def test_a_job_lives_from_hello_to_end(serve, until):
    served = serve(board="virtual")
    peer = served.peer()
    assert peer.ask("hello", protocol=1, client="test/1")["result"] == {
        "protocol": 1,
        "server": "traingov/0.1.0",
        "board": "virtual",
    }
    reply = peer.ask(
        "register",
        workload="resnet18",
        batch_sizes=[32, 8, 16],
        batch_size=16,
        policy="energy",
        features={"layers": 6, "seq_len_avg": 41.5},
        signature={"precision": "fp16"},
        samples_total=1000,
    )
    assert reply["result"] == {"job": "j0", "batch_size": 16, "phase": "train", "advice": None}
    request = served.handler.requests["j0"]
    assert request.batch_sizes == (8, 16, 32)
    assert request.pid == os.getpid()
    assert (request.features.layers, request.features.seq_len_avg) == (6, 41.5)
    assert request.signature.precision == "fp16"
    peer.tell("steps", **steps(seq_len_avg=40))
    peer.tell("batch_applied", batch_size=32, advice=3)
    peer.tell("batch_failed", batch_size=32, reason="out_of_memory")
    assert peer.ask("end")["result"] is None
    kinds = [entry[0] for entry in served.handler.log]
    assert kinds == ["register", "steps", "batch_applied", "batch_failed", "ended"]
    assert served.handler.log[1][2].seq_len_avg == 40
    peer.close()
    until(lambda: served.server.sessions == 0, "the end of the session")
    assert served.handler.of("ended") == [("ended", "j0", "end")]


def test_a_foreign_json_rpc_library_is_understood(serve):
    peer = serve().peer()
    peer.send(jsonrpcclient.request_json("hello", {"protocol": 1, "client": "lib/4"}).encode() + b"\n")
    hello = jsonrpcclient.parse(peer.line())
    assert isinstance(hello, jsonrpcclient.Ok)
    peer.send(jsonrpcclient.request_json("status").encode() + b"\n")
    assert jsonrpcclient.parse(peer.line()).result == {"method": "status"}
    batch = [jsonrpcclient.request("status"), jsonrpcclient.notification("nothing"), jsonrpcclient.request("nothing")]
    peer.send(batch)
    first, second = jsonrpcclient.parse(peer.line())
    assert isinstance(first, jsonrpcclient.Ok)
    assert isinstance(second, jsonrpcclient.Error)
    assert second.code == -32601


def test_advice_reaches_the_job_and_no_ended_one(serve, until):
    served = serve()
    peer = served.peer()
    peer.register()
    session = served.handler.sessions["j0"]
    served.call(lambda: session.advise(7, 32, "profile", "two\nlines"))
    fields = {"advice": 7, "batch_size": 32, "phase": "profile", "reason": "two lines"}
    assert peer.line() == {"jsonrpc": "2.0", "method": "advise", "params": fields}
    peer.ask("end")
    served.call(lambda: session.advise(8, 8, "train", "too late"))
    assert peer.ask("status")["result"] == {"method": "status"}


def test_another_protocol_version_is_refused_naming_both(serve):
    peer = serve().peer()
    text = peer.ask("hello", protocol=2, client="future/9")["error"]["message"]
    assert "future/9 speaks protocol 2" in text
    assert "traingov/0.1.0 speaks protocol 1" in text
    assert peer.ended()[-1]["method"] == "bye"


@pytest.mark.parametrize("method", ["register", "status", "steps", "cap.set", "end"])
def test_nothing_is_done_before_hello(serve, method):
    assert serve().peer().ask(method)["error"]["code"] == -32002


@pytest.mark.parametrize("method", ["steps", "batch_applied", "batch_failed", "end"])
def test_reports_need_a_job(serve, method):
    fields = {
        "steps": steps(),
        "batch_applied": {"batch_size": 8},
        "batch_failed": {"batch_size": 8, "reason": "x"},
        "end": {},
    }
    assert serve().peer().hello().ask(method, **fields[method])["error"]["code"] == -32002


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"batch_size": 7}, "batch_size"),
        ({"batch_sizes": []}, "batch_sizes"),
        ({"batch_sizes": [8, 8, 16]}, "batch_sizes"),
        ({"batch_sizes": list(range(1, 66))}, "batch_sizes"),
        ({"batch_sizes": [16, True]}, "batch_sizes[1]"),
        ({"batch_sizes": [16, 2**80]}, "batch_sizes[1]"),
        ({"workload": "x" * 257}, "workload"),
        ({"workload": "a\u0007b"}, "workload"),
        ({"workload": "\ud800"}, "workload"),
        ({"pid": 0}, "pid"),
        ({"policy": "fast"}, "policy"),
        ({"features": {"depth": 3}}, "features.'depth'"),
        ({"features": {"layers": 2.0}}, "features.layers"),
        ({"features": {"seq_len_avg": 1e999}}, "Infinity"),
        ({"surprise": 1}, "'surprise'"),
        ({"samples_done": -1}, "samples_done"),
    ],
)
def test_a_bad_registration_is_refused_naming_the_field(serve, change, field):
    served = serve()
    error = served.peer().register(**change)["error"] if field != "Infinity" else None
    if error is None:
        peer = served.peer().hello()
        peer.send(b'{"jsonrpc":"2.0","id":5,"method":"register","params":{"workload":"x","batch_sizes":[16],')
        peer.send(b'"batch_size":16,"features":{"seq_len_avg":1e999}}}\n')
        error = peer.line()["error"]
        field = "features.seq_len_avg"
    assert error["code"] == -32602
    assert field in error["message"]
    assert not served.handler.log


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"batch_size": 64}, "batch_size"),
        ({"elapsed_s": 0}, "elapsed_s"),
        ({"steps": 0}, "steps"),
        ({"synced": 1}, "synced"),
        ({"seq_len_avg": -1}, "seq_len_avg"),
        ({"end_s": 1e11}, "CLOCK_MONOTONIC"),
    ],
)
def test_a_bad_report_is_refused_and_changes_nothing(serve, change, word):
    served = serve()
    peer = served.peer()
    peer.register()
    error = peer.ask("steps", **steps(**change))["error"]
    assert error["code"] == -32602
    assert word in error["message"]
    peer.tell("steps", **steps(**change))
    assert "result" in peer.ask("status"), "a bad notification gets no answer"
    assert not served.handler.of("steps")
    assert served.server.counters["rejected"] == 2


def test_nan_is_refused(serve):
    peer = serve().peer()
    peer.send(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":NaN,"client":"x"}}\n')
    assert peer.line()["error"]["code"] == -32700


def test_a_second_registration_on_a_connection_is_refused(serve):
    peer = serve().peer()
    peer.register()
    fields = {"workload": "y", "batch_sizes": [1], "batch_size": 1}
    assert "one connection is one job" in peer.ask("register", **fields)["error"]["message"]


def test_the_handlers_refusal_is_the_answer_and_one_may_ask_again(serve):
    served = serve()
    served.handler.fail = Refused(-32010, "one job at a time: wait for j1")
    peer = served.peer()
    assert peer.register()["error"] == {"code": -32010, "message": "one job at a time: wait for j1"}
    served.handler.fail = None
    fields = {"workload": "y", "batch_sizes": [1], "batch_size": 1}
    assert "result" in peer.ask("register", **fields)


@pytest.mark.parametrize("job", ["crash", "nan"])
def test_a_fault_of_the_handler_is_answered_and_the_session_stays(serve, job):
    peer = serve().peer().hello()
    assert peer.ask("explain", job=job)["error"]["code"] == -32603
    assert "result" in peer.ask("status")


def test_an_administrator_may_set_the_cap_and_a_wrong_cap_is_refused(serve):
    served = serve()
    peer = served.peer().hello()
    sent = {"window_s": None, "burst_w": None, "source": None, "ttl_s": None, "override": False}
    assert peer.ask("cap.set", power_w=10)["result"] == {"done": "cap.set"}
    assert served.handler.log == [("cap.set", {**sent, "power_w": 10.0}, os.getuid())]
    for wrong in ({"power_w": -1}, {"power_w": 10, "burst_w": 5}, {"power_w": 10, "window_s": 0.001}):
        assert peer.ask("cap.set", **wrong)["error"]["code"] == -32602


@pytest.mark.skipif(
    os.getuid() == 0, reason="root may do everything; the case of a user as a stranger needs another user"
)
def test_a_stranger_is_turned_away(serve):
    peer = serve(access=NOBODY).peer()
    assert peer.ask("hello", protocol=1, client="x")["error"]["code"] == -32003


_AS_USER = """
import json, os, socket, sys
os.setgroups(json.loads(sys.argv[2])); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1]); f = s.makefile("rw")
for line in sys.argv[3:]:
    f.write(line + "\\n"); f.flush(); print(f.readline(), end="")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_groups_decide_what_another_user_may_do(serve, tmp_path):
    access = Access(daemon_uid=0, user_gid=71001, admin_gid=71002)
    served = serve(access=access, mode=0o666)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    asks = [
        {"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol": 1, "client": "x"}},
        {"jsonrpc": "2.0", "id": 2, "method": "cap.clear"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "register",
            "params": {"workload": "x", "batch_sizes": [1], "batch_size": 1, "pid": os.getpid()},
        },
    ]

    def answers(groups, asks=asks):
        words = [json.dumps(ask) for ask in asks]
        command = [sys.executable, "-c", _AS_USER, str(served.path), json.dumps(groups), *words]
        out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
        return [json.loads(line) for line in out.splitlines() if line]

    user = answers([71001])
    assert "result" in user[0]
    assert user[1]["error"]["code"] == -32003, "a user may not lift the cap"
    assert user[2]["error"]["code"] == -32003, "nobody may register a process of another user"
    assert "result" in answers([71002])[1]
    assert answers([], asks[:1])[0]["error"]["code"] == -32003


def test_a_stale_socket_is_replaced_and_a_live_one_and_a_foreign_file_are_not(serve, tmp_path):
    path = tmp_path / "s.sock"
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(path))
    left.close()
    served = serve(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    with pytest.raises(SocketInUseError, match="another daemon"):
        serve(path)
    assert "result" in served.peer().ask("hello", protocol=1, client="x"), "the live one goes on"
    foreign = tmp_path / "notes.txt"
    foreign.write_text("dear diary")
    with pytest.raises(ForeignFileError, match="left alone"):
        serve(foreign)
    assert foreign.read_text() == "dear diary"
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(ForeignFileError):
        serve(link)


def test_the_socket_goes_on_close_but_not_one_that_took_its_place(serve, tmp_path):
    served = serve(tmp_path / "a.sock")
    served.stop()
    assert not served.path.exists()
    served = serve(tmp_path / "b.sock")
    served.path.unlink()
    served.path.write_text("somebody else's")
    served.stop()
    assert served.path.read_text() == "somebody else's"


def test_closing_says_bye_and_ends_the_jobs(serve):
    served = serve()
    peer = served.peer()
    peer.register()
    served.stop()
    assert [message["method"] for message in peer.ended()] == ["bye"]
    assert served.handler.of("ended") == [("ended", "j0", "disconnected")]


def test_a_socket_from_systemd_is_taken_over_and_left_in_place(tmp_path):
    path = tmp_path / "s.sock"
    script = f"""
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {str(os.path.dirname(__file__))!r})
from traingov.sessions.listener import inherited_listener
from traingov.sessions.server import SessionServer
from traingov.sessions.peer import Access
import conftest
os.environ["LISTEN_PID"] = str(os.getpid()); os.environ["LISTEN_FDS"] = "1"
async def main():
    listener = inherited_listener(os.environ)
    assert listener is not None and "LISTEN_FDS" not in os.environ
    server = SessionServer(Path({str(path)!r}), conftest.Recorder(), access=Access(os.geteuid()), listener=listener)
    await server.start()
    reader, writer = await asyncio.open_unix_connection({str(path)!r})
    writer.write(b'{{"jsonrpc":"2.0","id":1,"method":"hello","params":{{"protocol":1,"client":"x"}}}}\\n')
    print((await reader.readline()).decode())
    await server.close()
asyncio.run(main())
"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(8)
        copy = os.dup(listening.fileno())

        def give():
            os.dup2(copy, 3)
            os.set_inheritable(3, True)

        done = subprocess.run(
            [sys.executable, "-c", script],
            preexec_fn=give,
            pass_fds=[3, copy],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        os.close(copy)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["protocol"] == 1
    assert path.exists(), "the path belongs to systemd"


def test_environment_for_another_process_is_not_taken_for_ours():
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "OTHER": "x"}
    assert listener.inherited_listener(environ) is None
    assert environ == {"OTHER": "x"}


def test_a_registration_reply_may_bring_advice(serve):
    served = serve()
    served.handler.reply = lambda request: RegisterReply("resnet18-1", 8, "profile", 1)
    result = served.peer().register()["result"]
    assert result == {"job": "resnet18-1", "batch_size": 8, "phase": "profile", "advice": 1}
