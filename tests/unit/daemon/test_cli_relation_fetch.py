"""Fetching a relation vector: from files and from a real HTTP server, and what is refused."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from traingov import fetching
from traingov.cli.relation import group
from traingov.store import load_relations
from traingov_policies.relation import RelationVector

RELATION = RelationVector.from_runs("resnet18", {8: [10.0, 12.0], 32: [20.0, 20.0]}, target=0.9, dataset="cifar10")
GOOD = json.dumps(RELATION.to_json()).encode()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/good":
            self.answer(GOOD)
        elif self.path == "/moved":
            self.redirect("/good")
        elif self.path == "/round":
            self.redirect("/round")
        elif self.path == "/to-file":
            self.redirect("file:///etc/passwd")
        elif self.path == "/to-ftp":
            self.redirect("ftp://127.0.0.1/r.json")
        elif self.path == "/large":
            self.answer(b" " * (fetching.MAX_BYTES + 1))
        elif self.path == "/short":
            self.answer(GOOD, length=len(GOOD) + 100)
        elif self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            while not self.server.over.wait(0.05):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return
        else:
            self.send_error(404)

    def answer(self, body, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, to):
        self.send_response(302)
        self.send_header("Location", to)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.over = threading.Event()
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.over.set()
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def run(*arguments):
    return CliRunner().invoke(group, [str(a) for a in arguments])


def test_a_vector_from_a_server_is_kept_where_the_service_reads_it(server, tmp_path):
    done = run("fetch", f"{server}/good", "--state-dir", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    assert load_relations([tmp_path / "relations"]) == {"resnet18": RELATION}
    assert Path(json.loads(done.output)["path"]) == tmp_path / "relations" / "resnet18.json"


def test_a_redirect_within_http_is_followed(server, tmp_path):
    assert run("fetch", f"{server}/moved", "--state-dir", tmp_path).exit_code == 0


@pytest.mark.parametrize("as_url", [True, False])
def test_a_vector_from_a_file_is_kept(tmp_path, as_url):
    source = tmp_path / "r s.json"
    source.write_bytes(GOOD)
    done = run("fetch", source.as_uri() if as_url else source, "--state-dir", tmp_path / "state")
    assert done.exit_code == 0, done.output
    assert "from its next start" in done.output
    assert load_relations([tmp_path / "state" / "relations"]) == {"resnet18": RELATION}


def test_a_second_vector_takes_the_place_of_the_first_even_under_another_name(tmp_path):
    kept = tmp_path / "relations"
    kept.mkdir()
    (kept / "a-by-hand.json").write_text(json.dumps(RelationVector("resnet18", (8,), (1.0,)).to_json()))
    (kept / "b-damaged.json").write_text("{")
    source = tmp_path / "r.json"
    source.write_bytes(GOOD)
    assert run("fetch", source, "--state-dir", tmp_path).exit_code == 0
    assert load_relations([kept]) == {"resnet18": RELATION}
    assert sorted(p.name for p in kept.iterdir()) == ["a-by-hand.json", "b-damaged.json"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/absent", 1, "answers 404"),
        ("/large", 2, "larger than 1024 KiB"),
        ("/short", 1, "100 bytes early"),
        ("/to-file", 1, "not allowed"),
        ("/to-ftp", 2, "not http or https"),
        ("/round", 1, "answers 302"),
        ("/slow", 1, "no answer within 0.3 s"),
    ],
)
def test_a_bad_answer_is_one_line_and_nothing_is_written(server, tmp_path, path, status, said):
    done = run("fetch", f"{server}{path}", "--state-dir", tmp_path, "--timeout", "0.3" if path == "/slow" else "20")
    assert done.exit_code == status
    assert said in done.output
    assert done.output.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_server_is_a_failure_in_one_line(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        done = run("fetch", f"http://127.0.0.1:{free.getsockname()[1]}/r.json", "--state-dir", tmp_path)
    assert done.exit_code == 1
    assert done.output.count("\n") == 1


def test_a_server_that_does_not_speak_http_is_a_failure_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def babble():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"220 mail ready\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        done = run("fetch", f"http://127.0.0.1:{listener.getsockname()[1]}/", "--state-dir", tmp_path)
        thread.join()
    assert done.exit_code == 1
    assert "not HTTP" in done.output


def changed(**fields):
    return json.dumps({**RELATION.to_json(), **fields}).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "is not of type 'object'"),
        (changed(schema="traingov.lut/1"), "schema"),
        (changed(relative_samples=[0.5, 1.5]), "relative_samples.1"),
        (changed(relative_samples=[0.5]), "1 values for 2 batch sizes"),
        (changed(batch_sizes=[32, 8]), "must ascend"),
        (changed(interval=[[0.9, 0.95], [0.9, 1.1]]), "does not hold its value"),
        (changed(interval=[[0.4, 0.6]]), "1 pairs for 2 batch sizes"),
        (changed(surprise=1), "surprise"),
    ],
)
def test_what_is_no_relation_vector_is_refused_and_the_old_one_stays(tmp_path, content, said):
    kept = tmp_path / "relations"
    kept.mkdir()
    (kept / "resnet18.json").write_bytes(GOOD)
    source = tmp_path / "new.json"
    source.write_bytes(content)
    done = run("fetch", source, "--state-dir", tmp_path)
    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1
    assert (kept / "resnet18.json").read_bytes() == GOOD


@pytest.mark.parametrize("source", ["ftp://server/r.json", "/no/such/file", "/dev", "file://server/r.json"])
def test_a_source_that_makes_no_sense_is_wrong_input(tmp_path, source):
    done = run("fetch", source, "--state-dir", tmp_path)
    assert done.exit_code == 2
    assert source in done.output


def test_a_vector_of_another_workload_is_refused_where_one_is_named(tmp_path):
    source = tmp_path / "r.json"
    source.write_bytes(GOOD)
    done = run("fetch", source, "--state-dir", tmp_path / "state", "--workload", "mobilenetv2")
    assert done.exit_code == 2
    assert "is of workload 'resnet18', not 'mobilenetv2'" in done.output
    assert not (tmp_path / "state").exists()


def test_a_workload_with_an_odd_name_stays_inside_the_folder(tmp_path):
    path = fetching.keep(RelationVector("../../x", (8,), (1.0,)), tmp_path / "relations")
    assert path.parent == tmp_path / "relations"


def test_show_lists_and_prints_intervals_and_says_what_is_assumed_without(tmp_path):
    fetching.keep(RELATION, tmp_path / "relations")
    assert "resnet18: cifar10, target 0.9" in run("show", "--state-dir", tmp_path).output
    shown = run("show", "resnet18", "--state-dir", tmp_path).output.splitlines()
    low, high = RELATION.interval_of(8)
    assert shown[1] == f"     8  0.550  {low:.3f} to {high:.3f}"
    done = run("show", "none", "--state-dir", tmp_path)
    assert done.exit_code == 2
    assert "r = 1" in done.output
