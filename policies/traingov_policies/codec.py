"""Events and actions as JSON values and back: what a recording holds, one object a line (DESIGN 3)."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

from . import actions, events
from .lut import Lut
from .relation import RelationVector
from .search.curves import Curve
from .settings import Settings
from .tree import Tree
from .values import Board, Cap

SCHEMA = "traingov.recording/1"

EVENTS: dict[str, type] = {cls.__name__: cls for cls in typing.get_args(events.Event)}
ACTIONS: dict[str, type] = {cls.__name__: cls for cls in typing.get_args(actions.Action)}
_FILES = (Curve, Lut, RelationVector, Tree)


def encode(value: Any) -> Any:
    """``value`` as plain JSON values; a dataclass leaves out the fields that are None by default and by value."""
    if isinstance(value, _FILES):
        return value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: encode(item) for f, item in pairs if item is not None or f.default is not None}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def encode_event(event: events.Event) -> dict[str, Any]:
    """``{"event": NAME, ...}``."""
    return {"event": type(event).__name__, **encode(event)}


def encode_action(action: actions.Action) -> dict[str, Any]:
    """``{"action": NAME, ...}``."""
    return {"action": type(action).__name__, **encode(action)}


def decode_event(data: Mapping[str, Any]) -> events.Event:
    """An event from its JSON values. Raises ValueError naming what is wrong."""
    cls = EVENTS.get(str(data.get("event")))
    if cls is None:
        raise ValueError(f"recording: unknown event {data.get('event')!r}")
    return typing.cast(events.Event, decode(cls, {k: v for k, v in data.items() if k != "event"}))


def decode_header(data: Mapping[str, Any]) -> tuple[Board, Settings, Any]:
    """Board, settings and the cap in force at the recording's start. Raises ValueError for another schema."""
    if data.get("schema") != SCHEMA:
        raise ValueError(f"recording: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
    for name in ("board", "settings"):
        if name not in data:
            raise ValueError(f"recording: the header has no {name}")
    cap = data.get("cap")
    return (
        decode(Board, data["board"]),
        decode(Settings, data["settings"]),
        None if cap is None else decode(Cap, cap),
    )


def decode(cls: Any, value: Any) -> Any:
    """``value`` as an instance of ``cls`` (a type as written in our dataclasses). Raises ValueError."""
    origin = typing.get_origin(cls)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        inner = [arg for arg in typing.get_args(cls) if arg is not type(None)]
        return decode(inner[0], value) if len(inner) == 1 else value
    if cls in _FILES:
        return cls.from_json(value)
    if dataclasses.is_dataclass(cls):
        return _decode_dataclass(cls, value)
    if isinstance(cls, type) and issubclass(cls, Enum):
        return cls(value)
    if origin is tuple:
        args = typing.get_args(cls)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(decode(args[0], item) for item in value)
        return tuple(decode(arg, item) for arg, item in zip(args, value, strict=True))
    if cls is float and isinstance(value, int):
        return float(value)
    return value


def _decode_dataclass(cls: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"recording: {cls.__name__} must be an object, not {value!r}")
    hints = _hints(cls)
    unknown = set(value) - set(hints)
    if unknown:
        raise ValueError(f"recording: {cls.__name__} has no field {sorted(unknown)[0]!r}")
    try:
        return cls(**{name: decode(hints[name], item) for name, item in value.items()})
    except TypeError as error:
        raise ValueError(f"recording: {cls.__name__}: {error}") from None


_HINTS: dict[Any, dict[str, Any]] = {}


def _hints(cls: Any) -> dict[str, Any]:
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls)
    return _HINTS[cls]
