"""Every method of the protocol and its fields, and how they become values. docs/openrpc.json says the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traingov_policies.values import Cap, Features, Objective, PolicyName

from .fields import Field, Flag, Integer, ListOf, Number, OneOf, Record, Text, bad
from .handler import RegisterRequest, Signature, StepsReport

PROTOCOL = 1
PHASES = ("profile", "train", "hold")

_BATCH = Integer(1, 1_000_000)
_COUNT = Integer(0, 10**15)
_POLICY = OneOf(tuple(p.value for p in PolicyName))
_OBJECTIVE = OneOf(tuple(o.value for o in Objective))
_SECONDS_MAX = 1e9
# Clients stamp a window just before they send it; more than this ahead is another clock.
_CLOCK_TOLERANCE_S = 1.0

FEATURES = Record(
    (
        Field("model_type", Text(), required=False),
        Field("layers", Integer(1, 100_000), required=False),
        Field("hidden_size", Integer(1, 10_000_000), required=False),
        Field("seq_len_avg", Number(0, 1e9), required=False),
    )
)
SIGNATURE = Record(
    tuple(Field(name, Text(), required=False) for name in ("architecture", "input_shape", "precision", "optimizer"))
)


@dataclass(frozen=True)
class Method:
    """A method that the daemon takes. ``kind`` says who may call it and how it is carried out.

    "session": part of a job's life. "query": reads. "command": administrators only.
    ``answers``: it is of use only as a request, so a notification of it is ignored.
    """

    name: str
    params: Record
    kind: str
    answers: bool = True


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("hello", Record((Field("protocol", Integer(1, 1_000_000)), Field("client", Text()))), "session"),
        Method(
            "register",
            Record(
                (
                    Field("workload", Text()),
                    Field("batch_sizes", ListOf(_BATCH)),
                    Field("batch_size", _BATCH),
                    Field("pid", Integer(1, 2**22), required=False),
                    Field("policy", _POLICY, required=False),
                    Field("objective", _OBJECTIVE, required=False),
                    Field("features", FEATURES, required=False),
                    Field("learning_rate_rule", OneOf(("sqrt", "linear", "none")), required=False),
                    Field("signature", SIGNATURE, required=False),
                    Field("samples_done", _COUNT, required=False, default=0),
                    Field("samples_total", Integer(1, 10**15), required=False),
                    Field("resume", Flag(), required=False, default=False),
                )
            ),
            "session",
        ),
        Method(
            "steps",
            Record(
                (
                    Field("batch_size", _BATCH),
                    Field("steps", Integer(1, 10**9)),
                    Field("samples", Integer(1, 10**15)),
                    Field("elapsed_s", Number(0, _SECONDS_MAX)),
                    Field("end_s", Number(0, 1e12)),
                    Field("synced", Flag()),
                    Field("seq_len_avg", Number(0, 1e9), required=False),
                )
            ),
            "session",
            answers=False,
        ),
        Method(
            "batch_applied",
            Record((Field("batch_size", _BATCH), Field("advice", Integer(0, 2**53), required=False))),
            "session",
            answers=False,
        ),
        Method(
            "batch_failed",
            Record((Field("batch_size", _BATCH), Field("reason", Text()))),
            "session",
            answers=False,
        ),
        Method(
            "pause",
            Record((Field("reason", Text()),)),
            "session",
            answers=False,
        ),
        Method("resume", Record(), "session", answers=False),
        Method("end", Record(), "session", answers=False),
        Method("status", Record(), "query"),
        Method("jobs", Record(), "query"),
        Method("explain", Record((Field("job", Text(), required=False),)), "query"),
        Method("cap.get", Record(), "query"),
        Method("policy.get", Record(), "query"),
        Method(
            "cap.set",
            Record(
                (
                    Field("power_w", Number(0, 10_000)),
                    Field("window_s", Number(0, 3600), required=False),
                    Field("burst_w", Number(0, 10_000), required=False),
                    Field("source", Text(64), required=False),
                    Field("ttl_s", Number(0, 31_536_000), required=False),
                    Field("override", Flag(), required=False, default=False),
                )
            ),
            "command",
        ),
        Method("cap.clear", Record((Field("source", Text(64), required=False),)), "command"),
        Method("profile.get", Record(), "query"),
        Method(
            "profile.start",
            Record(
                (
                    Field("job", Text(), required=False),
                    Field("clocks_hz", ListOf(Integer(1, 10**10)), required=False),
                    Field("duration_s", Number(0, 86_400), required=False),
                    Field("steps", Integer(3, 10**9), required=False),
                    Field("fresh", Flag(), required=False, default=False),
                )
            ),
            "command",
        ),
        Method("profile.stop", Record(), "command"),
        Method(
            "policy.set",
            Record((Field("policy", _POLICY), Field("objective", _OBJECTIVE, required=False))),
            "command",
        ),
    )
}

# What the daemon sends of its own accord.
NOTIFICATIONS: dict[str, Record] = {
    "advise": Record(
        (
            Field("advice", Integer(0, 2**53)),
            Field("batch_size", _BATCH),
            Field("phase", OneOf(PHASES)),
            Field("reason", Text()),
        )
    ),
    "bye": Record((Field("reason", Text()),)),
}


def parse_params(method: Method, params: dict[str, Any]) -> dict[str, Any]:
    """The fields of ``method``, checked, defaults filled in. Raises RpcError(-32602) naming the field."""
    values = method.params.parse(params, "")
    if method.name == "cap.set":
        try:
            cap_in(values)
        except ValueError as error:
            raise bad("params:", str(error)) from None
    return values


def cap_in(values: dict[str, Any]) -> Cap:
    """The cap of a checked ``cap.set``. Raises ValueError where its values contradict each other."""
    return Cap(**{name: values[name] for name in ("power_w", "window_s", "burst_w") if values[name] is not None})


def register_request(values: dict[str, Any]) -> RegisterRequest:
    """A checked ``register``. Raises RpcError(-32602) where fields contradict each other."""
    batch_sizes = tuple(sorted(values["batch_sizes"]))
    if values["batch_size"] not in batch_sizes:
        raise bad("batch_size", f"must be one of batch_sizes {list(batch_sizes)}")
    policy, objective = values["policy"], values["objective"]
    return RegisterRequest(
        **{
            **values,
            "batch_sizes": batch_sizes,
            "policy": None if policy is None else PolicyName(policy),
            "objective": None if objective is None else Objective(objective),
            "features": Features(**(values["features"] or {})),
            "signature": Signature(**(values["signature"] or {})),
        }
    )


def steps_report(values: dict[str, Any], batch_sizes: tuple[int, ...], now_s: float) -> StepsReport:
    """A checked ``steps`` of a job with ``batch_sizes``, at ``now_s`` (CLOCK_MONOTONIC). Raises RpcError(-32602)."""
    known_batch(values["batch_size"], batch_sizes)
    ahead_s = values["end_s"] - now_s
    if ahead_s > _CLOCK_TOLERANCE_S:
        raise bad("end_s", f"is {ahead_s:.3g} s ahead: use CLOCK_MONOTONIC of this machine")
    return StepsReport(**{**values, "end_s": min(values["end_s"], now_s)})


def known_batch(batch_size: int, batch_sizes: tuple[int, ...]) -> int:
    """``batch_size`` where the job registered it. Raises RpcError(-32602)."""
    if batch_size not in batch_sizes:
        raise bad("batch_size", f"must be one of those registered, {list(batch_sizes)}")
    return batch_size
