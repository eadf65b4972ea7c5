"""JSON-RPC 2.0, one message a line (https://www.jsonrpc.org/specification). Pure: bytes in, values out.

Nothing here trusts what it reads: size, nesting and number of messages are bounded, NaN and infinity refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Ours, in the range that the specification leaves to servers.
WRONG_PROTOCOL = -32001
WRONG_ORDER = -32002
NOT_PERMITTED = -32003
REFUSED = -32005

MAX_DEPTH = 16
MAX_ID_LENGTH = 256

Id = str | int | float | None

# A string, also an unfinished one (so that the search stays linear), or a bracket.
_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class RpcError(Exception):
    """An answer of the kind ``error``: a code, and one line saying what is wrong and what to do."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Call:
    """A request, or a notification where ``wants_reply`` is False (it had no ``id`` member)."""

    method: str
    params: dict[str, Any]
    wants_reply: bool
    id: Id = None


@dataclass(frozen=True)
class Invalid:
    """A message that cannot be carried out. It is answered with ``error``, with the id where one could be read."""

    error: RpcError
    id: Id = None
    wants_reply: bool = True


Message = Call | Invalid


class LineTooLongError(Exception):
    """A line is longer than a message may be; what follows cannot be told from it, so the connection ends."""


class LineFramer:
    """Cuts a stream of bytes into lines of at most ``max_line_bytes`` bytes, the newline not counted.

    It never holds more than what the last ``feed`` brought and one unfinished line.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._buffer = bytearray()
        self._start = 0
        self._searched = 0

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        self._buffer += data

    def next_line(self) -> bytes | None:
        """The next whole line without its newline, or None. Raises LineTooLongError."""
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            # What was taken is given back only here: cutting after each line would copy the rest each time.
            del self._buffer[: self._start]
            self._start = 0
            self._searched = len(self._buffer)
            if len(self._buffer) > self._max:
                raise LineTooLongError
            return None
        if end - self._start > self._max:
            raise LineTooLongError
        line = bytes(self._buffer[self._start : end])
        self._start = self._searched = end + 1
        return line

    def unread(self, line: bytes) -> None:
        """Put the line that ``next_line`` just gave back in front."""
        self._start -= len(line) + 1
        self._searched = self._start

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait: whole lines not taken and an unfinished one."""
        return len(self._buffer) - self._start


def parse_line(line: bytes, max_batch: int = 64) -> tuple[list[Message], bool]:
    """Read one line: its messages, and whether it was a batch (whose answers go in one array).

    Never raises: what cannot be read comes back as Invalid, with the code that the specification asks for.
    """
    try:
        value = _decode(line)
    except RpcError as error:
        return [Invalid(error)], False
    if not isinstance(value, list):
        return [_message(value)], False
    if not value:
        return [Invalid(RpcError(INVALID_REQUEST, "the batch is empty: send at least one message"))], False
    if len(value) > max_batch:
        text = f"the batch has {len(value)} messages, at most {max_batch} are allowed: send it in parts"
        return [Invalid(RpcError(INVALID_REQUEST, text))], False
    return [_message(item) for item in value], True


def encode(value: object) -> bytes:
    """One message, or a batch, as a line. Raises ValueError for NaN and infinity, TypeError for odd values."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def reply(id_: Id, result: object) -> dict[str, object]:
    """A successful answer."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def error_reply(id_: Id, error: RpcError) -> dict[str, object]:
    """An answer that says what went wrong."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": error.code, "message": error.text}}


def notification(method: str, params: dict[str, object]) -> dict[str, object]:
    """A message that wants no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _decode(line: bytes) -> Any:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RpcError(PARSE_ERROR, f"not UTF-8 at byte {error.start}") from None
    # Nesting is counted before parsing: the parser recurses.
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and max(_depths(line), default=0) > MAX_DEPTH:
        raise RpcError(PARSE_ERROR, f"nested more than {MAX_DEPTH} levels deep")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RpcError:
        raise
    except json.JSONDecodeError as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):
        # A number of thousands of digits, on Pythons that bound them.
        raise RpcError(PARSE_ERROR, "not JSON that can be read here: a number is too long") from None


def _depths(line: bytes) -> Iterator[int]:
    depth = 0
    for match in _BRACKETS.finditer(line):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            yield depth
        elif token in (b"]", b"}"):
            depth -= 1


def _refuse_constant(name: str) -> NoReturn:
    raise RpcError(PARSE_ERROR, f"{name} is not JSON: leave the field out where there is no value")


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        return Invalid(RpcError(INVALID_REQUEST, "a message is an object, or an array of objects"))
    if "method" not in value and ("result" in value or "error" in value):
        # The daemon asks nothing, so it expects no answers. Answering one could start an endless exchange.
        return Invalid(RpcError(INVALID_REQUEST, "an answer to no question"), wants_reply=False)
    id_ = value.get("id")
    if not _is_id(id_):
        return Invalid(RpcError(INVALID_REQUEST, f"id must be a number, or at most {MAX_ID_LENGTH} characters"))
    try:
        return Call(*_method_and_params(value), "id" in value, id_)
    except RpcError as error:
        # An invalid request is answered even where it has no id, as the specification shows; bad params are not.
        return Invalid(error, id_, error.code == INVALID_REQUEST or "id" in value)


def _method_and_params(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'the member "jsonrpc" must be "2.0"')
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, 'the member "method" must be a string')
    if isinstance(params, list):
        if params:
            raise RpcError(INVALID_PARAMS, "give params by name, in an object")
        params = {}
    if not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, 'the member "params" must be an object')
    return method, params


def _is_id(value: object) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return len(value) <= MAX_ID_LENGTH
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) < 2**63)
