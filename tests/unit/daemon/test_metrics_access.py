"""Where metrics are served and who may read them."""

from __future__ import annotations

import base64
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from traingov.cli.metrics import group
from traingov.config import ConfigError, load_config
from traingov.metrics.access import Doorkeeper, hash_password, metrics_options

BASIC = {"tls": None, "users": {}}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_by_default_only_this_machine_can_reach_them() -> None:
    options = load_config([]).metrics
    assert options is not None
    assert (options.where, options.loopback, options.users) == ("127.0.0.1:28520", True, {})


def test_null_switches_them_off() -> None:
    assert metrics_options({"listen": None, **BASIC}) is None


@pytest.mark.parametrize(
    ("listen", "where", "family", "loopback"),
    [
        ("localhost:80", "127.0.0.1:80", socket.AF_INET, True),
        ("[::1]:9", "[::1]:9", socket.AF_INET6, True),
        ("0.0.0.0:65535", "0.0.0.0:65535", socket.AF_INET, False),
        ("[::]:9", "[::]:9", socket.AF_INET6, False),
    ],
)
def test_addresses_are_read_as_one_types_them(listen: str, where: str, family: int, loopback: bool) -> None:
    options = metrics_options({"listen": listen, **BASIC})
    assert options is not None
    assert (options.where, options.family, options.loopback) == (where, family, loopback)


@pytest.mark.parametrize("listen", ["", "28520", ":28520", "127.0.0.1", "1.2.3:80", "127.0.0.1:0", "a.b:80", "::1:80"])
def test_a_wrong_address_is_named(listen: str, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(f"metrics: {{listen: '{listen}'}}\n")
    with pytest.raises(ConfigError, match=r"metrics\.listen: must be ADDRESS:PORT"):
        load_config([file])


def test_a_password_that_is_not_hashed_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("metrics: {users: {prometheus: secret}}\n")
    with pytest.raises(ConfigError, match=r"metrics\.users\.prometheus: is not a hashed .*traingov metrics password"):
        load_config([file])


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("metrics:\n  tls: {certificate: /etc/c.pem}\n")
    with pytest.raises(ConfigError, match=r"m\.yaml:2: metrics\.tls: 'key' is a required"):
        load_config([file])


def test_the_command_prints_a_hash_that_the_configuration_takes_and_the_password_opens() -> None:
    done = CliRunner().invoke(group, ["password"], input="open: sesame\nopen: sesame\n")
    hashed = done.output.splitlines()[-1]
    options = metrics_options({"listen": "127.0.0.1:1", "tls": None, "users": {"prometheus": hashed}})
    assert options is not None
    door = Doorkeeper(options.users)
    assert door.admits(basic("prometheus", "open: sesame"))
    assert door.admits(basic("prometheus", "open: sesame"))  # remembered
    assert not door.admits(basic("prometheus", "open: sesam"))
    assert not door.admits(basic("Prometheus", "open: sesame"))


def test_a_hash_is_pbkdf2_as_rfc_8018_has_it() -> None:
    # RFC 7914, section 11: PBKDF2-HMAC-SHA-256 of "passwd" with salt "salt", one iteration, its first 32 bytes.
    digest = bytes.fromhex("55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc")
    assert hash_password("passwd", b"salt", 1) == f"pbkdf2-sha256:1:c2FsdA==:{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    "header",
    [None, "", "Basic", "Basic ???", "Bearer abc", "Basic " + base64.b64encode(b"nocolon").decode(), "Basic /w=="],
)
def test_a_header_that_is_no_password_opens_nothing(header: str | None) -> None:
    assert not Doorkeeper({"a": hash_password("b", iterations=1)}).admits(header)


def test_without_users_everybody_may_read() -> None:
    assert Doorkeeper({}).admits(None)
