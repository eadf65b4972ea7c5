"""The small HTTP server: what it answers, and that nobody can hold it up."""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from traingov.metrics import server as module
from traingov.metrics.access import MetricsOptions, hash_password
from traingov.metrics.server import MetricsServer
from traingov.metrics.text import CONTENT_TYPE, Readings


@dataclass
class Served:
    port: int
    told: list[str | None] = field(default_factory=list)
    asked: int = 0
    answers: bool = True

    def ask(self) -> Readings:
        self.asked += 1
        if not self.answers:
            raise TimeoutError("stuck")
        readings = Readings()
        readings.put("traingov_input_power_watts", 6.5)
        return readings

    def get(self, path: str = "/metrics", **headers: str) -> tuple[int, bytes, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers["Content-Type"]

    def raw(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(data)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def serving(port: int | None = None, **more: object) -> Iterator[Served]:
    served = Served(free_port() if port is None else port)
    options = MetricsOptions(socket.AF_INET, "127.0.0.1", served.port, **more)  # type: ignore[arg-type]
    server = MetricsServer(options, served.ask, served.told.append)
    server.start()
    try:
        wait_for(lambda: served.told)
        yield served
    finally:
        server.stop()


def test_the_page_comes_with_its_content_type_and_the_process_own_figures() -> None:
    with serving() as served:
        status, page, kind = served.get()
    assert (status, kind) == (200, CONTENT_TYPE)
    assert b"\ntraingov_input_power_watts 6.5\n" in page
    assert b"\nprocess_resident_memory_bytes " in page


def test_other_paths_and_methods_and_nonsense_are_refused() -> None:
    with serving() as served:
        assert served.get("/other")[0] == 404
        assert served.get("/")[0] == 200
        assert served.get("/metrics?collect=all")[0] == 200
        assert served.raw(b"POST /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405")
        assert served.raw(b"\x16\x03\x01 not http\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert served.raw(b"GET /metrics HTTP/1.1\r\na: ".ljust(module._HEAD_MOST + 1, b"b")).startswith(
            b"HTTP/1.1 431"
        )
        head = served.raw(b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert head.endswith(b"\r\n\r\n")


def test_a_loop_that_does_not_answer_is_503_and_not_a_page_of_old_values() -> None:
    with serving() as served:
        assert served.get()[0] == 200
        served.answers = False
        time.sleep(2 * module._FRESH_S)
        assert served.get()[0] == 503


def test_a_flood_of_scrapes_asks_the_loop_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FRESH_S", 60.0)
    with serving() as served:
        for _ in range(30):
            assert served.get()[0] == 200
        assert served.asked == 1


def test_a_port_in_use_is_told_once_and_taken_when_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_WAIT_S", 0.02)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(port) as served:
            time.sleep(0.2)
            assert len(served.told) == 1
            assert f"not served on 127.0.0.1:{port}" in str(served.told[0])
            assert "in use" in str(served.told[0])
            taken.close()
            wait_for(lambda: None in served.told)
            assert served.get()[0] == 200


def test_connections_that_say_nothing_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CONNECTION_S", 0.5)
    with serving() as served:
        before = threading.active_count()
        silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(3 * module._AT_ONCE)]
        assert served.get()[0] == 200
        assert threading.active_count() <= before + module._AT_ONCE
        for connection in silent:
            connection.close()


def test_with_users_only_the_right_password_reads() -> None:
    def header(password: str) -> str:
        return "Basic " + base64.b64encode(f"prometheus:{password}".encode()).decode()

    with serving(users={"prometheus": hash_password("sesame", iterations=1000)}) as served:
        assert served.get()[0] == 401
        assert served.get(Authorization=header("wrong"))[0] == 401
        assert served.asked == 0
        assert served.get(Authorization=header("sesame"))[0] == 200


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(*files, "first")
    return files


def make_certificate(certificate: Path, key: Path, name: str) -> None:
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key],
            check=True, capture_output=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("needs the openssl program to make a certificate")


def test_tls_is_spoken_and_a_renewed_certificate_is_used_without_a_restart(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with serving(certificate=str(cert), key=str(key)) as served:

        def https() -> int:
            trust = ssl.create_default_context(cafile=str(cert))
            with urllib.request.urlopen(f"https://127.0.0.1:{served.port}/metrics", timeout=10, context=trust) as page:
                return int(page.status)

        assert https() == 200
        make_certificate(cert, key, "second")  # trusted only if it is the one that is served
        assert https() == 200
        with pytest.raises(OSError, match=r"closed|reset|Bad|without response"):
            served.get()


def test_a_certificate_that_is_not_there_is_told_and_found_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST_WAIT_S", 0.02)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    with serving(certificate=str(cert), key=str(key)) as served:
        assert "No such file" in str(served.told[0])
        make_certificate(cert, key, "late")
        wait_for(lambda: None in served.told)
