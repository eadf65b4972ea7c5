"""docs/openrpc.json and the code say the same, method by method and field by field."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traingov.sessions import jsonrpc
from traingov.sessions.jsonrpc import RpcError
from traingov.sessions.messages import METHODS, NOTIFICATIONS, PROTOCOL

DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT = json.loads((DOCS / "openrpc.json").read_text(encoding="utf-8"))
DESCRIBED = {method["name"]: method for method in DOCUMENT["methods"]}
IN_CODE = {**{name: method.params for name, method in METHODS.items()}, **NOTIFICATIONS}


def test_every_method_of_the_code_is_described_and_no_other():
    assert sorted(method["name"] for method in DOCUMENT["methods"]) == sorted(IN_CODE)


@pytest.mark.parametrize("name", sorted(IN_CODE))
def test_every_field_is_described_as_the_code_checks_it(name):
    described = {param["name"]: (param["required"], param["schema"]) for param in DESCRIBED[name]["params"]}
    assert described == {field.name: (field.required, field.schema()) for field in IN_CODE[name].fields}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_kind_and_direction_are_described(name):
    method = DESCRIBED[name]
    assert method["x-direction"] == "client-to-daemon"
    assert method["x-kind"] == METHODS[name].kind
    assert method["x-notification"] is not METHODS[name].answers
    assert "result" in method


@pytest.mark.parametrize("name", sorted(NOTIFICATIONS))
def test_what_the_daemon_sends_is_described_as_a_notification(name):
    assert DESCRIBED[name]["x-direction"] == "daemon-to-client"
    assert "result" not in DESCRIBED[name], "OpenRPC: a method without a result is a notification"


def test_the_document_has_what_openrpc_1_3_asks_for():
    assert re.fullmatch(r"1\.3\.\d+", DOCUMENT["openrpc"])
    assert {"title", "version"} <= set(DOCUMENT["info"])
    assert DOCUMENT["info"]["version"].split(".")[0] == str(PROTOCOL)
    allowed = {"name", "summary", "description", "paramStructure", "params", "result", "errors"}
    for method in DOCUMENT["methods"]:
        assert {key for key in method if not key.startswith("x-")} <= allowed
        assert method["summary"]
        assert method["description"]
        for param in method["params"]:
            assert set(param) == {"name", "description", "required", "schema"}
            assert param["description"]
            jsonschema.Draft7Validator.check_schema(param["schema"])
        required = [param["required"] for param in method["params"]]
        assert required == sorted(required, reverse=True), "OpenRPC: required params come first"
        for error in method.get("errors", ()):
            assert error["$ref"].rpartition("/")[2] in DOCUMENT["components"]["errors"]


def test_the_error_codes_are_those_of_the_code():
    codes = {jsonrpc.WRONG_PROTOCOL, jsonrpc.WRONG_ORDER, jsonrpc.NOT_PERMITTED, jsonrpc.REFUSED}
    assert {error["code"] for error in DOCUMENT["components"]["errors"].values()} == codes


def test_the_protocol_page_names_every_method_field_and_error_code():
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    for name, record in IN_CODE.items():
        assert f"`{name}`" in page
        for field in record.fields:
            assert re.search(rf"`{field.name}\b", page), f"{name}.{field.name}"
    for code in (
        jsonrpc.PARSE_ERROR,
        jsonrpc.INVALID_REQUEST,
        jsonrpc.METHOD_NOT_FOUND,
        jsonrpc.INVALID_PARAMS,
        jsonrpc.INTERNAL_ERROR,
        jsonrpc.WRONG_PROTOCOL,
        jsonrpc.WRONG_ORDER,
        jsonrpc.NOT_PERMITTED,
        jsonrpc.REFUSED,
    ):
        assert str(code) in page


_VALUE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70),
    st.integers(),
    # JSON Schema takes 2.0 for an integer; the protocol does not, so whole floats are left out.
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != int(x) if abs(x) < 1e300 else False),
    st.sampled_from(["joint", "energy", "time", "sqrt", "x", "", "y" * 257]),
    st.lists(st.integers(-1, 100), max_size=5),
    st.fixed_dictionaries({}, optional={"layers": st.integers(-1, 9), "precision": st.just("fp16"), "odd": st.none()}),
)


@pytest.mark.parametrize("name", sorted(name for name, record in IN_CODE.items() if record.fields))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_code_takes_exactly_what_the_document_allows(name, data):
    record = IN_CODE[name]
    # Mostly plausible values, one field free, so that both answers are common.
    params = {}
    free = data.draw(st.sampled_from([field.name for field in record.fields]))
    for param in DESCRIBED[name]["params"]:
        if param["name"] == free:
            params[free] = data.draw(_VALUE)
        elif param["required"]:
            params[param["name"]] = _plausible(param["schema"])
    schema = {
        "type": "object",
        "properties": {param["name"]: param["schema"] for param in DESCRIBED[name]["params"]},
        "required": [param["name"] for param in DESCRIBED[name]["params"] if param["required"]],
        "additionalProperties": False,
    }
    allowed = jsonschema.Draft7Validator(schema).is_valid(params)
    refusal = None
    try:
        record.parse(params, "")
    except RpcError as error:
        refusal = error.code
    assert refusal == (None if allowed else jsonrpc.INVALID_PARAMS), params


def _plausible(schema):
    kind = schema["type"]
    if "enum" in schema:
        return schema["enum"][0]
    return {"integer": 8, "number": 1.5, "string": "x", "boolean": True, "array": [8, 16]}[kind]
