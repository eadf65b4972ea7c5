"""A small JSON-RPC client for the commands that talk to the running service."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from .errors import Failure, WrongInput, systemd_runs

_TIMEOUT_S = 5.0


def call(path: Path, method: str, params: dict[str, Any] | None = None, *, timeout_s: float = _TIMEOUT_S) -> Any:
    """The result of ``method``. Raises Failure (no service, no permission) or WrongInput (it refused the input)."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            with connection.makefile("rwb") as stream:
                _ask(stream, 1, "hello", {"protocol": 1, "client": "traingov-cli/0.1.0"})
                return _ask(stream, 2, method, params or {})
    except FileNotFoundError:
        start = "start traingovd" + (" (systemctl start traingov)" if systemd_runs() else "")
        raise Failure(f"no service at {path}: {start}, or name its --socket") from None
    except ConnectionRefusedError:
        raise Failure(f"nobody listens at {path}: traingovd has ended; start it again") from None
    except PermissionError:
        raise Failure(f"no permission for {path}: join group traingov and log in again") from None
    except TimeoutError:
        raise Failure(f"traingovd at {path} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from None


def _ask(stream: Any, number: int, method: str, params: dict[str, Any]) -> Any:
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    stream.write(json.dumps(request).encode() + b"\n")
    stream.flush()
    while line := stream.readline():
        try:
            message = json.loads(line)
        except ValueError:
            raise Failure("traingovd's answer was cut off; try again") from None
        if "error" in message and message.get("id") is None:
            raise WrongInput(f"traingovd could not read the request: {message['error'].get('message')}")
        if message.get("id") != number:
            continue
        if "error" in message:
            kind = WrongInput if message["error"].get("code") in (-32602, -32600) else Failure
            raise kind(str(message["error"].get("message")))
        return message["result"]
    raise Failure("traingovd closed the connection without an answer")
