"""JSON-RPC by bytes: what the specification asks for, and what no bytes may do."""

import json

import jsonrpcclient
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traingov.sessions.jsonrpc import (
    Call,
    Invalid,
    LineFramer,
    LineTooLongError,
    RpcError,
    encode,
    error_reply,
    parse_line,
    reply,
)

# A loaded machine must not fail a test.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def one(line):
    messages, batch = parse_line(line)
    assert len(messages) == 1
    assert not batch
    return messages[0]


def lines_of(framer):
    out = []
    while (line := framer.next_line()) is not None:
        out.append(line)
    return out


@UNTIMED
@given(st.binary(max_size=300))
def test_no_bytes_make_parsing_raise(data):
    messages, _ = parse_line(data)
    assert messages
    assert all(isinstance(message, (Call, Invalid)) for message in messages)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_ENVELOPE = st.fixed_dictionaries({}, optional=dict.fromkeys(("jsonrpc", "method", "params", "id", "result"), _JSON))


@UNTIMED
@given(_ENVELOPE | st.lists(_ENVELOPE, max_size=5))
def test_no_json_makes_parsing_raise_and_every_answer_can_be_sent(value):
    for message in parse_line(json.dumps(value).encode())[0]:
        answer = error_reply(message.id, message.error) if isinstance(message, Invalid) else reply(message.id, None)
        assert jsonrpcclient.parse(json.loads(encode(answer))) is not None


@UNTIMED
@given(st.lists(st.binary(max_size=20).filter(lambda b: b"\n" not in b), max_size=8), st.data())
def test_lines_do_not_depend_on_how_they_were_cut(lines, data):
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    framer, out = LineFramer(20), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        framer.feed(stream[:cut])
        stream = stream[cut:]
        for line in lines_of(framer):
            out.append(line)
    assert out == lines
    assert framer.pending_bytes == len(b"rest")


def test_a_line_that_was_put_back_comes_again():
    framer = LineFramer(10)
    framer.feed(b"one\ntwo\nth")
    assert framer.next_line() == b"one"
    framer.unread(b"one")
    assert framer.pending_bytes == 10
    framer.feed(b"ree\n")
    assert lines_of(framer) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("data", [b"12345\n", b"12345", b"1\n12345"])
def test_a_line_over_the_bound_is_told_finished_or_not(data):
    framer = LineFramer(4)
    framer.feed(data)
    with pytest.raises(LineTooLongError):
        lines_of(framer)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b"[" * 17 + b"]" * 17,
        b'{"a":' * 17 + b"1" + b"}" * 17,
        b"[" * 60_000,
        b'"' + b'\\"' * 30_000 + b"[" * 20,
        b"1" * 60_000,
        '{"jsonrpc":"2.0"}'.encode("utf-16"),
    ],
)
def test_what_is_not_json_is_a_parse_error(line):
    message = one(line)
    assert isinstance(message, Invalid)
    assert message.error.code in (-32700, -32600)
    if line != b"1" * 60_000:
        assert message.error.code == -32700


def test_brackets_in_strings_are_not_nesting():
    text = '{"jsonrpc":"2.0","id":1,"method":"' + "[{" * 40 + '\\"[["}'
    assert isinstance(one(text.encode()), Call)


@pytest.mark.parametrize(
    "value",
    [
        1,
        "x",
        None,
        {},
        {"jsonrpc": "1.0", "method": "x"},
        {"method": "x"},
        {"jsonrpc": "2.0", "method": 1},
        {"jsonrpc": "2.0", "method": "x", "params": 3},
        {"jsonrpc": "2.0", "method": "x", "params": None},
        {"jsonrpc": "2.0", "method": "x", "id": [1]},
        {"jsonrpc": "2.0", "method": "x", "id": True},
        {"jsonrpc": "2.0", "method": "x", "id": "x" * 257},
    ],
)
def test_what_is_no_request_is_an_invalid_request(value):
    message = one(json.dumps(value).encode())
    assert isinstance(message, Invalid)
    assert message.error.code == -32600
    assert message.wants_reply


def test_positional_params_are_refused_and_an_empty_list_is_nothing():
    message = one(b'{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}')
    assert isinstance(message, Invalid)
    assert (message.id, message.error.code, message.wants_reply) == (7, -32602, True)
    quiet = one(b'{"jsonrpc":"2.0","method":"x","params":[1]}')
    assert isinstance(quiet, Invalid)
    assert not quiet.wants_reply
    assert one(b'{"jsonrpc":"2.0","id":7,"method":"x","params":[]}') == Call("x", {}, True, 7)


def test_an_answer_is_not_answered():
    message = one(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert isinstance(message, Invalid)
    assert not message.wants_reply


def test_what_a_foreign_library_builds_is_read():
    request = jsonrpcclient.request("steps", {"steps": 3}, id="a")
    assert one(json.dumps(request).encode()) == Call("steps", {"steps": 3}, True, "a")
    notification = jsonrpcclient.notification("steps", {"steps": 3})
    assert one(json.dumps(notification).encode()) == Call("steps", {"steps": 3}, False, None)


def test_a_batch_is_read_one_by_one_and_an_empty_or_long_one_is_refused():
    messages, batch = parse_line(b'[1,{"jsonrpc":"2.0","method":"x"}]')
    assert batch
    assert isinstance(messages[0], Invalid)
    assert messages[1] == Call("x", {}, False, None)
    for line in (b"[]", b"[" + b"1," * 64 + b"1]"):
        message = one(line)
        assert isinstance(message, Invalid)
        assert message.error.code == -32600


def test_answers_are_one_line_of_ascii_and_never_nan():
    assert encode(reply(1, "ä\n")) == b'{"jsonrpc":"2.0","id":1,"result":"\\u00e4\\n"}\n'
    with pytest.raises(ValueError, match="Out of range"):
        encode(reply(1, float("nan")))
    answer = jsonrpcclient.parse(json.loads(encode(error_reply(2, RpcError(-32005, "no")))))
    assert (answer.code, answer.message, answer.id) == (-32005, "no", 2)
